// Ranks of a Slurm step without PMI meet at rank 0: it listens, all others connect, and records go to rank 0
// and come back together. Two jobs that meet at one port by chance tell each other apart by the greeting.
//
//   rank r                                              rank 0
//   int kMeetingMagic, string step, string token,
//   int rank, int world_size                        ->
//                                                   <-  int 0, string "" (welcome) or int 1, string why not
//                                                   <-  int 0, string "" (all are here)
//   and then in every Allgather:
//   string record                                   ->
//                                                   <-  int 0, string of all records, each a string
// Instead of any answer rank 0 may send int 1 and a text: why the job cannot go on. Ints and strings are
// those of wire/bytes.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "rabit_engine/bootstrap/bootstrap.h"
#include "rabit_engine/bootstrap/slurm_step.h"

namespace warren {

inline constexpr std::int32_t kMeetingMagic = 0x57534d31;  // "WSM1"
/// A record longer than this is no rank's.
inline constexpr std::size_t kMaxRecordBytes = std::size_t{1} << 20;

/// Returns when all ranks have come. Throws TimedOut after `timeout`, on all ranks, with the ranks that are
/// missing; EngineError when rank 0 cannot listen.
/// The meeting is encrypted with `tls`.
std::unique_ptr<Bootstrap> MeetAtRankZero(const SlurmStep& step, std::chrono::seconds timeout,
                                          const std::optional<tls::Context>& tls = std::nullopt);

}  // namespace warren
