// rabit: allreduce, broadcast and checkpoints for programs that run as several processes.
//
// Every process ("rank") makes the same calls in the same order. Between Init and Finalize:
//
//     rabit::Init(argc, argv);
//     int version = rabit::LoadCheckPoint(&model);          // 0: nothing to load, initialise the model
//     for (int i = version; i < rounds; ++i) {
//       rabit::Allreduce<rabit::op::Sum>(gradient.data(), gradient.size());
//       ...
//       rabit::CheckPoint(&model);                          // ends version i
//     }
//     rabit::Finalize();
//
// Counts are elements, sizes are bytes. Buffers are given in place and belong to the caller; a count of 0 is
// fine. Programs for rabit 0.1 and for the copy inside XGBoost 1.7 compile unchanged, in C++11 and later.
//
// Errors: every call throws dmlc::Error (a std::runtime_error). The message names the rank, the call and
// where it was made. Calls that need other ranks throw before Init and after Finalize; questions (GetRank...)
// answer as a job of one process would. After an error in a collective all further calls throw; Finalize then
// only lets go.
//
// Threads: the thread that calls Init has a rank of its own. A thread that did not call Init uses the
// process's rank, if there is just one. No two threads may use a rank at the same time; questions are free.
//
// The last three arguments of some calls say where the call was made. Leave them to their defaults.
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

/// What an Allreduce computes. For Max and Min of floating point, comparisons decide: an element is replaced
/// by that of a higher rank only when it compares smaller (Max) or larger (Min).
namespace op {
inline namespace warren_v1 {
struct Max;
struct Min;
struct Sum;
struct BitOR;  ///< integers only
}  // namespace warren_v1
}  // namespace op

