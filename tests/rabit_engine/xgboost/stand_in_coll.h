// Stand-ins for XGBoost's communication classes, with the layouts and calling conventions of its versions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace stand_in {

/// Holds a pointer and is returned in the caller's memory, like XGBoost's class. Null means success.
class Result {
 public:
  Result() = default;
  explicit Result(std::string text) : text_(std::make_unique<std::string>(std::move(text))) {}
  bool OK() const { return text_ == nullptr; }
  const std::string& text() const { return *text_; }

 private:
  std::unique_ptr<std::string> text_;
};

/// The span of XGBoost 3.0 and later, which is passed in registers.
template <typename Element>
struct Span {
  std::size_t size;
  Element* data;
};
/// The span of XGBoost 2.1, which has its own copy constructor and is thus passed by address.
template <typename Element>
struct CopiedSpan {
  CopiedSpan(std::size_t the_size, Element* the_data) : size(the_size), data(the_data) {}
  CopiedSpan(const CopiedSpan& other)
      : size(other.size), data(other.data) {}  // NOLINT(modernize-use-equals-default)
  CopiedSpan& operator=(const CopiedSpan&) = default;
  std::size_t size;
  Element* data;
};

enum class Type : std::int8_t { kF2, kF4, kF8, kF16, kI1, kI2, kI4, kI8, kU1, kU2, kU4, kU8 };
enum class Op { kMax, kMin, kSum, kBitwiseAND, kBitwiseOR, kBitwiseXOR };
enum class AllgatherVAlgo { kRing = 0, kBcast = 1 };
struct Context {
  int nthread = 1;
};

// The parameters before the communicator, with a trailing comma.
#define STAND_IN_NOTHING
#define STAND_IN_CONTEXT ::stand_in::Context const* /*context*/,

// The virtual functions of Coll, in declaration order. `FIRST` and `SPAN` define the calling convention.
#define STAND_IN_COLL(NAME, COMM, FIRST, SPAN)                                                               \
  class NAME : public std::enable_shared_from_this<NAME> {                                                   \
   public:                                                                                                   \
    virtual ~NAME() noexcept(false) {}                                                                       \
    virtual NAME* MakeCUDAVar() { return nullptr; }                                                          \
    virtual ::stand_in::Result Allreduce(FIRST COMM const& comm, SPAN<std::int8_t> data,                     \
                                         ::stand_in::Type type, ::stand_in::Op op);                          \
    virtual ::stand_in::Result Broadcast(FIRST COMM const& comm, SPAN<std::int8_t> data, std::int32_t root); \
    virtual ::stand_in::Result Allgather(FIRST COMM const& comm, SPAN<std::int8_t> data);                    \
    virtual ::stand_in::Result AllgatherV(FIRST COMM const& comm, SPAN<std::int8_t const> data,              \
                                          SPAN<std::int64_t const> sizes, SPAN<std::int64_t> recv_segments,  \
                                          SPAN<std::int8_t> recv, ::stand_in::AllgatherVAlgo algo);          \
  };

}  // namespace stand_in
