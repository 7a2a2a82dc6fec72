// The bootstrap for the ranks of a Slurm step without PMI. Rank 0 listens and all other ranks connect to it.
// Each sends its record to rank 0, which returns all records. If two jobs use the same port by chance, the
// greeting distinguishes them.
//
//   rank r                                              rank 0
//   int kMeetingMagic, string step, string token,
//   int rank, int world_size                        ->
//                                                   <-  int 0, string "" (welcome) or int 1, string reason
//                                                   <-  int 0, string "" (all ranks have arrived)
//   and then in every Allgather:
//   string record                                   ->
//                                                   <-  int 0, string of all records, each a string
//
// Instead of any answer, rank 0 may send int 1 and a string that explains why the job cannot continue. Ints
// and strings are encoded as in wire/bytes.h.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "rabit_engine/bootstrap/bootstrap.h"
#include "rabit_engine/bootstrap/slurm_step.h"

namespace warren {

inline constexpr std::int32_t kMeetingMagic = 0x57534d31;  // "WSM1"
/// The maximum length of a record.
inline constexpr std::size_t kMaxRecordBytes = std::size_t{1} << 20;

/// Returns when all ranks have arrived. If ranks are missing after `timeout`, rank 0 sends the ranks that
/// have arrived an explanation, which names up to 16 missing ranks, and throws TimedOut; the other ranks
/// throw EngineError. Throws EngineError on rank 0 if it cannot listen, and TimedOut on another rank if rank
/// 0 does not answer it. All connections are encrypted if `tls` is given.
std::unique_ptr<Bootstrap> MeetAtRankZero(const SlurmStep& step, std::chrono::seconds timeout,
                                          const std::optional<tls::Context>& tls = std::nullopt);

}  // namespace warren
