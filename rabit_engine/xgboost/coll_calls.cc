#include "rabit_engine/xgboost/coll_calls.h"

#include <unistd.h>

#include "rabit_engine/base/descriptor.h"

namespace warren::xgboost {
namespace {

// The placement of the integer arguments after `this` in the processor's ABI: the number of registers for the
// first words, and whether a 16-byte argument that does not fit into the remaining registers makes them
// unusable for later arguments.
#if defined(__aarch64__)
constexpr std::size_t kNumRegisters = 7;
constexpr bool kPairEndsRegisters = true;
#else
constexpr std::size_t kNumRegisters = 4;
constexpr bool kPairEndsRegisters = false;
#endif

/// The memory layout of XGBoost's spans.
struct SpanInMemory {
  std::size_t size;
  void* data;
};

template <typename Type>
Type* Pointer(Word word) {
  return reinterpret_cast<Type*>(word);  // NOLINT(performance-no-int-to-ptr)
}

/// Reads the arguments of a call, one after the other, from registers and the stack.
class Arguments {
 public:
  Arguments(Convention convention, const Words& words, Reading reading)
      : convention_(convention), words_(words), reading_(reading) {}

  /// Returns the communicator, which is the first argument or follows a Context.
  const void* Comm() {
    if (convention_ == Convention::kWithContext) One();
    return Pointer<const void>(One());
  }
  /// Reads an enumeration, which has 8 bits or is passed as an int; only the lowest 8 bits are certain to be
  /// defined.
  int Byte() { return static_cast<std::int8_t>(One()); }
  int Int() { return static_cast<int>(One()); }

  SpanInMemory Span() {
    if (convention_ != Convention::kSpansByReference) return Pair();
    const auto* const address = Pointer<const SpanInMemory>(One());
    if (reading_ == Reading::kTrusting) return *address;
    SpanInMemory span{};
    return ReadSafely(address, &span, sizeof(span)) ? span : SpanInMemory{};
  }

 private:
  Word One() {
    if (next_in_register_ < kNumRegisters) return words_[next_in_register_++];
    return words_[next_on_stack_++];
  }
  SpanInMemory Pair() {
    std::size_t* next = &next_on_stack_;
    if (next_in_register_ + 2 <= kNumRegisters) {
      next = &next_in_register_;
    } else if (kPairEndsRegisters) {
      next_in_register_ = kNumRegisters;
    }
    const std::size_t at = *next;
    *next += 2;
    return {words_[at], Pointer<void>(words_[at + 1])};
  }

  Convention convention_;
  const Words& words_;
  Reading reading_;
  std::size_t next_in_register_ = 0;
  std::size_t next_on_stack_ = kNumRegisters;
};

Bytes BytesOf(const SpanInMemory& span) {
  return {span.size, static_cast<std::byte*>(span.data)};
}

/// Reads the arguments with which every call begins.
template <typename Call>
Call Begin(Arguments& arguments) {
  Call call;
  call.comm = arguments.Comm();
  call.data = BytesOf(arguments.Span());
  return call;
}

}  // namespace

AllreduceCall ReadAllreduce(Convention convention, const Words& words, Reading reading) {
  Arguments arguments(convention, words, reading);
  auto call = Begin<AllreduceCall>(arguments);
  call.type = arguments.Byte();
  call.operation = arguments.Int();
  return call;
}

BroadcastCall ReadBroadcast(Convention convention, const Words& words, Reading reading) {
  Arguments arguments(convention, words, reading);
  auto call = Begin<BroadcastCall>(arguments);
  call.root = arguments.Int();
  return call;
}

AllgatherCall ReadAllgather(Convention convention, const Words& words, Reading reading) {
  Arguments arguments(convention, words, reading);
  return Begin<AllgatherCall>(arguments);
}

AllgatherVCall ReadAllgatherV(Convention convention, const Words& words) {
  Arguments arguments(convention, words, Reading::kTrusting);
  auto call = Begin<AllgatherVCall>(arguments);
  const SpanInMemory sizes = arguments.Span();
  const SpanInMemory segments = arguments.Span();
  call.sizes = {static_cast<const std::int64_t*>(sizes.data), sizes.size};
  call.segments = {static_cast<std::int64_t*>(segments.data), segments.size};
  call.received = BytesOf(arguments.Span());
  return call;
}

std::optional<Convention> ConventionOf(const Words& words, const AllreduceCall& expected) {
  std::optional<Convention> found;
  for (const Convention convention :
       {Convention::kSpansByReference, Convention::kSpansByValue, Convention::kWithContext}) {
    const AllreduceCall call = ReadAllreduce(convention, words, Reading::kSafe);
    if (call.data.size != expected.data.size || call.data.data != expected.data.data ||
        call.type != expected.type || call.operation != expected.operation) {
      continue;
    }
    if (found) return std::nullopt;
    found = convention;
  }
  return found;
}

bool ReadSafely(const void* address, void* out, std::size_t bytes) {
  // write() refuses an invalid address, where memcpy would crash. An empty pipe accepts 4096 bytes without
  // blocking.
  int ends[2];
  if (bytes > 4096 || pipe(ends) != 0) return false;
  const CloseOnForkDescriptor reader(ends[0]);
  const CloseOnForkDescriptor writer(ends[1]);
  const auto length = static_cast<ssize_t>(bytes);
  return write(writer.fd(), address, bytes) == length && read(reader.fd(), out, bytes) == length;
}

}  // namespace warren::xgboost
