// Named operations as values: a rank's request, its report to rank 0, and rank 0's answer.
//
// Ranks submit named operations in any order. All ranks take part in cycles, each of which costs one small
// allreduce:
//
//   1. For each name that all ranks know (the cache in participant.h), each rank sets a bit if it has the
//      name ready. The bitwise AND over all ranks shows which names are ready everywhere.
//   2. If some rank has something to report that no bit can express (a new name, another shape of a known
//      name, a name that has waited too long, or that it joins or leaves), all ranks send a RankReport to
//      rank 0, whose Coordinator sends one Answer to all ranks. Otherwise this step is skipped.
//   3. Agreed operations go into each rank's ReadyList, which is the same on all ranks, and are run from its
//      head.
//
// The model is Horovod's (controller, response cache; Sergeev and Del Balso, arXiv:1802.05799).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "rabit_engine/call/collective.h"

namespace warren::coordinator {

/// The properties of an operation that must be the same on all ranks.
struct Signature {
  Collective kind = Collective::kAllreduce;
  std::uint8_t type = 0;       ///< DataType of a built-in reduction; else 0
  std::uint8_t operation = 0;  ///< ReduceOp of a built-in reduction; else 0
  bool average = false;
  bool custom = false;              ///< whether a caller's function reduces the elements
  std::uint64_t element_bytes = 1;  ///< 1 if elements are only moved
  std::int32_t root = 0;
  /// The number of elements of an allreduce, of a broadcast, or of all slices together; 0 for an all-to-all.
  std::uint64_t count = 0;
  std::uint64_t digest = 0;  ///< hash of the slices' offsets; 0 if the operation has no slices

  bool operator==(const Signature&) const = default;
  std::uint64_t bytes() const { return count * element_bytes; }
  /// Whether a rank that has joined can take part with neutral elements.
  bool takes_joined() const {
    return kind == Collective::kBarrier || (kind == Collective::kAllreduce && !custom);
  }
};
/// Describes the signature, e.g. "an allreduce (sum) of 10 elements of float".
std::string Describe(const Signature& signature);

struct Request {
  std::string name;
  Signature signature;
  std::int32_t priority = 0;     ///< larger values run first; rank 0's value applies
  std::string group;             ///< empty if the name is in no group
  std::uint32_t group_size = 0;  ///< number of names in the group, which run when all are ready
  /// For an all-to-all, the numbers of bytes that this rank sends to each rank, and expects from each rank.
  std::vector<std::uint64_t> sent;
  std::vector<std::uint64_t> received;

  bool operator==(const Request&) const = default;
};

/// An operation that all ranks agree to run, or to end with `error` if that is not empty.
struct Agreed {
  Request request;
  std::string error;
};

/// The settings of the cycles; rank 0's settings apply to all ranks.
struct Settings {
  std::uint64_t fusion_bytes = 0;  ///< the maximum size of packed allreduces together; 0: none are packed
  std::uint64_t cycle_us = 0;      ///< how long names are collected before the ranks communicate
  double patience = 60;  ///< seconds after which a waiting name is reported to rank 0, even if it is cached
  bool operator==(const Settings&) const = default;
};

/// Sent by each rank to rank 0.
struct RankReport {
  struct Entry {
    Request request;
    double waiting = 0;  ///< seconds since the request was submitted
  };
  std::vector<Entry> requests;
  bool joins = false;
  bool leaves = false;
};

/// Sent by rank 0 to all ranks.
struct Answer {
  std::vector<std::string> forgotten;  ///< names to remove from the cache before anything else
  std::vector<Agreed> agreed;
  std::vector<std::int32_t> joined;  ///< ranks that have just joined
  /// The rank, in the job, that joined last, if all ranks have joined (joining then starts over); else -1.
  std::int32_t last_joined = -1;
  std::int32_t left = -1;  ///< the rank, in the job, that ends the named operations; -1 if none
  Settings settings;
};

std::string Encode(const RankReport& message);
std::string Encode(const Answer& answer);
/// Both throw EngineError if the bytes are malformed, e.g. from a rank of another version.
RankReport DecodeReport(std::string_view bytes);
Answer DecodeAnswer(std::string_view bytes);

}  // namespace warren::coordinator
