#include "rabit_engine/xgboost/coll_table.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <system_error>

#include "rabit_engine/xgboost/vtable.h"

namespace warren::xgboost {
namespace {

/// The return value of Coll's functions, equivalent to XGBoost's Result: a pointer, null for success. It has
/// a destructor so that, like XGBoost's, it is returned in memory provided by the caller. The caller, which
/// is XGBoost, frees the object that the pointer points to.
class CallResult {
 public:
  CallResult() = default;
  ~CallResult() {}  // NOLINT(modernize-use-equals-default)
  CallResult(const CallResult&) = delete;
  CallResult& operator=(const CallResult&) = delete;

 private:
  [[maybe_unused]] void* failure_ = nullptr;
};
static_assert(sizeof(CallResult) == sizeof(void*));

// The type of Coll's virtual functions, as plain functions that take `this` and at least as many words as any
// of them needs. A function that is called with too many words ignores the extra ones. If the caller passes
// fewer words, the others have arbitrary values, which are not used.
using Function = CallResult (*)(void* self, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word,
                                Word);

thread_local CallHandler* handler_of_thread = nullptr;

std::mutex table_mutex;
std::span<void* const> intercepted;  ///< the table that contains our functions; empty if none yet
std::array<std::atomic<void*>, kNumCollFunctions> own_functions{};

template <CollFunction kFunction>
CallResult Receive(void* self, Word a, Word b, Word c, Word d, Word e, Word f, Word g, Word h, Word i, Word j,
                   Word k, Word l) {
  if (handler_of_thread != nullptr &&
      handler_of_thread->Handle(kFunction, Words{a, b, c, d, e, f, g, h, i, j, k, l})) {
    return {};
  }
  const auto own = reinterpret_cast<Function>(
      own_functions[static_cast<std::size_t>(kFunction)].load(std::memory_order_relaxed));
  return own(self, a, b, c, d, e, f, g, h, i, j, k, l);
}

std::uintptr_t AddressOf(const void* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

/// The memory pages that hold the table.
class Pages {
 public:
  Pages(std::span<void* const> table, const LibraryImage& image) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    begin_ = AddressOf(table.data()) / page * page;
    end_ = (AddressOf(table.data() + table.size()) + page - 1) / page * page;
    // The loader protects whole pages only; the last page of a library's relocated range may also hold
    // writable data.
    were_protected_ = end_ <= AddressOf(image.relocated.end) / page * page;
  }
  void Open() const { Protect(PROT_READ | PROT_WRITE); }
  void Close() const {
    if (were_protected_) Protect(PROT_READ);
  }

 private:
  void Protect(int protection) const {
    void* const address = reinterpret_cast<void*>(begin_);  // NOLINT(performance-no-int-to-ptr)
    if (mprotect(address, end_ - begin_, protection) != 0) {
      throw Refusal("this system does not allow its function table to be changed: " +
                    std::generic_category().message(errno));
    }
  }
  std::uintptr_t begin_;
  std::uintptr_t end_;
  bool were_protected_;
};

}  // namespace

std::span<void* const> FindCollTable(const LibraryImage& image) {
  const std::scoped_lock lock(table_mutex);
  if (image.relocated.Contains(intercepted.data())) return intercepted;
  return FindVtable(image, "N7xgboost10collective4CollE", kNumCollFunctions);
}

void Intercept(std::span<void* const> table, const LibraryImage& image) {
  const std::scoped_lock lock(table_mutex);
  if (intercepted.data() == table.data()) return;
  if (!intercepted.empty()) throw Refusal("another XGBoost of this process already uses Warren's engine");
  const auto put = [&]<CollFunction kFunction>() {
    constexpr auto kIndex = static_cast<std::size_t>(kFunction);
    own_functions[kIndex] = table[kIndex];
    void** const slot = const_cast<void**>(&table[kIndex]);
    __atomic_store_n(slot, reinterpret_cast<void*>(&Receive<kFunction>), __ATOMIC_RELEASE);
  };
  const Pages pages(table, image);
  pages.Open();
  put.operator()<CollFunction::kAllreduce>();
  put.operator()<CollFunction::kBroadcast>();
  put.operator()<CollFunction::kAllgather>();
  put.operator()<CollFunction::kAllgatherV>();
  intercepted = table;
  pages.Close();
}

HandledBy::HandledBy(CallHandler* handler) : before_(handler_of_thread) {
  handler_of_thread = handler;
}

HandledBy::~HandledBy() {
  handler_of_thread = before_;
}

void SetHandler(CallHandler* handler) {
  handler_of_thread = handler;
}

}  // namespace warren::xgboost
