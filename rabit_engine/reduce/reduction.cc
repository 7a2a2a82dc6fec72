#include "rabit_engine/reduce/reduction.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/scratch.h"
#include "rabit_engine/reduce/kernels.h"

namespace warren {
namespace {

struct TypeFacts {
  std::string_view name;
  std::size_t bytes;
  bool is_integer;
};

// Indexed by DataType. kLong and kULong have 64 bits, like long on all supported platforms.
constexpr TypeFacts kTypes[kNumDataTypes] = {
    {"char", 1, true},      {"unsigned char", 1, true},      {"int", 4, true},      {"unsigned int", 4, true},
    {"long", 8, true},      {"unsigned long", 8, true},      {"float", 4, false},   {"double", 8, false},
    {"long long", 8, true}, {"unsigned long long", 8, true}, {"float16", 2, false}, {"bfloat16", 2, false},
};

// Indexed by ReduceOp.
constexpr std::string_view kOperations[kNumReduceOps] = {"max",     "min",         "sum",        "bitwise or",
                                                         "product", "bitwise and", "bitwise xor"};

// Values may come from a caller's int, so they may be out of range.
bool IsKnown(DataType type) {
  return static_cast<int>(type) < kNumDataTypes;
}
bool IsKnown(ReduceOp operation) {
  return static_cast<int>(operation) < kNumReduceOps;
}

bool IsBitwise(ReduceOp operation) {
  return operation == ReduceOp::kBitOr || operation == ReduceOp::kBitAnd || operation == ReduceOp::kBitXor;
}

const std::byte* At(const void* pointer, std::size_t offset) {
  return static_cast<const std::byte*>(pointer) + offset;
}
std::byte* At(void* pointer, std::size_t offset) {
  return static_cast<std::byte*>(pointer) + offset;
}

using Inputs = std::span<const void* const>;

// --------------------------------------------------------------------------------------- typed reductions

/// Block size in bytes if there are more inputs than one kernel takes: eight blocks of intermediate results
/// and eight of inputs fit into the first-level cache.
constexpr std::size_t kBlockBytes = 2048;
/// The maximum number of inputs of one kernel, and thus of children of a node in CombineBlock.
constexpr std::size_t kWidest = 8;

/// Returns the kernel for exactly this many inputs, or null.
FusedKernel KernelFor(const KernelSet& kernels, std::size_t inputs) {
  switch (inputs) {
    case 2:
      return kernels.two;
    case 3:
      return kernels.three;
    case 4:
      return kernels.four;
    case 8:
      return kernels.eight;
    default:
      return nullptr;
  }
}

/// Divides `inputs` inputs among the children of a node, at most kWidest and as many as some kernel takes.
/// Returns the number of inputs per child (the last child may have fewer), which is a power of two, so that
/// every child is a node of the tree in order.h.
std::size_t InputsPerChild(std::size_t inputs) {
  std::size_t each = 1;
  while (each * kWidest < inputs) each *= kWidest;
  const std::size_t children = (inputs + each - 1) / each;
  return children <= 4 || children == 8 ? each : 4 * each;
}

/// Combines bytes [offset, offset + bytes) of the inputs, at most one block. `out` may lie in an input,
/// because only the last kernel writes to it, and that kernel reads each element before it writes the result.
void CombineBlock(const KernelSet& kernels, void* out, Inputs inputs, std::size_t offset, std::size_t bytes) {
  alignas(64) std::byte partial[kWidest][kBlockBytes];
  const void* children[kWidest];
  const std::size_t each = InputsPerChild(inputs.size());
  std::size_t count = 0;
  for (std::size_t begin = 0; begin < inputs.size(); begin += each, ++count) {
    const Inputs child = inputs.subspan(begin, std::min(each, inputs.size() - begin));
    if (child.size() == 1) {
      children[count] = At(child[0], offset);
    } else {
      CombineBlock(kernels, partial[count], child, offset, bytes);
      children[count] = partial[count];
    }
  }
  KernelFor(kernels, count)(out, children, bytes);
}

/// Like CombineBlock, for at most half a block of 16-bit floats. The result is stored as floats in `out`,
/// which must not overlap any input.
void CombineToFloats(const WideKernels& wide, void* out, Inputs inputs, std::size_t offset,
                     std::size_t bytes) {
  const FusedKernel kernel = inputs.size() == 1 ? wide.widen : KernelFor(wide.widened, inputs.size());
  if (kernel != nullptr) {
    const void* here[kWidest];
    for (std::size_t i = 0; i < inputs.size(); ++i) here[i] = At(inputs[i], offset);
    return kernel(out, here, bytes);
  }
  alignas(64) std::byte partial[kWidest][kBlockBytes];
  const void* children[kWidest];
  const std::size_t each = InputsPerChild(inputs.size());
  std::size_t count = 0;
  for (std::size_t begin = 0; begin < inputs.size(); begin += each, ++count) {
    CombineToFloats(wide, partial[count], inputs.subspan(begin, std::min(each, inputs.size() - begin)),
                    offset, bytes);
    children[count] = partial[count];
  }
  KernelFor(wide.floats, count)(out, children, 2 * bytes);
}

void CombineTyped(const KernelSet& kernels, void* out, Inputs inputs, std::size_t bytes) {
  if (const FusedKernel kernel = KernelFor(kernels, inputs.size())) {
    kernel(out, inputs.data(), bytes);
    return;
  }
  if (kernels.wide != nullptr) {
    for (std::size_t offset = 0; offset < bytes; offset += kBlockBytes / 2) {
      alignas(64) std::byte floats[kBlockBytes];
      const std::size_t block = std::min(kBlockBytes / 2, bytes - offset);
      CombineToFloats(*kernels.wide, floats, inputs, offset, block);
      const void* const result = floats;
      kernels.wide->narrow(At(out, offset), &result, 2 * block);
    }
    return;
  }
  for (std::size_t offset = 0; offset < bytes; offset += kBlockBytes) {
    CombineBlock(kernels, At(out, offset), inputs, offset, std::min(kBlockBytes, bytes - offset));
  }
}

// -------------------------------------------------------------------------------------- custom reductions

/// The maximum size of the pieces passed to a custom function if temporaries are needed, unless one element
/// is larger: small enough for the second-level cache, large enough that the cost of the calls is negligible.
constexpr std::size_t kCustomBlockBytes = 64 << 10;

/// `rows` temporaries for up to `count` elements, each aligned for any type. Small ones need no allocation.
class Temporaries {
 public:
  Temporaries(std::size_t rows, std::size_t count, std::size_t element_bytes)
      : elements_(std::min(count, std::max<std::size_t>(1, kCustomBlockBytes / element_bytes))),
        row_bytes_((elements_ * element_bytes + 63) / 64 * 64) {
    if (rows * row_bytes_ > sizeof(small_)) large_ = Scratch(rows * row_bytes_);
  }

