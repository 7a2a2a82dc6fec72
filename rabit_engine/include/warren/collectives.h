// Collectives for C++11 and later: communicators, all collectives, messages. A wrapper of warren/c_api.h,
// which documents each call; its rules on buffers, counts, threads and errors apply here, too.
//
//     warren::Init(argc, argv);
//     {
//       const warren::Communicator world = warren::World();
//       world.Allreduce(gradient.data(), gradient.size(), warren::Op::kSum);
//       const warren::Communicator host = world.Local();
//       host.Broadcast(weights.data(), weights.size(), 0);
//     }
//     warren::Finalize();
//
// Counts are in elements. Reductions by an operation take signed and unsigned integers of 8, 32 and 64 bits,
// float, double, rabit::Float16, rabit::BFloat16 and the compiler's 16-bit floats (rabit/half.h). Reductions
// by a function, and calls that only move elements, take any trivially copyable type.
//
// Errors are thrown as warren::Error. Link programs with librabit (warren::rabit in CMake).
#ifndef WARREN_COLLECTIVES_H_
#define WARREN_COLLECTIVES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "rabit/half.h"
#include "warren/c_api.h"

namespace warren {
// The namespace is part of the symbols' names: a program may contain code compiled with another version of
// this header.
inline namespace v1 {

/// The message describes the error and names this rank if it is known.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// See WarrenOp.
enum class Op {
  kMax = WARREN_MAX,
  kMin = WARREN_MIN,
  kSum = WARREN_SUM,
  kBitOr = WARREN_BITOR,
  kProduct = WARREN_PROD,
  kBitAnd = WARREN_BITAND,
  kBitXor = WARREN_BITXOR,
  kAverage = WARREN_AVG
};

namespace internal {

inline void Check(int result) {
  if (result != 0) throw Error(WarrenGetLastError());
}

template <typename T>
constexpr int IntegerType() {
  return (sizeof(T) == 1   ? WARREN_INT8
          : sizeof(T) == 4 ? WARREN_INT32
                           : WARREN_INT64) +
         (std::is_unsigned<T>::value ? 1 : 0);
}

/// The WarrenType of elements of type T.
template <typename T>
constexpr int TypeOf() {
  static_assert((std::is_integral<T>::value && !std::is_same<T, bool>::value &&
                 (sizeof(T) == 1 || sizeof(T) == 4 || sizeof(T) == 8)) ||
                    std::is_same<T, float>::value || std::is_same<T, double>::value ||
                    rabit::engine::half::IsFloat16<T>::value || rabit::engine::half::IsBFloat16<T>::value,
                "there is no reduction of elements of this type: give a function that combines two of them");
  return std::is_integral<T>::value                 ? IntegerType<T>()
         : std::is_same<T, float>::value            ? WARREN_FLOAT32
         : std::is_same<T, double>::value           ? WARREN_FLOAT64
         : rabit::engine::half::IsFloat16<T>::value ? WARREN_FLOAT16
                                                    : WARREN_BFLOAT16;
}

/// The size of `count` elements in bytes. Elements that are only moved are sent as bytes.
template <typename T>
std::size_t Bytes(std::size_t count) {
  static_assert(std::is_trivially_copyable<T>::value, "elements are copied by their bytes");
  return count * sizeof(T);
}

template <typename T>
std::vector<std::size_t> Bytes(const std::vector<std::size_t>& counts) {
  std::vector<std::size_t> bytes;
  bytes.reserve(counts.size());
  for (const std::size_t count : counts) bytes.push_back(Bytes<T>(count));
  return bytes;
}

/// Wraps a function of two elements for the C API. The result refers to `combine`, which must outlive it.
template <typename T, typename Combine>
WarrenCustomOp Custom(const Combine& combine) {
  static_assert(std::is_trivially_copyable<T>::value, "elements are copied by their bytes");
  WarrenCustomOp op;
  op.function = [](const void* right, void* left, std::size_t count, void* context) {
    const auto& function = *static_cast<const Combine*>(context);
    for (std::size_t i = 0; i < count; ++i) {
      T lower;
      T higher;
      std::memcpy(&lower, static_cast<const char*>(left) + i * sizeof(T), sizeof(T));
      std::memcpy(&higher, static_cast<const char*>(right) + i * sizeof(T), sizeof(T));
      const T both = function(lower, higher);
      std::memcpy(static_cast<char*>(left) + i * sizeof(T), &both, sizeof(T));
    }
    return 0;
  };
  op.context = const_cast<void*>(static_cast<const void*>(&combine));
  op.element_bytes = sizeof(T);
  op.release = nullptr;
  return op;
}

/// Like Custom, but refers to a copy of the function, which is freed when no call needs it anymore.
template <typename T, typename Combine>
WarrenCustomOp OwnCustom(Combine combine) {
  std::unique_ptr<Combine> own(new Combine(std::move(combine)));
  WarrenCustomOp op = Custom<T>(*own);
  op.release = [](void* context) { delete static_cast<Combine*>(context); };
  own.release();  // NOLINT(bugprone-unused-return-value): the call frees it
  return op;
}

}  // namespace internal

/// See WarrenInit.
inline void Init(int argc = 0, char** argv = nullptr) {
  internal::Check(WarrenInit(argc, argv));
}
/// See WarrenFinalize.
inline void Finalize() {
  internal::Check(WarrenFinalize());
}

/// Reports to people who watch the job that the program has finished `round`, counted from 1, out of `of`
/// rounds (0: unknown), with its metrics, e.g. {{"loss", 0.25}}. See WarrenReportProgress.
inline void ReportProgress(long long round, long long of = 0,
                           const std::vector<std::pair<std::string, double>>& metrics = {}) {
  std::vector<const char*> names;
  std::vector<double> values;
  for (const auto& metric : metrics) {
    names.push_back(metric.first.c_str());
    values.push_back(metric.second);
  }
  internal::Check(WarrenReportProgress(round, of, names.data(), values.data(), names.size()));
}

/// An asynchronous operation. If the handle is destroyed without Wait, the operation still runs, but its
/// error is lost unless WhenDone was called.
class Handle {
 public:
  Handle() = default;

  /// Waits until the operation has ended. Throws the operation's error, if any. The handle is empty
  /// afterwards.
  void Wait() { internal::Check(WarrenWait(handle_.release())); }
  /// Whether the operation has ended, successfully or not.
  bool Test() const {
    int done = 0;
    internal::Check(WarrenTest(handle_.get(), &done));
    return done != 0;
  }
  /// Calls `function` once the operation has ended, with the operation's error message or, if there was no
  /// error, null; see WarrenWhenDone. May be called only once per operation. The function must not throw.
  void WhenDone(std::function<void(const char* error)> function) const {
    using Function = std::function<void(const char*)>;
    std::unique_ptr<Function> kept(new Function(std::move(function)));
    internal::Check(WarrenWhenDone(
        handle_.get(),
        [](const char* error, void* context) noexcept {
          const std::unique_ptr<Function> called(static_cast<Function*>(context));
          (*called)(error);
        },
        kept.get()));
    kept.release();  // NOLINT(bugprone-unused-return-value): the call frees it
  }

 private:
  friend class Communicator;
  friend class Coordinator;
  friend class Mailbox;
  explicit Handle(WarrenHandle made) : handle_(made) {}

  struct Free {
    void operator()(WarrenHandle handle) const { WarrenHandleFree(handle); }
  };
  std::unique_ptr<WarrenHandle_, Free> handle_;
};

/// Waits for all operations. Then, if any have failed, throws the error of the first of these in `handles`.
inline void WaitAll(std::vector<Handle>& handles) {
  std::string first;
  for (Handle& handle : handles) {
    try {
      handle.Wait();
    } catch (const Error& error) {
      if (first.empty()) first = error.what();
    }
  }
  if (!first.empty()) throw Error(first);
}

/// Options of an asynchronous call; see WarrenCallOptions.
struct CallOptions {
  // NOLINTNEXTLINE(google-explicit-constructor)
  CallOptions(std::string name_ = std::string(), double timeout_seconds_ = 0)
      : name(std::move(name_)), timeout_seconds(timeout_seconds_) {}

  std::string name;
  double timeout_seconds;
};

namespace internal {

/// Converts options for the C API. The result is valid as long as `options` exists.
inline WarrenCallOptions InC(const CallOptions& options) {
  WarrenCallOptions wanted = WARREN_CALL_OPTIONS;
  wanted.name = options.name.c_str();
  wanted.timeout_seconds = options.timeout_seconds;
  return wanted;
}

}  // namespace internal

/// A function with which ranks exchange short records before they are linked: takes this rank's record and
/// returns the records of all ranks, in rank order. See WarrenRendezvous.
using AllgatherRecords = std::function<std::vector<std::string>(const std::string& record)>;

namespace internal {

/// Wraps AllgatherRecords for the C API. Check rethrows any exception that the function has thrown.
class Rendezvous {
 public:
  Rendezvous(int rank, int size, const AllgatherRecords& allgather) : allgather_(allgather) {
    rendezvous_.struct_bytes = sizeof(rendezvous_);
    rendezvous_.rank = rank;
    rendezvous_.size = size;
    rendezvous_.allgather = &Rendezvous::Allgather;
    rendezvous_.context = this;
  }
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  const WarrenRendezvous* get() const { return &rendezvous_; }
  void Check(int result) {
    if (thrown_) std::rethrow_exception(thrown_);
    internal::Check(result);
  }

 private:
  static int Allgather(const void* record, std::size_t bytes,
                       void (*give)(void* records, const void* record, std::size_t bytes), void* records,
                       char* /*error*/, std::size_t /*error_bytes*/, void* context) {
    Rendezvous& self = *static_cast<Rendezvous*>(context);
    try {
      const std::string own(static_cast<const char*>(record), bytes);
      for (const std::string& one : self.allgather_(own)) give(records, one.data(), one.size());
      return 0;
    } catch (...) {
      self.thrown_ = std::current_exception();
      return 1;
    }
  }

  const AllgatherRecords& allgather_;
  WarrenRendezvous rendezvous_;
  std::exception_ptr thrown_;
};

}  // namespace internal

/// A group of ranks. Copies refer to the same communicator, which is freed with the last of them. For the
/// order of calls and the threads that may make them, see warren/c_api.h.
class Communicator {
 public:
  /// An empty object: no communicator, as returned by Split to ranks that are in no group.
  Communicator() = default;
  explicit operator bool() const { return comm_ != nullptr; }

  int rank() const { return rank_; }
  int size() const { return size_; }
  /// Translates a rank of this communicator to its rank in the world.
  int RankInWorld(int rank) const {
    int world = 0;
    internal::Check(WarrenCommRankInWorld(get(), rank, &world));
    return world;
  }
  /// The handle for functions of the C API; this object keeps ownership.
  WarrenComm get() const { return comm_.get(); }
  /// Sets how many seconds each further call of this rank on this communicator may wait for a rank that is
  /// alive, unless the call's options set a timeout. See WarrenCommSetTimeout.
  void SetTimeout(double seconds) const { internal::Check(WarrenCommSetTimeout(get(), seconds)); }

  // --- communicators made from this communicator; collective calls unless stated otherwise ---

  /// Makes a communicator of the ranks that pass the same color, ordered by key, then by rank. Returns an
  /// empty object if the color is negative.
  Communicator Split(int color, int key = 0) const {
    WarrenComm made = nullptr;
    internal::Check(WarrenCommSplit(get(), color, key, &made));
    return Communicator(made);
  }
  /// Makes a communicator of these ranks, in this order; all ranks pass the same list. Returns an empty
  /// object to ranks that are not in the list.
  Communicator Create(const std::vector<int>& ranks) const {
    WarrenComm made = nullptr;
    internal::Check(WarrenCommCreate(get(), ranks.data(), ranks.size(), &made));
    return Communicator(made);
  }
  /// Makes a communicator of the ranks on this host.
  Communicator Local() const {
    WarrenComm made = nullptr;
    internal::Check(WarrenCommLocal(get(), &made));
    return Communicator(made);
  }
  /// Makes a communicator of the ranks that have the same local rank.
  Communicator Cross() const {
    WarrenComm made = nullptr;
    internal::Check(WarrenCommCross(get(), &made));
    return Communicator(made);
  }
  /// Makes a communicator of these ranks, in this order; only these ranks call it. See WarrenCommGroup. Also
  /// throws whatever `allgather` throws.
  Communicator Group(const std::vector<int>& ranks, const std::string& name,
                     const AllgatherRecords& allgather) const {
    const auto own = std::find(ranks.begin(), ranks.end(), rank()) - ranks.begin();
    internal::Rendezvous rendezvous(static_cast<int>(own), static_cast<int>(ranks.size()), allgather);
    WarrenComm made = nullptr;
    rendezvous.Check(
        WarrenCommGroup(get(), ranks.data(), ranks.size(), name.c_str(), rendezvous.get(), &made));
    return Communicator(made);
  }

  // --- reductions: by an operation, or by a function `T combine(T lower_ranks, T higher_ranks)` ---

  template <typename T>
  void Allreduce(const T* send, T* recv, std::size_t count, Op op) const {
    internal::Check(WarrenAllreduce(get(), send, recv, count, internal::TypeOf<T>(), static_cast<int>(op)));
  }
  template <typename T>
  void Allreduce(T* in_place, std::size_t count, Op op) const {
    Allreduce(in_place, in_place, count, op);
  }
  template <typename T, typename Combine>
  void AllreduceBy(const T* send, T* recv, std::size_t count, const Combine& combine) const {
    const WarrenCustomOp op = internal::Custom<T>(combine);
    internal::Check(WarrenAllreduceCustom(get(), send, recv, count, &op));
  }

  /// Only the root gets the result; the other ranks' recv may be null.
  template <typename T>
  void Reduce(const T* send, T* recv, std::size_t count, Op op, int root) const {
    internal::Check(
        WarrenReduce(get(), send, recv, count, internal::TypeOf<T>(), static_cast<int>(op), root));
  }
  template <typename T, typename Combine>
  void ReduceBy(const T* send, T* recv, std::size_t count, const Combine& combine, int root) const {
    const WarrenCustomOp op = internal::Custom<T>(combine);
    internal::Check(WarrenReduceCustom(get(), send, recv, count, &op, root));
  }

  /// Each rank gets a slice of `count` elements; send has count * size() elements.
  template <typename T>
  void ReduceScatter(const T* send, T* recv, std::size_t count, Op op) const {
    internal::Check(
        WarrenReduceScatter(get(), send, recv, count, internal::TypeOf<T>(), static_cast<int>(op)));
  }
  /// Rank r's slice has counts[r] elements; all ranks give the same counts.
  template <typename T>
  void ReduceScatter(const T* send, T* recv, const std::vector<std::size_t>& counts, Op op) const {
    RequireCounts(counts);
    internal::Check(
        WarrenReduceScatterV(get(), send, recv, counts.data(), internal::TypeOf<T>(), static_cast<int>(op)));
  }
  template <typename T, typename Combine>
  void ReduceScatterBy(const T* send, T* recv, const std::vector<std::size_t>& counts,
                       const Combine& combine) const {
    RequireCounts(counts);
    const WarrenCustomOp op = internal::Custom<T>(combine);
    internal::Check(WarrenReduceScatterVCustom(get(), send, recv, counts.data(), &op));
  }

  // --- moving elements ---

  template <typename T>
  void Broadcast(T* buffer, std::size_t count, int root) const {
    internal::Check(WarrenBroadcast(get(), buffer, internal::Bytes<T>(count), WARREN_UINT8, root));
  }

  /// recv has count * size() elements.
  template <typename T>
  void Allgather(const T* send, T* recv, std::size_t count) const {
    internal::Check(WarrenAllgather(get(), send, recv, internal::Bytes<T>(count), WARREN_UINT8));
  }
  /// Rank r contributes counts[r] elements; all ranks give the same counts.
  template <typename T>
  void Allgather(const T* send, T* recv, const std::vector<std::size_t>& counts) const {
    RequireCounts(counts);
    const std::vector<std::size_t> bytes = internal::Bytes<T>(counts);
    internal::Check(WarrenAllgatherV(get(), send, recv, bytes.data(), WARREN_UINT8));
  }

  /// The root's recv has count * size() elements; the other ranks' recv may be null.
  template <typename T>
  void Gather(const T* send, T* recv, std::size_t count, int root) const {
    internal::Check(WarrenGather(get(), send, recv, internal::Bytes<T>(count), WARREN_UINT8, root));
  }
  /// This rank contributes `count` elements; only the root needs recv and the counts of all ranks.
  template <typename T>
  void Gather(const T* send, std::size_t count, T* recv, const std::vector<std::size_t>& counts,
              int root) const {
    if (rank() == root) RequireCounts(counts);
    const std::vector<std::size_t> bytes = internal::Bytes<T>(counts);
    internal::Check(
        WarrenGatherV(get(), send, internal::Bytes<T>(count), recv, bytes.data(), WARREN_UINT8, root));
  }

  /// The root's send has count * size() elements; the other ranks' send may be null.
  template <typename T>
  void Scatter(const T* send, T* recv, std::size_t count, int root) const {
    internal::Check(WarrenScatter(get(), send, recv, internal::Bytes<T>(count), WARREN_UINT8, root));
  }
  /// This rank gets `count` elements; only the root needs send and the counts of all ranks.
  template <typename T>
  void Scatter(const T* send, const std::vector<std::size_t>& counts, T* recv, std::size_t count,
               int root) const {
    if (rank() == root) RequireCounts(counts);
    const std::vector<std::size_t> bytes = internal::Bytes<T>(counts);
    internal::Check(
        WarrenScatterV(get(), send, bytes.data(), recv, internal::Bytes<T>(count), WARREN_UINT8, root));
  }

  /// send and recv have count * size() elements each and must not overlap.
  template <typename T>
  void AllToAll(const T* send, T* recv, std::size_t count) const {
    internal::Check(WarrenAllToAll(get(), send, recv, internal::Bytes<T>(count), WARREN_UINT8));
  }
  template <typename T>
  void AllToAll(const T* send, const std::vector<std::size_t>& send_counts, T* recv,
                const std::vector<std::size_t>& recv_counts) const {
    RequireCounts(send_counts);
    RequireCounts(recv_counts);
    const std::vector<std::size_t> sent = internal::Bytes<T>(send_counts);
    const std::vector<std::size_t> received = internal::Bytes<T>(recv_counts);
    internal::Check(WarrenAllToAllV(get(), send, sent.data(), recv, received.data(), WARREN_UINT8));
  }

  void Barrier() const { internal::Check(WarrenBarrier(get())); }

  // --- messages ---

  template <typename T>
  void Send(const T* buffer, std::size_t count, int to) const {
    internal::Check(WarrenSend(get(), buffer, internal::Bytes<T>(count), WARREN_UINT8, to));
  }
  template <typename T>
  void Recv(T* buffer, std::size_t count, int from) const {
    internal::Check(WarrenRecv(get(), buffer, internal::Bytes<T>(count), WARREN_UINT8, from));
  }
  template <typename T>
  void SendRecv(const T* send, std::size_t send_count, int to, T* recv, std::size_t recv_count,
                int from) const {
    internal::Check(WarrenSendRecv(get(), send, internal::Bytes<T>(send_count), to, recv,
                                   internal::Bytes<T>(recv_count), from, WARREN_UINT8));
  }

  // --- asynchronous calls, see WarrenAllreduceAsync etc.; buffers belong to the operation until it ends ---

  template <typename T>
  Handle AsyncAllreduce(const T* send, T* recv, std::size_t count, Op op,
                        const CallOptions& options = CallOptions()) const {
    return BeginWith(options, WarrenAllreduceAsync, send, recv, count, internal::TypeOf<T>(),
                     static_cast<int>(op));
  }
  template <typename T, typename Combine>
  Handle AsyncAllreduceBy(const T* send, T* recv, std::size_t count, Combine combine,
                          const CallOptions& options = CallOptions()) const {
    const WarrenCustomOp op = internal::OwnCustom<T>(std::move(combine));
    return BeginWith(options, WarrenAllreduceCustomAsync, send, recv, count, &op);
  }
  template <typename T, typename Combine>
  Handle AsyncReduceBy(const T* send, T* recv, std::size_t count, Combine combine, int root,
                       const CallOptions& options = CallOptions()) const {
    const WarrenCustomOp op = internal::OwnCustom<T>(std::move(combine));
    return BeginWith(options, WarrenReduceCustomAsync, send, recv, count, &op, root);
  }
  template <typename T, typename Combine>
  Handle AsyncReduceScatterBy(const T* send, T* recv, const std::vector<std::size_t>& counts, Combine combine,
                              const CallOptions& options = CallOptions()) const {
    RequireCounts(counts);
    const WarrenCustomOp op = internal::OwnCustom<T>(std::move(combine));
    return BeginWith(options, WarrenReduceScatterVCustomAsync, send, recv, counts.data(), &op);
  }
  template <typename T>
  Handle AsyncReduce(const T* send, T* recv, std::size_t count, Op op, int root,
                     const CallOptions& options = CallOptions()) const {
    return BeginWith(options, WarrenReduceAsync, send, recv, count, internal::TypeOf<T>(),
                     static_cast<int>(op), root);
  }
  template <typename T>
  Handle AsyncReduceScatter(const T* send, T* recv, std::size_t count, Op op,
                            const CallOptions& options = CallOptions()) const {
    return BeginWith(options, WarrenReduceScatterAsync, send, recv, count, internal::TypeOf<T>(),
                     static_cast<int>(op));
  }
  template <typename T>
  Handle AsyncReduceScatter(const T* send, T* recv, const std::vector<std::size_t>& counts, Op op,
                            const CallOptions& options = CallOptions()) const {
    RequireCounts(counts);
    return BeginWith(options, WarrenReduceScatterVAsync, send, recv, counts.data(), internal::TypeOf<T>(),
                     static_cast<int>(op));
  }
  template <typename T>
  Handle AsyncBroadcast(T* buffer, std::size_t count, int root,
                        const CallOptions& options = CallOptions()) const {
    return BeginWith(options, WarrenBroadcastAsync, buffer, internal::Bytes<T>(count), WARREN_UINT8, root);
  }
  template <typename T>
  Handle AsyncAllgather(const T* send, T* recv, std::size_t count,
                        const CallOptions& options = CallOptions()) const {
    return BeginWith(options, WarrenAllgatherAsync, send, recv, internal::Bytes<T>(count), WARREN_UINT8);
  }
  template <typename T>
  Handle AsyncAllgather(const T* send, T* recv, const std::vector<std::size_t>& counts,
                        const CallOptions& options = CallOptions()) const {
    RequireCounts(counts);
    return BeginWith(options, WarrenAllgatherVAsync, send, recv, internal::Bytes<T>(counts).data(),
                     WARREN_UINT8);
  }
  template <typename T>
  Handle AsyncGather(const T* send, T* recv, std::size_t count, int root,
                     const CallOptions& options = CallOptions()) const {
    return BeginWith(options, WarrenGatherAsync, send, recv, internal::Bytes<T>(count), WARREN_UINT8, root);
  }
  template <typename T>
  Handle AsyncGather(const T* send, std::size_t count, T* recv, const std::vector<std::size_t>& counts,
                     int root, const CallOptions& options = CallOptions()) const {
    if (rank() == root) RequireCounts(counts);
    return BeginWith(options, WarrenGatherVAsync, send, internal::Bytes<T>(count), recv,
                     internal::Bytes<T>(counts).data(), WARREN_UINT8, root);
  }
  template <typename T>
  Handle AsyncScatter(const T* send, T* recv, std::size_t count, int root,
                      const CallOptions& options = CallOptions()) const {
    return BeginWith(options, WarrenScatterAsync, send, recv, internal::Bytes<T>(count), WARREN_UINT8, root);
  }
  template <typename T>
  Handle AsyncScatter(const T* send, const std::vector<std::size_t>& counts, T* recv, std::size_t count,
                      int root, const CallOptions& options = CallOptions()) const {
    if (rank() == root) RequireCounts(counts);
    return BeginWith(options, WarrenScatterVAsync, send, internal::Bytes<T>(counts).data(), recv,
                     internal::Bytes<T>(count), WARREN_UINT8, root);
  }
  template <typename T>
  Handle AsyncAllToAll(const T* send, T* recv, std::size_t count,
                       const CallOptions& options = CallOptions()) const {
    return BeginWith(options, WarrenAllToAllAsync, send, recv, internal::Bytes<T>(count), WARREN_UINT8);
  }
  template <typename T>
  Handle AsyncAllToAll(const T* send, const std::vector<std::size_t>& send_counts, T* recv,
                       const std::vector<std::size_t>& recv_counts,
                       const CallOptions& options = CallOptions()) const {
    RequireCounts(send_counts);
    RequireCounts(recv_counts);
    return BeginWith(options, WarrenAllToAllVAsync, send, internal::Bytes<T>(send_counts).data(), recv,
                     internal::Bytes<T>(recv_counts).data(), WARREN_UINT8);
  }
  Handle AsyncBarrier(const CallOptions& options = CallOptions()) const {
    return BeginWith(options, WarrenBarrierAsync);
  }
  template <typename T>
  Handle AsyncSend(const T* buffer, std::size_t count, int to,
                   const CallOptions& options = CallOptions()) const {
    return BeginWith(options, WarrenSendAsync, buffer, internal::Bytes<T>(count), WARREN_UINT8, to);
  }
  template <typename T>
  Handle AsyncRecv(T* buffer, std::size_t count, int from, const CallOptions& options = CallOptions()) const {
    return BeginWith(options, WarrenRecvAsync, buffer, internal::Bytes<T>(count), WARREN_UINT8, from);
  }
  template <typename T>
  Handle AsyncSendRecv(const T* send, std::size_t send_count, int to, T* recv, std::size_t recv_count,
                       int from, const CallOptions& options = CallOptions()) const {
    return BeginWith(options, WarrenSendRecvAsync, send, internal::Bytes<T>(send_count), to, recv,
                     internal::Bytes<T>(recv_count), from, WARREN_UINT8);
  }

  // --- collectives on device memory, enqueued on `stream`, a cudaStream_t ---
  // An operation ends when its work on the stream is done. See WarrenDeviceAllreduce etc. Pass CUDA's half
  // and bfloat16 as rabit::Float16 and rabit::BFloat16.

  template <typename T>
  Handle DeviceAllreduce(const T* send, T* recv, std::size_t count, Op op, void* stream) const {
    return Begin(WarrenDeviceAllreduce, send, recv, count, internal::TypeOf<T>(), static_cast<int>(op),
                 stream);
  }
  /// Each rank gets a slice of `count` elements; send has count * size() elements.
  template <typename T>
  Handle DeviceReduceScatter(const T* send, T* recv, std::size_t count, Op op, void* stream) const {
    return Begin(WarrenDeviceReduceScatter, send, recv, count, internal::TypeOf<T>(), static_cast<int>(op),
                 stream);
  }
  template <typename T>
  Handle DeviceBroadcast(T* buffer, std::size_t count, int root, void* stream) const {
    return Begin(WarrenDeviceBroadcast, buffer, buffer, internal::Bytes<T>(count), WARREN_UINT8, root,
                 stream);
  }
  /// recv has count * size() elements.
  template <typename T>
  Handle DeviceAllgather(const T* send, T* recv, std::size_t count, void* stream) const {
    return Begin(WarrenDeviceAllgather, send, recv, internal::Bytes<T>(count), WARREN_UINT8, stream);
  }

 private:
  /// Calls a function of the C API with the communicator, the arguments and a pointer for the handle.
  template <typename Function, typename... Arguments>
  Handle Begin(Function function, Arguments... arguments) const {
    WarrenHandle made = nullptr;
    internal::Check(function(get(), arguments..., &made));
    return Handle(made);
  }
  /// Like Begin, with the options before the handle.
  template <typename Function, typename... Arguments>
  Handle BeginWith(const CallOptions& options, Function function, Arguments... arguments) const {
    const WarrenCallOptions wanted = internal::InC(options);
    return Begin(function, arguments..., &wanted);
  }

  explicit Communicator(WarrenComm made) {
    if (made == nullptr) return;
    comm_ = std::shared_ptr<WarrenComm_>(made, WarrenCommFree);
    internal::Check(WarrenCommRank(made, &rank_));
    internal::Check(WarrenCommSize(made, &size_));
  }
  friend Communicator World();
  friend Communicator Meet(int rank, int size, const AllgatherRecords& allgather);

  void RequireCounts(const std::vector<std::size_t>& counts) const {
    if (counts.size() == static_cast<std::size_t>(size_)) return;
    throw Error("rank " + std::to_string(rank_) + " of its communicator: " + std::to_string(counts.size()) +
                " counts were given for " + std::to_string(size_) + " ranks");
  }

  std::shared_ptr<WarrenComm_> comm_;
  int rank_ = -1;
  int size_ = 0;
};

/// Returns the communicator of all ranks of the job. Throws Error before Init and after Finalize.
inline Communicator World() {
  WarrenComm world = nullptr;
  internal::Check(WarrenCommWorld(&world));
  return Communicator(world);
}

/// Makes a world of ranks that find each other by means they already share, such as a key-value store. Needs
/// neither Init nor a tracker; see WarrenCommMeet. Also throws whatever `allgather` throws.
inline Communicator Meet(int rank, int size, const AllgatherRecords& allgather) {
  internal::Rendezvous rendezvous(rank, size, allgather);
  WarrenComm made = nullptr;
  rendezvous.Check(WarrenCommMeet(rendezvous.get(), &made));
  return Communicator(made);
}

/// See WarrenCoordinatorOptions. A negative value means the default.
struct CoordinatorOptions {
  long long fusion_bytes = -1;  // NOLINT(google-runtime-int): as in C
  int cycle_us = -1;
  int autotune = -1;
  double stall_warning_seconds = -1;
  double stall_error_seconds = -1;
};

/// Options of a named operation; see WarrenEnqueueOptions.
struct EnqueueOptions {
  EnqueueOptions(int priority_ = 0) : priority(priority_) {}  // NOLINT(google-explicit-constructor)
  EnqueueOptions(std::string group_, std::size_t group_size_, int priority_ = 0)
      : priority(priority_), group(std::move(group_)), group_size(group_size_) {}

  int priority;
  std::string group;
  std::size_t group_size = 0;
};

/// Runs named operations, which ranks may submit in different orders and from any thread; see
/// WarrenCoordinator. Copies refer to the same coordinator; destroying the last of them closes it for all
/// ranks.
class Coordinator {
 public:
  /// Collective: all ranks of the communicator construct one.
  explicit Coordinator(const Communicator& communicator,
                       const CoordinatorOptions& options = CoordinatorOptions()) {
    WarrenCoordinatorOptions wanted = WARREN_COORDINATOR_OPTIONS;
    wanted.fusion_bytes = options.fusion_bytes;
    wanted.cycle_us = options.cycle_us;
    wanted.autotune = options.autotune;
    wanted.stall_warning_seconds = options.stall_warning_seconds;
    wanted.stall_error_seconds = options.stall_error_seconds;
    WarrenCoordinator made = nullptr;
    internal::Check(WarrenCoordinatorCreate(communicator.get(), &wanted, &made));
    coordinator_ = std::shared_ptr<WarrenCoordinator_>(made, Free{communicator.size()});
  }

  /// Returns the rank of the job that joined last; see WarrenCoordinatorJoin.
  int Join() const {
    int last = -1;
    internal::Check(WarrenCoordinatorJoin(coordinator_.get(), &last));
    return last;
  }

  // Buffers belong to the operation until it has ended.

  template <typename T>
  Handle EnqueueAllreduce(const std::string& name, const T* send, T* recv, std::size_t count, Op op,
                          const EnqueueOptions& options = EnqueueOptions()) const {
    return Begin(WarrenEnqueueAllreduce, options, name.c_str(), send, recv, count, internal::TypeOf<T>(),
                 static_cast<int>(op));
  }
  template <typename T, typename Combine>
  Handle EnqueueAllreduceBy(const std::string& name, const T* send, T* recv, std::size_t count,
                            Combine combine, const EnqueueOptions& options = EnqueueOptions()) const {
    const WarrenCustomOp op = internal::OwnCustom<T>(std::move(combine));
    return Begin(WarrenEnqueueAllreduceCustom, options, name.c_str(), send, recv, count, &op);
  }
  template <typename T>
  Handle EnqueueReduceScatter(const std::string& name, const T* send, T* recv,
                              const std::vector<std::size_t>& counts, Op op,
                              const EnqueueOptions& options = EnqueueOptions()) const {
    RequireCounts(counts);
    return Begin(WarrenEnqueueReduceScatterV, options, name.c_str(), send, recv, counts.data(),
                 internal::TypeOf<T>(), static_cast<int>(op));
  }
  template <typename T>
  Handle EnqueueBroadcast(const std::string& name, T* buffer, std::size_t count, int root,
                          const EnqueueOptions& options = EnqueueOptions()) const {
    return Begin(WarrenEnqueueBroadcast, options, name.c_str(), buffer, internal::Bytes<T>(count),
                 WARREN_UINT8, root);
  }
  template <typename T>
  Handle EnqueueAllgather(const std::string& name, const T* send, T* recv,
                          const std::vector<std::size_t>& counts,
                          const EnqueueOptions& options = EnqueueOptions()) const {
    RequireCounts(counts);
    return Begin(WarrenEnqueueAllgatherV, options, name.c_str(), send, recv,
                 internal::Bytes<T>(counts).data(), WARREN_UINT8);
  }
  template <typename T>
  Handle EnqueueAllToAll(const std::string& name, const T* send, const std::vector<std::size_t>& send_counts,
                         T* recv, const std::vector<std::size_t>& recv_counts,
                         const EnqueueOptions& options = EnqueueOptions()) const {
    RequireCounts(send_counts);
    RequireCounts(recv_counts);
    return Begin(WarrenEnqueueAllToAllV, options, name.c_str(), send, internal::Bytes<T>(send_counts).data(),
                 recv, internal::Bytes<T>(recv_counts).data(), WARREN_UINT8);
  }
  Handle EnqueueBarrier(const std::string& name, const EnqueueOptions& options = EnqueueOptions()) const {
    return Begin(WarrenEnqueueBarrier, options, name.c_str());
  }

 private:
  /// Calls a function of the C API with the coordinator, the arguments, the options and a pointer for the
  /// handle.
  template <typename Function, typename... Arguments>
  Handle Begin(Function function, const EnqueueOptions& options, Arguments... arguments) const {
    WarrenEnqueueOptions wanted = WARREN_ENQUEUE_OPTIONS;
    wanted.priority = options.priority;
    wanted.group = options.group.c_str();
    wanted.group_size = options.group_size;
    WarrenHandle made = nullptr;
    internal::Check(function(coordinator_.get(), arguments..., &wanted, &made));
    return Handle(made);
  }

  /// Also keeps the number of ranks, so that the layout of this class stays the same.
  struct Free {
    int size;
    void operator()(WarrenCoordinator coordinator) const { WarrenCoordinatorFree(coordinator); }
  };
  void RequireCounts(const std::vector<std::size_t>& counts) const {
    const Free* const made = std::get_deleter<Free>(coordinator_);
    if (made == nullptr || counts.size() == static_cast<std::size_t>(made->size)) return;
    throw Error(std::to_string(counts.size()) + " counts were given for " + std::to_string(made->size) +
                " ranks");
  }

  std::shared_ptr<WarrenCoordinator_> coordinator_;
};

}  // namespace v1
}  // namespace warren

#endif  // WARREN_COLLECTIVES_H_
