// rabit: allreduce, broadcast and checkpoints for programs that run as several processes.
//
// Every process ("rank") makes the same calls in the same order. Between Init and Finalize:
//
//     rabit::Init(argc, argv);
//     int version = rabit::LoadCheckPoint(&model);          // 0: nothing to load, initialize the model
//     for (int i = version; i < rounds; ++i) {
//       rabit::Allreduce<rabit::op::Sum>(gradient.data(), gradient.size());
//       ...
//       rabit::CheckPoint(&model);                          // ends version i
//     }
//     rabit::Finalize();
//
// Counts are in elements, sizes in bytes. Buffers are used in place and belong to the caller; counts may be
// 0. Programs for rabit 0.1 and for the copy in XGBoost 1.7 compile unchanged, in C++11 and later.
//
// Errors are thrown as dmlc::Error (a std::runtime_error). The message names the call and, if they are known,
// the rank and the call site. Calls that need other ranks throw before Init and after Finalize; queries
// (GetRank...) then return what a job of one process would return. After an error in a collective, except an
// invalid argument that is found before the call begins, all further calls that need other ranks throw;
// Finalize then only frees resources and returns false.
//
// Threads: each thread that calls Init has its own rank. A thread that has not called Init uses the process's
// rank if the process has only one. Two threads must not use a rank at the same time, except for queries.
//
// The last three arguments of some calls are the call site. Leave them at their defaults.
#ifndef RABIT_RABIT_H_
#define RABIT_RABIT_H_

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#ifndef DMLC_USE_CXX11
#define DMLC_USE_CXX11 1
#endif

#include "rabit/base.h"
#include "rabit/half.h"
#include "rabit/internal/engine.h"
#include "rabit/serializable.h"