  /// The number of elements that fit into each row.
  std::size_t elements() const { return elements_; }
  std::byte* Row(std::size_t row) {
    return (large_.data() != nullptr ? large_.data() : small_) + row * row_bytes_;
  }

 private:
  std::size_t elements_;
  std::size_t row_bytes_;
  Scratch large_;
  alignas(64) std::byte small_[2048];
};

struct CustomFunction {
  Reduction::Function function;
  void* context;
  std::size_t element_bytes;

  /// Writes the combination of `count` elements of the inputs, from element `first` on, to `out`, which must
  /// not lie in any input except inputs[0]. The temporary rows from `row` on are free; each level of the tree
  /// except the lowest needs one.
  void Combine(std::byte* out, Inputs inputs, std::size_t first, std::size_t count, Temporaries& temporaries,
               std::size_t row) const {
    if (inputs.size() == 1) {
      const std::byte* input = At(inputs[0], first * element_bytes);
      if (out != input) std::memcpy(out, input, count * element_bytes);
      return;
    }
    const std::size_t left = std::bit_ceil(inputs.size()) / 2;
    Combine(out, inputs.first(left), first, count, temporaries, row);
    const Inputs rest = inputs.subspan(left);
    if (rest.size() == 1) {
      function(At(rest[0], first * element_bytes), out, count, context);
    } else {
      Combine(temporaries.Row(row), rest, first, count, temporaries, row + 1);
      function(temporaries.Row(row), out, count, context);
    }
  }

