// The membership of a worker in an elastic job, whose workers may come and go. A worker keeps one connection
// to the tracker for it. The tracker forms generations: the workers that train together until one of them is
// lost, or another one comes. The members of a generation then join it by rabit's or XGBoost's protocol, with
// the task id TASK@GENERATION, so that late messages of an earlier generation are recognised. Converts
// between bytes and messages, without sockets or a clock.
//
//   worker                                        tracker
//   int kMembershipMagic                     ->
//   int kCome, string TASK                   ->
//                                            <-   int kFormed, int generation, int size, string ""
//                (joins, trains)
//                                            <-   int kBroken or kChange, int generation, int size, string
//                                            why
//   int kCome, string ""                     ->   (it has left the generation, and can be in the next one)
//   int kDone, string ""                     ->   (it has ended its work; so has the job)
//
// A worker whose tracker has died connects to the one that takes the job over. If it waits for a generation,
// it begins as above, and else with
//
//   int kStay or kDone, string TASK@GENERATION
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "wire/bytes.h"

namespace warren::wire {

/// The first four bytes of a membership, instead of kMagic of wire/dialect.h.
inline constexpr std::int32_t kMembershipMagic = 0x4d525257;  // "WRRM"
inline constexpr std::size_t kMaxStoryBytes = 1000;

/// What a worker tells the tracker.
enum class MemberWord : std::int32_t {
  kCome = 1,   ///< it waits for the next generation
  kDone = 2,   ///< the job's work is done
  kLeave = 3,  ///< it has been asked to end, and has left its generation
  kStay = 4,   ///< it has found the tracker again, and is a member of its generation as before
};
/// The task id is needed in the first message only, with the generation if the worker is a member of one; it
/// is empty in the others.
struct MemberMessage {
  MemberWord word = MemberWord::kCome;
  std::string task_id;
};

/// What the tracker tells a worker.
enum class GenerationWord : std::int32_t {
  kFormed = 1,  ///< the worker is a member of this generation, and can join it
  kBroken = 2,  ///< a member of this generation was lost: leave it, and come again
  kChange = 3,  ///< another worker waits: leave this generation together, when it suits, and come again
  kOver = 4,    ///< the job's work is done
  kFailed = 5,  ///< the job, or this worker's place in it, is lost: do not come again
};
struct GenerationMessage {
  GenerationWord word = GenerationWord::kFormed;
  std::int32_t generation = 0;  ///< counted from 1
  std::int32_t size = 0;        ///< the number of its members
  std::string story;            ///< which member was lost and how, or why the job failed; else empty
};

std::string Encode(const MemberMessage& message);
/// The story is cut after kMaxStoryBytes.
std::string Encode(const GenerationMessage& message);

/// Decode the next message; std::nullopt until it has arrived completely. Throw ProtocolError.
std::optional<MemberMessage> NextMemberMessage(Reader& reader);
std::optional<GenerationMessage> NextGenerationMessage(Reader& reader);

/// TASK@GENERATION: the task id with which a member joins its generation.
std::string TaskInGeneration(std::string_view task_id, int generation);
/// The task and the generation of such a task id; generation 0 if it names none.
std::pair<std::string, int> SplitGeneration(const std::string& task_id);

}  // namespace warren::wire
