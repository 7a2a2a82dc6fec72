// Named operations as values: what a rank asks for, what it tells rank 0, and what rank 0 answers.
//
// Ranks give named operations in any order. All of them take part in cycles, which cost one small allreduce:
//
//   1. Each rank says by a bit for each name that all know (the cache of participant.h) whether it has it
//      ready; the bitwise and of all is what is ready everywhere.
//   2. Only when some rank has something that no bit can say (a new name, another shape, a rank that joins
//      or leaves): all send a Message to rank 0, whose Coordinator makes one Answer of them for all.
//   3. What is agreed goes into each rank's ReadyList, which is the same on all, and the head of it is run.
//
// The model is Horovod's (controller, response cache; Sergeev and Del Balso, arXiv:1802.05799).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace warren::coordinator {

enum class Kind : std::uint8_t { kAllreduce, kReduceScatter, kBroadcast, kAllgather, kAllToAll, kBarrier };
std::string_view Name(Kind kind);

/// What all ranks have to say alike about an operation.
struct Signature {
  Kind kind = Kind::kAllreduce;
  std::uint8_t type = 0;       ///< DataType; of what is only moved: 1
  std::uint8_t operation = 0;  ///< Operation
  bool average = false;
  bool custom = false;  ///< a function of the caller's, on elements of element_bytes
  std::uint64_t element_bytes = 1;
  std::int32_t root = 0;
  std::uint64_t count = 0;   ///< elements of an allreduce, of a broadcast, of all slices; 0 for an all-to-all
  std::uint64_t digest = 0;  ///< of the counts of slices

  bool operator==(const Signature&) const = default;
  std::uint64_t bytes() const { return count * element_bytes; }
  /// Whether a rank that has joined can take part with elements that change nothing.
  bool takes_joined() const { return kind == Kind::kBarrier || (kind == Kind::kAllreduce && !custom); }
};
/// "an allreduce (sum) of 10 elements of float".
std::string Describe(const Signature& signature);

struct Request {
  std::string name;
  Signature signature;
  std::int32_t priority = 0;     ///< larger ones run first; rank 0's counts
  std::string group;             ///< empty: none
  std::uint32_t group_size = 0;  ///< names in it; they are run when all of them are ready, or none
  /// Of an all-to-all, in bytes: what this rank has for each rank, and expects of it.
  std::vector<std::uint64_t> sent;
  std::vector<std::uint64_t> received;

  bool operator==(const Request&) const = default;
};

/// What all agree on: to be run, or, with an error, to end with it.
struct Agreed {
  Request request;
  std::string error;
};

/// How ranks work together; rank 0's are everybody's.
struct Settings {
  std::uint64_t fusion_bytes = 0;  ///< small allreduces are packed up to so many bytes; 0: never
  std::uint64_t cycle_us = 0;      ///< how long names are collected before the ranks talk
  double patience = 60;            ///< seconds after which rank 0 is told of a name that waits, known or not
  bool operator==(const Settings&) const = default;
};

/// From a rank to rank 0.
struct Message {
  struct Entry {
    Request request;
    double waiting = 0;  ///< seconds since it was given
  };
  std::vector<Entry> requests;
  bool joins = false;
  bool leaves = false;
};

/// From rank 0 to all.
struct Answer {
  std::vector<std::string> forgotten;  ///< names that leave the cache before anything else
  std::vector<Agreed> agreed;
  std::vector<std::int32_t> joined;  ///< ranks that have joined, now
  std::int32_t last_joined = -1;     ///< all have, this one last; then all begin anew
  std::int32_t left = -1;            ///< this rank ends everything
  Settings settings;
};

std::string Encode(const Message& message);
std::string Encode(const Answer& answer);
/// Throw EngineError when the bytes are none: a rank of another version.
Message DecodeMessage(std::string_view bytes);
Answer DecodeAnswer(std::string_view bytes);

}  // namespace warren::coordinator