  void CombineAll(void* out, Inputs inputs, std::size_t count) const {
    // A function changes its left operand in place. If `out` is also a later input, which is still to be
    // read, the result must first be stored in a temporary.
    const Inputs later = inputs.subspan(1);
    const bool needs_copy = std::ranges::find(later, out) != later.end();
    if (inputs.size() == 2 && out == inputs[0] && !needs_copy) {
      function(inputs[1], out, count, context);
      return;
    }
    const std::size_t levels = std::bit_width(inputs.size() - 1);
    Temporaries temporaries(levels - 1 + (needs_copy ? 1 : 0), count, element_bytes);
    for (std::size_t first = 0; first < count; first += temporaries.elements()) {
      const std::size_t elements = std::min(temporaries.elements(), count - first);
      std::byte* const here = At(out, first * element_bytes);
      if (needs_copy) {
        Combine(temporaries.Row(0), inputs, first, elements, temporaries, 1);
        std::memcpy(here, temporaries.Row(0), elements * element_bytes);
      } else {
        Combine(here, inputs, first, elements, temporaries, 0);
      }
    }
  }
};

}  // namespace

std::size_t SizeOf(DataType type) {
  if (!IsKnown(type)) throw Misuse("there is no data type " + std::to_string(static_cast<int>(type)));
  return kTypes[static_cast<int>(type)].bytes;
}

std::string_view Name(DataType type) {
  return IsKnown(type) ? kTypes[static_cast<int>(type)].name : "unknown type";
}

std::string_view Name(ReduceOp operation) {
  return IsKnown(operation) ? kOperations[static_cast<int>(operation)] : "unknown operation";
}

bool IsDefined(DataType type, ReduceOp operation) {
  if (!IsKnown(type) || !IsKnown(operation)) return false;
  return kTypes[static_cast<int>(type)].is_integer || !IsBitwise(operation);
}

Reduction Reduction::Typed(DataType type, ReduceOp operation) {
  return Typed(type, operation, BestKernels());
}

Reduction Reduction::Typed(DataType type, ReduceOp operation, const KernelTable& kernels) {
  if (!IsDefined(type, operation)) {
    throw Misuse("operation " + std::to_string(static_cast<int>(operation)) + " (" +
                 std::string(Name(operation)) + ") does not exist for data type " +
                 std::to_string(static_cast<int>(type)) + " (" + std::string(Name(type)) + ")" +
                 (IsKnown(type) && IsKnown(operation) ? "; bitwise operations take integers only" : ""));
  }
  Reduction reduction;
  reduction.kernels_ = &kernels.sets[static_cast<int>(type)][static_cast<int>(operation)];
  reduction.element_bytes_ = SizeOf(type);
  reduction.type_ = type;
  reduction.operation_ = operation;
  reduction.rounds_ = reduction.kernels_->wide != nullptr;
  reduction.order_matters_ = !kTypes[static_cast<int>(type)].is_integer;
  return reduction;
}

Reduction Reduction::Custom(Function function, void* context, std::size_t element_bytes) {
  if (function == nullptr) throw Misuse("a custom reduction needs a function, not a null pointer");
  if (element_bytes == 0) throw Misuse("the elements of a custom reduction need at least one byte each");
  Reduction reduction;
  reduction.function_ = function;
  reduction.context_ = context;
  reduction.element_bytes_ = element_bytes;
  return reduction;
}

Reduction Reduction::Wide() const {
  Reduction wide = *this;
  wide.kernels_ = &kernels_->wide->floats;
  wide.element_bytes_ = sizeof(float);
  wide.type_ = DataType::kFloat;
  wide.rounds_ = false;
  return wide;
}

void Reduction::Widen(void* floats, const void* elements, std::size_t count) const {
  kernels_->wide->widen(floats, &elements, count * element_bytes_);
}

void Reduction::Narrow(void* elements, const void* floats, std::size_t count) const {
  kernels_->wide->narrow(elements, &floats, count * sizeof(float));
}

void Reduction::Combine(void* out, const void* left, const void* right, std::size_t count) const {
  const void* const inputs[] = {left, right};
  CombineAll(out, inputs, count);
}

void Reduction::CombineAll(void* out, std::span<const void* const> inputs, std::size_t count) const {
  if (inputs.empty()) throw Misuse("there is nothing to combine: CombineAll needs at least one input");
  if (count == 0) return;
  if (inputs.size() == 1) {
    if (out != inputs[0]) std::memcpy(out, inputs[0], count * element_bytes_);
  } else if (is_custom()) {
    CustomFunction{function_, context_, element_bytes_}.CombineAll(out, inputs, count);
  } else {
    CombineTyped(*kernels_, out, inputs, count * element_bytes_);
  }
}

}  // namespace warren
