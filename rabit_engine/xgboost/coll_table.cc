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

/// What Coll's functions return, XGBoost's Result: a pointer, null for success. It has a destructor so that
/// it is returned as XGBoost's is, where the caller says; what it points to is the caller's to destroy.
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

// A virtual function, as a function: `this`, and more words than any of them takes. Who is called with words
// too many does not look at them; who calls with fewer has others of its own there, which nobody looks at
// either.
using Function = CallResult (*)(void* self, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word, Word,
                                Word);

thread_local CallHandler* handler_of_thread = nullptr;

std::mutex table_mutex;
std::span<void* const> intercepted;  ///< the table with our functions in it; empty: none
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

/// The pages of these bytes.
struct Pages {
  explicit Pages(std::span<void* const> words) {
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const auto first = reinterpret_cast<std::uintptr_t>(words.data());
    const auto last = first + words.size_bytes();
    begin = first / page * page;
    bytes = (last - begin + page - 1) / page * page;
  }
  void Protect(int protection) const {
    void* const address = reinterpret_cast<void*>(begin);  // NOLINT(performance-no-int-to-ptr)
    if (mprotect(address, bytes, protection) != 0) {
      throw Refusal("this system does not let its table of functions be written: " +
                    std::generic_category().message(errno));
    }
  }
  std::uintptr_t begin;
  std::size_t bytes;
};

}  // namespace

std::span<void* const> FindCollTable(const LibraryImage& image) {
  const std::scoped_lock lock(table_mutex);
  if (image.relocated.Contains(intercepted.data())) return intercepted;
  return FindVtable(image, "N7xgboost10collective4CollE", kNumCollFunctions);
}

void Intercept(std::span<void* const> table) {
  const std::scoped_lock lock(table_mutex);
  if (intercepted.data() == table.data()) return;
  if (!intercepted.empty()) throw Refusal("another XGBoost of this process is served already");
  const auto put = [&]<CollFunction kFunction>() {
    constexpr auto kIndex = static_cast<std::size_t>(kFunction);
    own_functions[kIndex] = table[kIndex];
    void** const slot = const_cast<void**>(&table[kIndex]);
    __atomic_store_n(slot, reinterpret_cast<void*>(&Receive<kFunction>), __ATOMIC_RELEASE);
  };
  const Pages pages(table);
  pages.Protect(PROT_READ | PROT_WRITE);
  put.operator()<CollFunction::kAllreduce>();
  put.operator()<CollFunction::kBroadcast>();
  put.operator()<CollFunction::kAllgather>();
  put.operator()<CollFunction::kAllgatherV>();
  intercepted = table;
  pages.Protect(PROT_READ);
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
