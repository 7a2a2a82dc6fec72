// The membership of a worker in an elastic job, whose workers may come and go. A worker keeps one connection
// to the tracker for this purpose. The tracker forms generations: groups of workers that train together until
// one of them is lost or leaves, or another worker arrives. The members of a generation then join it by
// rabit's or XGBoost's protocol, with the task id TASK@GENERATION, so that late messages of an earlier
// generation are recognized. Converts between bytes and messages, without sockets or a clock.
//
//   worker                                        tracker
//   int kMembershipMagic                     ->
//   int kCome, string TASK                   ->
//                                            <-   int kFormed, int generation, int size, string ""
//                (joins, trains)
//                                            <-   int kBroken or kChange, int generation, int size, string
//                                            reason
//   int kCome, string ""                     ->   (the worker has left and waits for the next one)
//   int kDone, string ""                     ->   (the job's work is done)
//   int kLeave, string ""                    ->   (the worker leaves the job)
//
// A worker whose tracker has died connects to the tracker that takes over the job. If the worker is waiting
// for a generation, it begins as above, otherwise with
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

/// The first word of a worker's message.
enum class MemberWord : std::int32_t {
  kCome = 1,   ///< the worker is waiting for the next generation
  kDone = 2,   ///< the job's work is done
  kLeave = 3,  ///< the worker was asked to end and has left its generation
  kStay = 4,   ///< the worker has found the tracker again and is still a member of its generation
};
/// A message from a worker. The task id is needed only in the first message on a connection, in the form
/// TASK@GENERATION if the worker is a member of a generation; it is empty in later messages.
struct MemberMessage {
  MemberWord word = MemberWord::kCome;
  std::string task_id;
};

/// The first word of the tracker's message.
enum class GenerationWord : std::int32_t {
  kFormed = 1,  ///< the worker is a member of this generation and can join it
  kBroken = 2,  ///< a member of this generation was lost: leave it, then send kCome again
  kChange = 3,  ///< another worker is waiting: leave this generation together when convenient, then send
                ///< kCome again
  kOver = 4,    ///< the job's work is done
  kFailed = 5,  ///< the job, or this worker's place in it, is lost: do not send kCome again
};
struct GenerationMessage {
  GenerationWord word = GenerationWord::kFormed;
  std::int32_t generation = 0;  ///< counted from 1; 0 before the first one
  std::int32_t size = 0;        ///< with kFormed: the number of members of the generation
  std::string story;            ///< with kBroken and kFailed: the reason, for people; else empty
};

std::string Encode(const MemberMessage& message);
/// Truncates the story to kMaxStoryBytes.
std::string Encode(const GenerationMessage& message);

/// Decode the next message; return std::nullopt until it has arrived completely. Throw ProtocolError if the
/// message is invalid.
std::optional<MemberMessage> NextMemberMessage(Reader& reader);
std::optional<GenerationMessage> NextGenerationMessage(Reader& reader);

/// Returns TASK@GENERATION, the task id with which a member joins its generation.
std::string TaskInGeneration(std::string_view task_id, int generation);
/// Splits TASK@GENERATION into the task and the generation. Returns the whole id and 0 if it names no
/// generation.
std::pair<std::string, int> SplitGeneration(const std::string& task_id);

}  // namespace warren::wire
