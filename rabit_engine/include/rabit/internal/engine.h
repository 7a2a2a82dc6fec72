// The interface between the inline functions of rabit.h and the library. Programs include rabit.h; this
// header is for the few programs that call the engine directly.
//
// Counts are in elements and sizes in bytes, unless stated otherwise. Errors are thrown as dmlc::Error; the
// message names the call and, if they are known, the rank and the call site. The trailing arguments are the
// call site: leave them at their defaults.
#ifndef RABIT_INTERNAL_ENGINE_H_
#define RABIT_INTERNAL_ENGINE_H_

#include <cstddef>
#include <string>

#include "rabit/base.h"
#include "rabit/serializable.h"

namespace MPI {
/// The element type of a reduction, as MPI's reduction functions receive it. Only its size is available:
/// rabit::engine::ReduceHandle::TypeSize.
class Datatype;
}  // namespace MPI

namespace rabit {
namespace engine {
inline namespace warren_v1 {

/// The engine as seen by one thread; returned by GetEngine. Functions without a comment correspond to the
/// functions of the same names in rabit.h (GetHost to GetProcessorName).
class IEngine {
 public:
  /// Fills a buffer before it is reduced.
  typedef void(PreprocFunction)(void* arg);
  /// dst[i] = dst[i] op src[i] for i in [0, count), where dst comes from lower ranks than src. Both are
  /// aligned to the largest power of two that divides the element size, up to 64 bytes.
  typedef void(ReduceFunction)(const void* src, void* dst, int count, const MPI::Datatype& dtype);

  virtual ~IEngine() {}

  /// This rank's slice is bytes [slice_begin, slice_end) of total_size; size_prev_slice is not used.
  virtual void Allgather(void* sendrecvbuf, std::size_t total_size, std::size_t slice_begin,
                         std::size_t slice_end, std::size_t size_prev_slice, const char* _file = _FILE,
                         const int _line = _LINE, const char* _caller = _CALLER) = 0;
  /// `reducer` combines elements of type_nbytes bytes each.
  virtual void Allreduce(void* sendrecvbuf, std::size_t type_nbytes, std::size_t count,
                         ReduceFunction reducer, PreprocFunction prepare_fun = nullptr,
                         void* prepare_arg = nullptr, const char* _file = _FILE, const int _line = _LINE,
                         const char* _caller = _CALLER) = 0;
  virtual void Broadcast(void* sendrecvbuf, std::size_t size, int root, const char* _file = _FILE,
                         const int _line = _LINE, const char* _caller = _CALLER) = 0;
  /// Obsolete: throws dmlc::Error. In rabit, tests restored an engine with this function after an exception.
  virtual void InitAfterException() = 0;
  virtual int LoadCheckPoint(Serializable* global_model, Serializable* local_model = nullptr) = 0;
  virtual void CheckPoint(const Serializable* global_model, const Serializable* local_model = nullptr) = 0;
  virtual void LazyCheckPoint(const Serializable* global_model) = 0;
  virtual int LoadCheckPoint() = 0;
  virtual void CheckPoint() = 0;
  virtual int VersionNumber() const = 0;
  virtual int GetRingPrevRank() const = 0;
  virtual int GetRank() const = 0;
  virtual int GetWorldSize() const = 0;
  virtual bool IsDistributed() const = 0;
  virtual std::string GetHost() const = 0;
  virtual void TrackerPrint(const std::string& msg) = 0;

  /// Allgather of rabit.h, whose fourth argument is either the size of the slice or its end; the ranks
  /// determine together which of the two it is. Sizes are in elements of type_nbytes bytes.
  virtual void AllgatherSlice(void* sendrecvbuf, std::size_t type_nbytes, std::size_t total_size,
                              std::size_t slice_begin, std::size_t slice_size_or_end,
                              const char* _file = _FILE, const int _line = _LINE,
                              const char* _caller = _CALLER) = 0;
};

/// Implements rabit::Init.
RABIT_EXPORT bool Init(int argc, char* argv[]);
/// Implements rabit::Finalize.
RABIT_EXPORT bool Finalize();
/// Returns this thread's engine: never null, valid until the process ends. Before Init and after Finalize,
/// queries return defaults (rank 0, world size 1, not distributed, version 0), TrackerPrint prints to
/// standard output, and all other calls throw dmlc::Error.
RABIT_EXPORT IEngine* GetEngine();

}  // namespace warren_v1

namespace mpi {
inline namespace warren_v1 {

/// The built-in operations.
enum OpType : int { kMax = 0, kMin = 1, kSum = 2, kBitwiseOR = 3 };

/// The built-in element types.
enum DataType : int {
  kChar = 0,
  kUChar = 1,
  kInt = 2,
  kUInt = 3,
  kLong = 4,
  kULong = 5,
  kFloat = 6,
  kDouble = 7,
  kLongLong = 8,
  kULongLong = 9,
  kFloat16 = 10,
  kBFloat16 = 11
};

}  // namespace warren_v1
}  // namespace mpi

inline namespace warren_v1 {

/// Calls GetEngine()->Allgather.
RABIT_EXPORT void Allgather(void* sendrecvbuf, std::size_t total_size, std::size_t slice_begin,
                            std::size_t slice_end, std::size_t size_prev_slice, const char* _file = _FILE,
                            const int _line = _LINE, const char* _caller = _CALLER);

/// Allreduce with a built-in operation and type. The engine uses its own kernels; `red` must do the same as
/// `op`, or be null.
RABIT_EXPORT void Allreduce_(void* sendrecvbuf, std::size_t type_nbytes, std::size_t count,
                             IEngine::ReduceFunction red, mpi::DataType dtype, mpi::OpType op,
                             IEngine::PreprocFunction prepare_fun = nullptr, void* prepare_arg = nullptr,
                             const char* _file = _FILE, const int _line = _LINE,
                             const char* _caller = _CALLER);

/// A reduction function for many calls, as held by Reducer and SerializeReducer of rabit.h.
class ReduceHandle {
 public:
  ReduceHandle() : function_(nullptr) {}

  /// Must be called once, before Allreduce.
  void Init(IEngine::ReduceFunction redfunc, std::size_t type_nbytes) {
    (void)type_nbytes;
    utils::Assert(function_ == nullptr, "a ReduceHandle can be initialised only once");
    function_ = redfunc;
  }

  void Allreduce(void* sendrecvbuf, std::size_t type_nbytes, std::size_t count,
                 IEngine::PreprocFunction prepare_fun = nullptr, void* prepare_arg = nullptr,
                 const char* _file = _FILE, const int _line = _LINE, const char* _caller = _CALLER) {
    utils::Assert(function_ != nullptr, "a ReduceHandle has to be initialised before Allreduce");
    GetEngine()->Allreduce(sendrecvbuf, type_nbytes, count, function_, prepare_fun, prepare_arg, _file, _line,
                           _caller);
  }

  /// Returns the size in bytes of one element of the type that a reduction function has received.
  RABIT_EXPORT static int TypeSize(const MPI::Datatype& dtype);

 private:
  IEngine::ReduceFunction* function_;
};

}  // namespace warren_v1
}  // namespace engine
}  // namespace rabit
#endif  // RABIT_INTERNAL_ENGINE_H_