inline namespace warren_v1 {

/// Joins the job. `key=value` arguments (rabit_tracker_uri=host, rabit_task_id=3...) win over the environment
/// (DMLC_TRACKER_URI...); other arguments are left alone. Without a tracker the job is that of the launcher
/// (mpirun, srun), and without one this process alone; WARREN_BOOTSTRAP=none keeps launched processes apart.
/// Blocks until all ranks have come. A second call in the same thread does nothing. Returns true, or throws.
/// A process that was started as a server or scheduler (DMLC_ROLE) has nothing to do here: it ends with
/// exit(0).
inline bool Init(int argc, char* argv[]);

/// Leaves the job; no call that needs other ranks may follow. Returns true; false when an earlier error had
/// already ended the job for this rank. Throws when the tracker cannot be told.
inline bool Finalize();

/// This process's number, 0 to GetWorldSize() - 1.
inline int GetRank();
/// The number of processes.
inline int GetWorldSize();
/// Whether a tracker or launcher started this process as part of a job.
inline bool IsDistributed();
/// The rank before this one in the ring: the last one before rank 0.
inline int GetRingPrevRank();
/// The name of this host; empty before Init.
inline std::string GetProcessorName();

/// Shows text to the user who watches the job: in the tracker's output, or this process's when there is no
/// tracker. Add the newline yourself.
inline void TrackerPrint(const std::string& msg);
/// The same with printf's format, of any length.
inline void TrackerPrintf(const char* fmt, ...);

/// Makes `size` bytes the same in all ranks: those of rank `root`.
inline void Broadcast(void* sendrecv_data, std::size_t size, int root, const char* _file = _FILE,
                      const int _line = _LINE, const char* _caller = _CALLER);
/// The same for a vector, which is resized. DType has to be trivially copyable.
template <typename DType>
inline void Broadcast(std::vector<DType>* sendrecv_data, int root, const char* _file = _FILE,
                      const int _line = _LINE, const char* _caller = _CALLER);
/// The same for a string, which is resized.
inline void Broadcast(std::string* sendrecv_data, int root, const char* _file = _FILE,
                      const int _line = _LINE, const char* _caller = _CALLER);

/// Replaces every element by the reduction of that element over all ranks; all ranks get the same bits.
///
///     Allreduce<op::Sum>(&data[0], data.size());
///
/// DType: char, int, long, long long, each also unsigned, float, double and 16-bit floats (Float16, BFloat16
/// and the compiler's, half.h) run at full speed; any other type works that OP can combine and that is
/// trivially copyable. 16-bit floats are summed up as floats, and the sum is rounded once, to nearest even.
///
/// `prepare_fun(prepare_arg)` is called first, if given, to fill the buffer. It is not called when the result
/// is known already, as it is for a process that was started again and has not caught up yet.
template <typename OP, typename DType>
inline void Allreduce(DType* sendrecvbuf, std::size_t count, void (*prepare_fun)(void*) = nullptr,
                      void* prepare_arg = nullptr, const char* _file = _FILE, const int _line = _LINE,
                      const char* _caller = _CALLER);
#if DMLC_USE_CXX11
/// The same with a prepare function made by a lambda.
template <typename OP, typename DType>
inline void Allreduce(DType* sendrecvbuf, std::size_t count, std::function<void()> prepare_fun,
                      const char* _file = _FILE, const int _line = _LINE, const char* _caller = _CALLER);
#endif

/// Collects one slice from each rank. The buffer has `total_size` elements in every rank and is made of the
/// ranks' slices, in rank order, without gaps; each rank brings its own and gets the others'.
///
///     slice_begin        where this rank's slice begins, in elements
///     slice_size_or_end  its size, which is what rabit's code takes; or its end, which is what rabit's
///                        documentation names. All ranks have to give the same of the two: only one makes the
///                        slices meet, and that is how it is told which one is meant.
///     size_prev_slice    not used; rabit wanted the size of the slice of the rank before this one
template <typename DType>
inline void Allgather(DType* sendrecvbuf, std::size_t total_size, std::size_t slice_begin,
                      std::size_t slice_size_or_end, std::size_t size_prev_slice, const char* _file = _FILE,
                      const int _line = _LINE, const char* _caller = _CALLER);

/// Loads the newest checkpoint and returns its version. 0: there is none, and the models are untouched.
/// local_model: null, or the model that is this rank's own; then CheckPoint has to be given one, too.
inline int LoadCheckPoint(Serializable* global_model, Serializable* local_model = nullptr);
/// Ends a version: keeps a copy of the models, in memory.
/// global_model: the same in all ranks. local_model: null, or this rank's own. Prefer global models: a local
/// one has to be sent to other ranks to outlive this process.
inline void CheckPoint(const Serializable* global_model, const Serializable* local_model = nullptr);
/// CheckPoint without the copy: remembers the pointer and saves the model only when somebody needs it. The
/// model has to stay alive and unchanged until the last collective before the next checkpoint has returned.
inline void LazyCheckPoint(const Serializable* global_model);
/// How many versions have been ended: the calls of CheckPoint and LazyCheckPoint since Init.
inline int VersionNumber();

/// XGBoost's copy of rabit has these two: one loads nothing and returns 0, the other only ends a version.
inline int LoadCheckPoint();
inline void CheckPoint();

/// Allreduce with a function of your own:
///
///     struct Range { int low, high; };
///     void Join(Range& left, const Range& right) { ... }   // left = left op right
///     rabit::Reducer<Range, Join> reducer;
///     reducer.Allreduce(ranges, count);
///
/// DType has to be trivially copyable, without pointers, and the same in all ranks. `left` always comes from
/// lower ranks than `right`; the function has to be associative. It must not call rabit, except for GetRank
/// and the other questions. An exception from it ends the job for this rank.
template <typename DType, void (*freduce)(DType& dst, const DType& src)>
class Reducer {
 public:
  Reducer();
  /// As the function Allreduce.
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

/// Allreduce of objects that know how to write themselves into max_nbyte bytes. DType needs a default
/// constructor, Save(rabit::Stream&) const, Load(rabit::Stream&) and Reduce(const DType& src, size_t
/// max_nbyte), each rank's object being combined with those of higher ranks.
template <typename DType>
class SerializeReducer {
 public:
  SerializeReducer();
  /// max_nbyte: what one object takes at most, results included; the same in all ranks.
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
