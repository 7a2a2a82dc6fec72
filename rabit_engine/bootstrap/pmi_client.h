// PMI-1, the protocol through which the processes of an MPI launcher find each other: lines of `key=value`
// words over a descriptor that the launcher leaves open. This client needs no MPI. MPICH's mpiexec (hydra)
// and Slurm's `srun --mpi=pmi2` serve the protocol. It is described in "PMI: A Scalable Parallel
// Process-Management Interface for Extreme-Scale Systems" (Balaji et al., EuroMPI 2010); the words were
// checked against hydra 4.0 and Slurm 22.05.
//
//   process                                       launcher
//   cmd=init pmi_version=1 pmi_subversion=1   ->
//                                             <-  cmd=response_to_init rc=0 ...
//   cmd=get_maxes                             ->
//                                             <-  cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=1024
//   cmd=get_my_kvsname                        ->
//                                             <-  cmd=my_kvsname kvsname=K
//   cmd=put kvsname=K key=.. value=..         ->
//                                             <-  cmd=put_result rc=0 ...
//   cmd=barrier_in                            ->
//                                             <-  cmd=barrier_out (when all have arrived)
//   cmd=get kvsname=K key=..                  ->
//                                             <-  cmd=get_result rc=0 value=..
//   cmd=finalize                              ->
//                                             <-  cmd=finalize_ack
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace warren {

/// Parses the `key=value` words of one line into a map; "cmd=maxes keylen_max=64" has two. Words without `=`
/// are ignored.
std::map<std::string, std::string> ParsePmiLine(std::string_view line);

/// Encodes a record in characters that PMI can carry (letters, digits, - and _, as in RFC 4648's base64url
/// without padding), split into pieces of at most `max_chars`. The first piece begins with the number of
/// pieces and a dot.
std::vector<std::string> EncodePmiRecord(std::string_view record, std::size_t max_chars);
/// Returns the number of a record's pieces, which stands at the beginning of the first piece. Throws
/// EngineError if it is missing or invalid.
std::size_t NumPmiPieces(std::string_view first_piece);
/// Decodes a record. Throws EngineError unless `pieces` are all pieces of one record, in order.
std::string DecodePmiRecord(std::span<const std::string> pieces);

/// A connection to the launcher. Not thread-safe.
class PmiClient {
 public:
  /// Contacts the launcher at the other end of `descriptor` (PMI_FD), which stays open when this object is
  /// destroyed. Every wait ends after `timeout`. Throws EngineError or TimedOut, as do all calls here.
  PmiClient(int descriptor, std::chrono::seconds timeout);

  /// Makes a value available to all processes after the next Barrier. Each key can be put only once.
  void Put(const std::string& key, std::string_view value);
  std::string Get(const std::string& key);
  /// Returns when all processes have called it.
  void Barrier();
  /// Reports to the launcher that this process has finished successfully. Must be the last call.
  void Finalize();

  /// The maximum length of a value.
  std::size_t max_value_chars() const { return max_value_chars_; }
  std::size_t max_key_chars() const { return max_key_chars_; }

 private:
  using Words = std::map<std::string, std::string>;

  /// Sends a line and returns the launcher's answer. Throws EngineError unless the command of the answer is
  /// `answer` and its rc, if it has one, is 0.
  Words Ask(const std::string& line, std::string_view answer);
  void SendLine(const std::string& line);
  std::string ReceiveLine();
  void WaitFor(short events, std::chrono::steady_clock::time_point deadline) const;

  int descriptor_;
  std::chrono::seconds timeout_;
  std::string received_;
  std::string space_;
  std::size_t max_value_chars_ = 0;
  std::size_t max_key_chars_ = 0;
};

}  // namespace warren
