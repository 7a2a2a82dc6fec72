// The code paths whose cost bench/guard counts. `allreduce` and `checkpoint` are repeated TIMES times after
// some warm-up runs; `rows` runs once:
//
//   guard-worker allreduce BYTES TIMES     in a job: float32, sum, in place
//   guard-worker checkpoint BYTES TIMES    in a job: a model of BYTES bytes
//   guard-worker rows FILE                 LibSVM text into memory, with one thread
//
// Prints {"allocations", "copied", "messages", "sent"} of the whole process in these runs: calls to malloc
// and related functions, bytes copied by memcpy, memmove, CopyToShared and CopyPastCaches, system calls that
// send, and the bytes they sent. This program replaces those functions, so all calls in the libraries it
// links are counted, too.
#include <rabit/rabit.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "data/reader.h"
#include "rabit_engine/host/shared_copy.h"

namespace {

struct Counts {
  std::atomic<std::uint64_t> allocations{0}, copied{0}, messages{0}, sent{0};
};
constinit Counts counts;

void Count(std::atomic<std::uint64_t>& counter, std::uint64_t amount) {
  counter.fetch_add(amount, std::memory_order_relaxed);
}

/// Copies backwards if the destination overlaps the end of the source. Calls none of the functions replaced
/// below.
void* Copy(void* to, const void* from, std::size_t bytes) {
  void* const result = to;
  if (static_cast<char*>(to) > static_cast<const char*>(from) &&
      static_cast<char*>(to) < static_cast<const char*>(from) + bytes) {
    to = static_cast<char*>(to) + bytes - 1;
    from = static_cast<const char*>(from) + bytes - 1;
    asm volatile("std\n rep movsb\n cld" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
  } else {
    asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
  }
  return result;
}

ssize_t Sent(long result) {
  Count(counts.messages, 1);
  if (result > 0) Count(counts.sent, static_cast<std::uint64_t>(result));
  return result;
}

}  // namespace

// The functions below are visible to the C++ library as well, whose operator new calls malloc.
#pragma GCC visibility push(default)
extern "C" {

void* __libc_malloc(std::size_t bytes);                           // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(std::size_t count, std::size_t bytes);        // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* memory, std::size_t bytes);            // NOLINT(bugprone-reserved-identifier)
void* __libc_memalign(std::size_t alignment, std::size_t bytes);  // NOLINT(bugprone-reserved-identifier)

void* malloc(std::size_t bytes) {
  Count(counts.allocations, 1);
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  Count(counts.allocations, 1);
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  Count(counts.allocations, 1);
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  Count(counts.allocations, 1);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t bytes) {
  Count(counts.allocations, 1);
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}

void* memcpy(void* to, const void* from, std::size_t bytes) {
  Count(counts.copied, bytes);
  return Copy(to, from, bytes);
}
void* memmove(void* to, const void* from, std::size_t bytes) {
  Count(counts.copied, bytes);
  return Copy(to, from, bytes);
}

ssize_t write(int fd, const void* data, std::size_t bytes) {
  return Sent(syscall(SYS_write, fd, data, bytes));
}
ssize_t writev(int fd, const iovec* parts, int count) {
  return Sent(syscall(SYS_writev, fd, parts, count));
}
ssize_t send(int fd, const void* data, std::size_t bytes, int flags) {
  return Sent(syscall(SYS_sendto, fd, data, bytes, flags, nullptr, 0));
}
ssize_t sendmsg(int fd, const msghdr* message, int flags) {
  return Sent(syscall(SYS_sendmsg, fd, message, flags));
}

}  // extern "C"
#pragma GCC visibility pop

void warren::CopyToShared(void* to, const void* from, std::size_t bytes, Reader /*reader*/) {
  Count(counts.copied, bytes);
  Copy(to, from, bytes);
}
void warren::CopyPastCaches(void* to, const void* from, std::size_t bytes) {
  Count(counts.copied, bytes);
  Copy(to, from, bytes);
}

namespace {

constexpr int kWarmUp = 20;

/// The counts since the Window was constructed.
class Window {
 public:
  Window()
      : allocations_(counts.allocations),
        copied_(counts.copied),
        messages_(counts.messages),
        sent_(counts.sent) {}
  void Print() const {
    const std::uint64_t allocations = counts.allocations - allocations_;
    const std::uint64_t copied = counts.copied - copied_;
    const std::uint64_t messages = counts.messages - messages_;
    const std::uint64_t sent = counts.sent - sent_;
    std::printf(R"({"allocations": %ju, "copied": %ju, "messages": %ju, "sent": %ju})"
                "\n",
                std::uintmax_t{allocations}, std::uintmax_t{copied}, std::uintmax_t{messages},
                std::uintmax_t{sent});
  }

 private:
  std::uint64_t allocations_, copied_, messages_, sent_;
};

struct Model : rabit::Serializable {
  std::vector<char> bytes;
  void Load(rabit::Stream* stream) override { stream->Read(&bytes); }
  void Save(rabit::Stream* stream) const override { stream->Write(bytes); }
};

void Allreduce(std::size_t bytes, int times) {
  std::vector<float> numbers(bytes / sizeof(float), 1.0F);
  const auto once = [&] { rabit::Allreduce<rabit::op::Sum>(numbers.data(), numbers.size()); };
  for (int i = 0; i < kWarmUp; ++i) once();
  const Window window;
  for (int i = 0; i < times; ++i) once();
  window.Print();
}

void Checkpoint(std::size_t bytes, int times) {
  Model model;
  rabit::LoadCheckPoint(&model);
  model.bytes.resize(bytes);
  const auto once = [&] { rabit::CheckPoint(&model); };
  for (int i = 0; i < kWarmUp; ++i) once();
  const Window window;
  for (int i = 0; i < times; ++i) once();
  window.Print();
}

void Rows(const char* path) {
  const Window window;
  warren::data::ReaderOptions options;
  options.threads = 1;
  const auto rows = warren::data::ReadAll<std::uint32_t>(warren::data::ParseDataUri(path), {}, options);
  window.Print();
  if (rows.rows() == 0) std::abort();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 2 ? argv[1] : "";
  if (mode == "rows") {
    Rows(argv[2]);
    return 0;
  }
  if (argc != 4 || (mode != "allreduce" && mode != "checkpoint")) {
    std::fputs("guard-worker allreduce BYTES TIMES | checkpoint BYTES TIMES | rows FILE\n", stderr);
    return 2;
  }
  rabit::Init(0, nullptr);
  (mode == "allreduce" ? Allreduce : Checkpoint)(std::strtoull(argv[2], nullptr, 10), std::atoi(argv[3]));
  rabit::Finalize();
  return 0;
}
