// A rank in the world of some peer, reduced to the calls that the comparison makes. Each peer has a small
// program that implements World; everything else (arguments, checks, timing, output) is shared, so that all
// peers do the same work in the same way.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <stdexcept>

namespace warren::bench {

/// All ranks make the same calls in the same order. Errors are thrown.
class World {
 public:
  virtual ~World() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Called once before a series of operations on this buffer, outside the timing, for peers that bind to a
  /// buffer.
  virtual void Prepare(float* /*data*/, std::size_t /*count*/) {}
  /// Sums over all ranks in place.
  virtual void Allreduce(float* data, std::size_t count) = 0;
  /// Sums `number` blocks of `count_each` elements over all ranks, in place. The blocks are consecutive in
  /// memory.
  virtual void AllreduceEach(float* data, std::size_t count_each, std::size_t number) {
    for (std::size_t i = 0; i < number; ++i) Allreduce(data + i * count_each, count_each);
  }
  virtual void Broadcast(void* /*data*/, std::size_t /*bytes*/, int /*root*/) {
    throw std::runtime_error("this peer has no broadcast");
  }
  /// `data` has a slice of `bytes_each` for every rank, in rank order; each rank contributes its own, in
  /// place.
  virtual void Allgather(void* /*data*/, std::size_t /*bytes_each*/) {
    throw std::runtime_error("this peer has no allgather");
  }
  /// `data` holds `count_each` elements for each rank. Each rank receives the sum of its slice, either in
  /// place or at the beginning of `data`. The rest of `data` is unspecified.
  virtual void ReduceScatter(float* /*data*/, std::size_t /*count_each*/) {
    throw std::runtime_error("this peer has no reduce-scatter");
  }
  /// Whether ReduceScatter leaves the sum in this rank's slice, not at the beginning of `data`.
  virtual bool ReduceScattersInPlace() const { return true; }
  virtual void Barrier() = 0;
  /// `from` and `to` have a slice of `bytes_each` for every rank.
  virtual void AllToAll(const void* /*from*/, void* /*to*/, std::size_t /*bytes_each*/) {
    throw std::runtime_error("this peer has no all-to-all");
  }
  /// Makes a communicator of the ranks that pass the same color, and frees it.
  virtual void Split(int /*color*/) { throw std::runtime_error("this peer has no communicators"); }
};

/// The main function of a worker: parses the arguments, joins the world, measures the cases, and prints on
/// rank 0 one line of JSON for each collective and size; or obeys a conductor (conducted.h). `--help` lists
/// the arguments. Returns the exit code, but exits at once after an error: with code 3 if a result is wrong,
/// otherwise with code 1.
int RunWorker(int argc, char** argv, const std::function<std::unique_ptr<World>()>& join);

}  // namespace warren::bench
