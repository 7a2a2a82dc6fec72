// The inline part of rabit.h: maps types and operations to codes and C++ objects to bytes for the engine.
#ifndef RABIT_INTERNAL_RABIT_INL_H_
#define RABIT_INTERNAL_RABIT_INL_H_

#include <cstdarg>
#include <cstddef>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "rabit/half.h"
#include "rabit/internal/io.h"
#include "rabit/internal/utils.h"
#include "rabit/rabit.h"

namespace rabit {
namespace engine {
namespace mpi {
inline namespace warren_v1 {

/// The engine's code for a type; -1 if the engine does not know the type.
template <typename DType>
struct CodeOf_ : std::integral_constant<int, half::IsFloat16<DType>::value    ? static_cast<int>(kFloat16)
                                             : half::IsBFloat16<DType>::value ? static_cast<int>(kBFloat16)
                                                                              : -1> {};
#define RABIT_CODE_OF_(type, code) \
  template <>                      \
  struct CodeOf_<type> : std::integral_constant<int, code> {}
RABIT_CODE_OF_(char, kChar);
RABIT_CODE_OF_(unsigned char, kUChar);
RABIT_CODE_OF_(int, kInt);
RABIT_CODE_OF_(unsigned int, kUInt);
RABIT_CODE_OF_(long, kLong);            // NOLINT(runtime/int): rabit's types are C's
RABIT_CODE_OF_(unsigned long, kULong);  // NOLINT(runtime/int)
RABIT_CODE_OF_(float, kFloat);
RABIT_CODE_OF_(double, kDouble);
RABIT_CODE_OF_(long long, kLongLong);            // NOLINT(runtime/int)
RABIT_CODE_OF_(unsigned long long, kULongLong);  // NOLINT(runtime/int)
#undef RABIT_CODE_OF_

/// The engine's code for a type. Fails to compile if the type has no code.
template <typename DType>
inline DataType GetType() {
  static_assert(CodeOf_<DType>::value >= 0, "the engine does not know this type");
  return static_cast<DataType>(CodeOf_<DType>::value);
}

}  // namespace warren_v1
}  // namespace mpi
}  // namespace engine

namespace op {
inline namespace warren_v1 {

struct Max {
  static const engine::mpi::OpType kType = engine::mpi::kMax;
  template <typename DType>
  inline static void Reduce(DType& dst, const DType& src) {
    if (dst < src) dst = src;
  }
};
struct Min {
  static const engine::mpi::OpType kType = engine::mpi::kMin;
  template <typename DType>
  inline static void Reduce(DType& dst, const DType& src) {
    if (dst > src) dst = src;
  }
};
struct Sum {
  static const engine::mpi::OpType kType = engine::mpi::kSum;
  template <typename DType>
  inline static void Reduce(DType& dst, const DType& src) {
    dst += src;
  }
};
struct BitOR {
  static const engine::mpi::OpType kType = engine::mpi::kBitwiseOR;
  template <typename DType>
  inline static void Reduce(DType& dst, const DType& src) {
    dst |= src;
  }
};

/// Applies an operation elementwise, with the signature that the engine expects.
template <typename OP, typename DType>
inline void Reducer(const void* src, void* dst, int count, const MPI::Datatype&) {
  for (int i = 0; i < count; ++i) OP::Reduce(static_cast<DType*>(dst)[i], static_cast<const DType*>(src)[i]);
}

/// Whether DType is a 16-bit float.
template <typename DType>
struct IsHalf : std::integral_constant<bool, engine::half::IsFloat16<DType>::value ||
                                                 engine::half::IsBFloat16<DType>::value> {};

/// The function for a built-in operation and type. Null for 16-bit floats, because elementwise application
/// would round after each step.
template <typename OP, typename DType>
inline engine::IEngine::ReduceFunction* FunctionOf(std::false_type /*half*/) {
  return Reducer<OP, DType>;
}
template <typename OP, typename DType>
inline engine::IEngine::ReduceFunction* FunctionOf(std::true_type /*half*/) {
  static_assert(!std::is_same<OP, BitOR>::value, "BitOR takes integers");
  return nullptr;
}

/// Whether the engine has a kernel for this operation on this type.
template <typename OP, typename DType>
struct IsTyped
    : std::integral_constant<bool, (std::is_same<OP, Max>::value || std::is_same<OP, Min>::value ||
                                    std::is_same<OP, Sum>::value || std::is_same<OP, BitOR>::value) &&
                                       engine::mpi::CodeOf_<DType>::value >= 0> {};

}  // namespace warren_v1
}  // namespace op

inline namespace warren_v1 {

/// Whether objects of this type can be sent as their bytes. Weaker than std::is_trivially_copyable, which
/// std::pair is not.
template <typename DType>
struct IsBytes_ : std::integral_constant<bool, std::is_trivially_copy_constructible<DType>::value &&
                                                   std::is_trivially_destructible<DType>::value> {};
#define RABIT_REQUIRE_BYTES_(DType) \
  static_assert(                    \
      IsBytes_<DType>::value,       \
      "elements are sent as bytes, which this type does not allow: serialize them, see SerializeReducer")

inline bool Init(int argc, char* argv[]) {
  return engine::Init(argc, argv);
}
inline bool Finalize() {
  return engine::Finalize();
}
inline int GetRank() {
  return engine::GetEngine()->GetRank();
}
inline int GetWorldSize() {
  return engine::GetEngine()->GetWorldSize();
}
inline bool IsDistributed() {
  return engine::GetEngine()->IsDistributed();
}
inline int GetRingPrevRank() {
  return engine::GetEngine()->GetRingPrevRank();
}
inline std::string GetProcessorName() {
  return engine::GetEngine()->GetHost();
}
inline void TrackerPrint(const std::string& msg) {
  engine::GetEngine()->TrackerPrint(msg);
}
inline void TrackerPrintf(const char* fmt, ...) {
  va_list args;
  va_start(args, fmt);
  const std::string text = utils::FormatV(fmt, args);
  va_end(args);
  TrackerPrint(text);
}

inline void Broadcast(void* sendrecv_data, std::size_t size, int root, const char* _file, const int _line,
                      const char* _caller) {
  engine::GetEngine()->Broadcast(sendrecv_data, size, root, _file, _line, _caller);
}
template <typename DType>
inline void Broadcast(std::vector<DType>* sendrecv_data, int root, const char* _file, const int _line,
                      const char* _caller) {
  RABIT_REQUIRE_BYTES_(DType);
  std::size_t size = sendrecv_data->size();
  Broadcast(&size, sizeof(size), root, _file, _line, _caller);
  sendrecv_data->resize(size);
  Broadcast(BeginPtr(*sendrecv_data), size * sizeof(DType), root, _file, _line, _caller);
}
inline void Broadcast(std::string* sendrecv_data, int root, const char* _file, const int _line,
                      const char* _caller) {
  std::size_t size = sendrecv_data->size();
  Broadcast(&size, sizeof(size), root, _file, _line, _caller);
  sendrecv_data->resize(size);
  Broadcast(BeginPtr(*sendrecv_data), size, root, _file, _line, _caller);
}

template <typename OP, typename DType>
inline void AllreduceBy_(std::true_type /*typed*/, DType* sendrecvbuf, std::size_t count,
                         void (*prepare_fun)(void*), void* prepare_arg, const char* _file, const int _line,
                         const char* _caller) {
  engine::Allreduce_(sendrecvbuf, sizeof(DType), count,
                     op::FunctionOf<OP, DType>(std::integral_constant<bool, op::IsHalf<DType>::value>()),
                     engine::mpi::GetType<DType>(), OP::kType, prepare_fun, prepare_arg, _file, _line,
                     _caller);
}
template <typename OP, typename DType>
inline void AllreduceBy_(std::false_type /*typed*/, DType* sendrecvbuf, std::size_t count,
                         void (*prepare_fun)(void*), void* prepare_arg, const char* _file, const int _line,
                         const char* _caller) {
  engine::GetEngine()->Allreduce(sendrecvbuf, sizeof(DType), count, op::Reducer<OP, DType>, prepare_fun,
                                 prepare_arg, _file, _line, _caller);
}
template <typename OP, typename DType>
inline void Allreduce(DType* sendrecvbuf, std::size_t count, void (*prepare_fun)(void*), void* prepare_arg,
                      const char* _file, const int _line, const char* _caller) {
  RABIT_REQUIRE_BYTES_(DType);
  AllreduceBy_<OP, DType>(std::integral_constant<bool, op::IsTyped<OP, DType>::value>(), sendrecvbuf, count,
                          prepare_fun, prepare_arg, _file, _line, _caller);
}

#if DMLC_USE_CXX11
/// Calls the std::function<void()> that `function` points to; used as a prepare function.
inline void InvokeLambda_(void* function) {
  (*static_cast<std::function<void()>*>(function))();
}
template <typename OP, typename DType>
inline void Allreduce(DType* sendrecvbuf, std::size_t count, std::function<void()> prepare_fun,
                      const char* _file, const int _line, const char* _caller) {
  Allreduce<OP, DType>(sendrecvbuf, count,
                       prepare_fun ? InvokeLambda_ : static_cast<void (*)(void*)>(nullptr), &prepare_fun,
                       _file, _line, _caller);
}
#endif

template <typename DType>
inline void Allgather(DType* sendrecvbuf, std::size_t total_size, std::size_t slice_begin,
                      std::size_t slice_size_or_end, std::size_t /*size_prev_slice*/, const char* _file,
                      const int _line, const char* _caller) {
  RABIT_REQUIRE_BYTES_(DType);
  engine::GetEngine()->AllgatherSlice(sendrecvbuf, sizeof(DType), total_size, slice_begin, slice_size_or_end,
                                      _file, _line, _caller);
}

inline int LoadCheckPoint(Serializable* global_model, Serializable* local_model) {
  return engine::GetEngine()->LoadCheckPoint(global_model, local_model);
}
inline void CheckPoint(const Serializable* global_model, const Serializable* local_model) {
  engine::GetEngine()->CheckPoint(global_model, local_model);
}
inline void LazyCheckPoint(const Serializable* global_model) {
  engine::GetEngine()->LazyCheckPoint(global_model);
}
inline int LoadCheckPoint() {
  return engine::GetEngine()->LoadCheckPoint();
}
inline void CheckPoint() {
  engine::GetEngine()->CheckPoint();
}
inline int VersionNumber() {
  return engine::GetEngine()->VersionNumber();
}

template <typename DType, void (*freduce)(DType& dst, const DType& src)>
inline void ReducerFunction_(const void* src, void* dst, int count, const MPI::Datatype&) {
  for (int i = 0; i < count; ++i) freduce(static_cast<DType*>(dst)[i], static_cast<const DType*>(src)[i]);
}
template <typename DType, void (*freduce)(DType& dst, const DType& src)>
inline Reducer<DType, freduce>::Reducer() {
  RABIT_REQUIRE_BYTES_(DType);
  handle_.Init(ReducerFunction_<DType, freduce>, sizeof(DType));
}
template <typename DType, void (*freduce)(DType& dst, const DType& src)>
inline void Reducer<DType, freduce>::Allreduce(DType* sendrecvbuf, std::size_t count,
                                               void (*prepare_fun)(void*), void* prepare_arg,
                                               const char* _file, const int _line, const char* _caller) {
  handle_.Allreduce(sendrecvbuf, sizeof(DType), count, prepare_fun, prepare_arg, _file, _line, _caller);
}

/// An object's serialized form does not fit into its part of the buffer.
struct ObjectTooLarge_ : public dmlc::Error {
  explicit ObjectTooLarge_(std::size_t max_nbyte)
      : dmlc::Error("an object takes more than max_nbyte (" + std::to_string(max_nbyte) +
                    ") bytes; results of Reduce count, too") {}
};

/// The stream into which a SerializeReducer saves an object. Throws ObjectTooLarge_ past the end.
struct ObjectStream_ : public utils::MemoryFixSizeBuffer {
  ObjectStream_(void* buffer, std::size_t max_nbyte)
      : utils::MemoryFixSizeBuffer(buffer, max_nbyte), max_nbyte_(max_nbyte) {}
  utils::Written Write(const void* data, std::size_t size) override {
    const std::size_t at = Tell();
    if (size != 0 && (at > max_nbyte_ || size > max_nbyte_ - at)) throw ObjectTooLarge_(max_nbyte_);
    return utils::MemoryFixSizeBuffer::Write(data, size);
  }

 private:
  std::size_t max_nbyte_;
};

template <typename DType>
inline void SerializeReducerFunction_(const void* src, void* dst, int count, const MPI::Datatype& dtype) {
  const std::size_t bytes = static_cast<std::size_t>(engine::ReduceHandle::TypeSize(dtype));
  for (int i = 0; i < count; ++i) {
    // The const_cast is safe: the stream is only read, but has no const constructor.
    utils::MemoryFixSizeBuffer source(static_cast<char*>(const_cast<void*>(src)) + i * bytes, bytes);
    ObjectStream_ target(static_cast<char*>(dst) + i * bytes, bytes);
    DType left, right;
    left.Load(target);
    right.Load(source);
    left.Reduce(static_cast<const DType&>(right), bytes);
    target.Seek(0);
    left.Save(target);
  }
}
template <typename DType>
inline SerializeReducer<DType>::SerializeReducer() {
  handle_.Init(SerializeReducerFunction_<DType>, sizeof(DType));
}

/// The prepare function of a SerializeReducer: calls the caller's prepare function, then serializes all
/// objects into the buffer.
template <typename DType>
struct SerializeToBuffer_ {
  DType* objects;
  std::size_t count;
  std::size_t max_nbyte;
  std::string* buffer;
  void (*prepare_fun)(void*);
  void* prepare_arg;

  static void Run(void* self_pointer) {
    const SerializeToBuffer_& self = *static_cast<SerializeToBuffer_*>(self_pointer);
    if (self.prepare_fun != nullptr) self.prepare_fun(self.prepare_arg);
    for (std::size_t i = 0; i < self.count; ++i) {
      ObjectStream_ stream(&(*self.buffer)[i * self.max_nbyte], self.max_nbyte);
      self.objects[i].Save(stream);
    }
  }
};
template <typename DType>
inline void SerializeReducer<DType>::Allreduce(DType* sendrecvobj, std::size_t max_nbyte, std::size_t count,
                                               void (*prepare_fun)(void*), void* prepare_arg,
                                               const char* _file, const int _line, const char* _caller) {
  buffer_.assign(max_nbyte * count, '\0');
  SerializeToBuffer_<DType> prepare = {sendrecvobj, count, max_nbyte, &buffer_, prepare_fun, prepare_arg};
  try {
    handle_.Allreduce(BeginPtr(buffer_), max_nbyte, count, SerializeToBuffer_<DType>::Run, &prepare, _file,
                      _line, _caller);
  } catch (const ObjectTooLarge_& error) {
    const std::string place =
        _file != nullptr && _line > 0 ? std::string(" (") + _file + ":" + std::to_string(_line) + ")" : "";
    utils::Error("rank %d: rabit::SerializeReducer::Allreduce%s: %s", GetRank(), place.c_str(), error.what());
  }
  for (std::size_t i = 0; i < count; ++i) {
    utils::MemoryFixSizeBuffer stream(&buffer_[i * max_nbyte], max_nbyte);
    sendrecvobj[i].Load(stream);
  }
}

#if DMLC_USE_CXX11
template <typename DType, void (*freduce)(DType& dst, const DType& src)>
inline void Reducer<DType, freduce>::Allreduce(DType* sendrecvbuf, std::size_t count,
                                               std::function<void()> prepare_fun, const char* _file,
                                               const int _line, const char* _caller) {
  Allreduce(sendrecvbuf, count, prepare_fun ? InvokeLambda_ : static_cast<void (*)(void*)>(nullptr),
            &prepare_fun, _file, _line, _caller);
}
template <typename DType>
inline void SerializeReducer<DType>::Allreduce(DType* sendrecvobj, std::size_t max_nbyte, std::size_t count,
                                               std::function<void()> prepare_fun, const char* _file,
                                               const int _line, const char* _caller) {
  Allreduce(sendrecvobj, max_nbyte, count,
            prepare_fun ? InvokeLambda_ : static_cast<void (*)(void*)>(nullptr), &prepare_fun, _file, _line,
            _caller);
}
#endif

#undef RABIT_REQUIRE_BYTES_

}  // namespace warren_v1
}  // namespace rabit
#endif  // RABIT_INTERNAL_RABIT_INL_H_