namespace rabit {

/// The operations of an Allreduce. Max and Min of floating point depend on comparisons: an element is
/// replaced by a higher rank's element only if it compares smaller (Max) or larger (Min).
namespace op {
inline namespace warren_v1 {
struct Max;
struct Min;
struct Sum;
struct BitOR;  ///< integers only
}  // namespace warren_v1
}  // namespace op

inline namespace warren_v1 {

/// Joins the job. `key=value` arguments (rabit_tracker_uri=host, rabit_task_id=3...) take precedence over the
/// environment (DMLC_TRACKER_URI...); other arguments are ignored. Without a tracker, the process joins the
/// job of its launcher (mpirun, srun); without a launcher, it is a job by itself. With WARREN_BOOTSTRAP=none,
/// each launched process is a job by itself. Blocks until all ranks have joined. A second call in the same
/// thread, without Finalize in between, does nothing. Returns true, or throws. A process started as a server
/// or scheduler (DMLC_ROLE) has nothing to do and exits with code 0.
inline bool Init(int argc, char* argv[]);

/// Leaves the job as soon as all ranks have called this function; no call that needs other ranks may follow,
/// and Init cannot join the same job again. Returns true, or false if an earlier error had already ended the
/// job for this rank. Throws if leaving fails, e.g. because the tracker cannot be reached.
inline bool Finalize();

/// The calling thread's rank, 0 to GetWorldSize() - 1.
inline int GetRank();
/// The number of ranks in the job.
inline int GetWorldSize();
/// Whether the job has a tracker or more than one rank; false before Init and after Finalize.
inline bool IsDistributed();
/// The rank before this one in the ring; the highest rank for rank 0.
inline int GetRingPrevRank();
/// The name of this host; empty before Init and after Finalize.
inline std::string GetProcessorName();

/// Prints text in the tracker's output, or on this process's standard output if there is no tracker. Include
/// the newline.
inline void TrackerPrint(const std::string& msg);
/// Like TrackerPrint, with printf's format; the text may have any length.
inline void TrackerPrintf(const char* fmt, ...);

/// Copies `size` bytes from rank `root` to all ranks.
inline void Broadcast(void* sendrecv_data, std::size_t size, int root, const char* _file = _FILE,
                      const int _line = _LINE, const char* _caller = _CALLER);
/// The same for a vector, which is resized. DType must be trivially copyable.
template <typename DType>
inline void Broadcast(std::vector<DType>* sendrecv_data, int root, const char* _file = _FILE,
                      const int _line = _LINE, const char* _caller = _CALLER);
/// The same for a string, which is resized.
inline void Broadcast(std::string* sendrecv_data, int root, const char* _file = _FILE,
                      const int _line = _LINE, const char* _caller = _CALLER);

/// Replaces every element with the reduction of that element over all ranks; all ranks get the same bits.
///
///     Allreduce<op::Sum>(&data[0], data.size());
///
/// DType: char, int, long, long long, their unsigned variants, float, double and 16-bit floats (Float16,
/// BFloat16 and the compiler's own types, see half.h) run at full speed. Any other trivially copyable type
/// that OP can combine works, too. 16-bit floats are summed as floats, and the sum is rounded once, to
/// nearest even.
///
/// `prepare_fun(prepare_arg)`, if given, is called first, to fill the buffer. It is not called if the result
/// is already known, as in a restarted process that has not caught up yet. An exception from it passes
/// through and ends the job for this rank, like an error in the collective.
template <typename OP, typename DType>
inline void Allreduce(DType* sendrecvbuf, std::size_t count, void (*prepare_fun)(void*) = nullptr,
                      void* prepare_arg = nullptr, const char* _file = _FILE, const int _line = _LINE,
                      const char* _caller = _CALLER);
#if DMLC_USE_CXX11
/// The same with a lambda as the prepare function.
template <typename OP, typename DType>
inline void Allreduce(DType* sendrecvbuf, std::size_t count, std::function<void()> prepare_fun,
                      const char* _file = _FILE, const int _line = _LINE, const char* _caller = _CALLER);
#endif

/// Collects one slice from each rank. The buffer has `total_size` elements on every rank and consists of the
/// ranks' slices, in rank order, without gaps; each rank contributes its own slice and receives the other
/// ranks' slices.
///
///     slice_begin        the start of this rank's slice, in elements
///     slice_size_or_end  the slice's size, as in rabit's code, or its end, as in rabit's documentation. All
///                        ranks must make the same choice. The engine determines which choice was made:
///                        the slices are contiguous for only one of the two.
///     size_prev_slice    not used; rabit required the size of the previous rank's slice
template <typename DType>
inline void Allgather(DType* sendrecvbuf, std::size_t total_size, std::size_t slice_begin,
                      std::size_t slice_size_or_end, std::size_t size_prev_slice, const char* _file = _FILE,
                      const int _line = _LINE, const char* _caller = _CALLER);

/// Loads the newest checkpoint and returns its version. If there is no checkpoint, returns 0 and leaves the
/// models unchanged. local_model: null, or this rank's own model. CheckPoint must be given a local model if
/// and only if the first LoadCheckPoint was; LazyCheckPoint is a CheckPoint without one.
inline int LoadCheckPoint(Serializable* global_model, Serializable* local_model = nullptr);
/// Ends a version: keeps a copy of the models in memory. global_model: the same on all ranks. local_model:
/// null, or this rank's own. Prefer global models: a local model must be sent to other ranks to outlive this
/// process.
inline void CheckPoint(const Serializable* global_model, const Serializable* local_model = nullptr);
/// Like CheckPoint, but makes no copy: remembers the pointer and saves the model only when it is needed. The
/// model must stay alive and unchanged until the last collective before the next checkpoint has returned or,
/// if there is no next checkpoint, until Finalize has returned.
inline void LazyCheckPoint(const Serializable* global_model);
/// The current version: the number of calls of CheckPoint and LazyCheckPoint so far. In a restarted process,
/// it is the job's version once LoadCheckPoint has been called.
inline int VersionNumber();

/// From XGBoost's copy of rabit: LoadCheckPoint loads nothing and returns 0; CheckPoint only ends a version.
inline int LoadCheckPoint();
inline void CheckPoint();

/// Allreduce with a custom function:
///
///     struct Range { int low, high; };
///     void Join(Range& left, const Range& right) { ... }   // left = left op right
///     rabit::Reducer<Range, Join> reducer;
///     reducer.Allreduce(ranges, count);
///
/// DType must be trivially copyable, without pointers, and the same on all ranks. `left` always comes from
/// lower ranks than `right`; the function must be associative. It must not call rabit, except for queries
/// such as GetRank. If it throws, the job ends for this rank.
template <typename DType, void (*freduce)(DType& dst, const DType& src)>
class Reducer {
 public:
  Reducer();
  /// Like the function Allreduce.
  inline void Allreduce(DType* sendrecvbuf, std::size_t count, void (*prepare_fun)(void*) = nullptr,
                        void* prepare_arg = nullptr, const char* _file = _FILE, const int _line = _LINE,
                        const char* _caller = _CALLER);
#if DMLC_USE_CXX11
  inline void Allreduce(DType* sendrecvbuf, std::size_t count, std::function<void()> prepare_fun,
                        const char* _file = _FILE, const int _line = _LINE, const char* _caller = _CALLER);
#endif

 private:
  engine::ReduceHandle handle_;
};

/// Allreduce of objects that serialize themselves into at most max_nbyte bytes. DType needs a default
/// constructor, Save(rabit::Stream&) const, Load(rabit::Stream&) and Reduce(const DType& src, size_t
/// max_nbyte), which combines the object with `src`, an object from higher ranks.
template <typename DType>
class SerializeReducer {
 public:
  SerializeReducer();
  /// max_nbyte: the largest size of a serialized object, results included; the same on all ranks.
  inline void Allreduce(DType* sendrecvobj, std::size_t max_nbyte, std::size_t count,
                        void (*prepare_fun)(void*) = nullptr, void* prepare_arg = nullptr,
                        const char* _file = _FILE, const int _line = _LINE, const char* _caller = _CALLER);
#if DMLC_USE_CXX11
  inline void Allreduce(DType* sendrecvobj, std::size_t max_nbyte, std::size_t count,
                        std::function<void()> prepare_fun, const char* _file = _FILE, const int _line = _LINE,
                        const char* _caller = _CALLER);
#endif

 private:
  engine::ReduceHandle handle_;
  std::string buffer_;
};

}  // namespace warren_v1
}  // namespace rabit

#include "rabit/internal/rabit-inl.h"
#endif  // RABIT_RABIT_H_
