// A stand-in for libxgboost with two ranks, which communicate over a socket made by the test. The symbols,
// layouts and calls are those of XGBoost's communication in one of its versions, or deliberately unlike all
// of them. This file is compiled once for each STAND_IN_... variant that engine_test.cc names.
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/rabit_engine/xgboost/stand_in_coll.h"

#if defined(STAND_IN_BY_REFERENCE)
#define FIRST STAND_IN_NOTHING
#define SPAN ::stand_in::CopiedSpan
#define PASSED
#elif defined(STAND_IN_BY_VALUE)
#define FIRST STAND_IN_NOTHING
#define SPAN ::stand_in::Span
#define PASSED
#elif defined(STAND_IN_NEWER_CONVENTION)  // an invented convention
#define FIRST STAND_IN_CONTEXT std::int64_t /*stream*/,
#define SPAN ::stand_in::Span
#define PASSED &context, std::int64_t{0},
#else
#define FIRST STAND_IN_CONTEXT
#define SPAN ::stand_in::Span
#define PASSED &context,
#endif

namespace xgboost::collective {

class Comm : public std::enable_shared_from_this<Comm> {
 public:
#ifdef STAND_IN_MOVED_FIELDS
  std::int64_t new_field_ = 7;
#endif
  std::int32_t world_ = -1;
  std::int32_t rank_ = 0;
  int socket_ = -1;

  virtual ~Comm() noexcept(false) = default;
  virtual stand_in::Result Block() const {
    return {};
  }
  virtual std::shared_ptr<int> Chan(std::int32_t /*rank*/) const {
    return nullptr;
  }
  virtual bool IsFederated() const = 0;
  virtual stand_in::Result LogTracker(std::string text) const = 0;
};

class RabitComm : public Comm {
 public:
  ~RabitComm() noexcept(false) override = default;
  bool IsFederated() const override { return false; }
  stand_in::Result LogTracker(std::string /*text*/) const override { return {}; }
};

STAND_IN_COLL(Coll, Comm, FIRST, SPAN)

namespace {

/// Sends and receives `bytes` bytes at the same time.
void Swap(const Comm& comm, const void* sent, void* received, std::size_t bytes) {
  const auto* from = static_cast<const char*>(sent);
  auto* to = static_cast<char*>(received);
  std::size_t left_to_send = bytes;
  std::size_t left_to_receive = bytes;
  while (left_to_send + left_to_receive > 0) {
    const ssize_t out =
        left_to_send == 0 ? 0
                          : send(comm.socket_, from, std::min<std::size_t>(left_to_send, 4096), MSG_NOSIGNAL);
    if (out < 0) throw std::runtime_error("the other rank is gone");
    from += out;
    left_to_send -= static_cast<std::size_t>(out);
    const std::size_t wanted = std::min<std::size_t>(left_to_receive, 4096);
    const ssize_t in = wanted == 0 ? 0 : recv(comm.socket_, to, wanted, 0);
    if (wanted > 0 && in <= 0) throw std::runtime_error("the other rank is gone");
    to += in;
    left_to_receive -= static_cast<std::size_t>(in);
  }
}

template <typename Element>
void Combine(SPAN<std::int8_t> data, const std::vector<std::int8_t>& others, stand_in::Op op) {
  for (std::size_t i = 0; i < data.size / sizeof(Element); ++i) {
    Element mine;
    Element other;
    std::memcpy(&mine, data.data + i * sizeof(Element), sizeof(Element));
    std::memcpy(&other, others.data() + i * sizeof(Element), sizeof(Element));
    if (op == stand_in::Op::kSum) mine = static_cast<Element>(mine + other);
    if (op == stand_in::Op::kMax) mine = std::max(mine, other);
    std::memcpy(data.data + i * sizeof(Element), &mine, sizeof(Element));
  }
}

}  // namespace

stand_in::Result Coll::Allreduce(FIRST Comm const& comm, SPAN<std::int8_t> data, stand_in::Type type,
                                 stand_in::Op op) {
  std::vector<std::int8_t> others(data.size);
  Swap(comm, data.data, others.data(), data.size);
  if (type == stand_in::Type::kI8) Combine<std::int64_t>(data, others, op);
  if (type == stand_in::Type::kU8) Combine<std::uint64_t>(data, others, op);
  if (type == stand_in::Type::kF8) Combine<double>(data, others, op);
  if (type == stand_in::Type::kU2) Combine<std::uint16_t>(data, others, op);
  return {};
}

stand_in::Result Coll::Broadcast(FIRST Comm const& comm, SPAN<std::int8_t> data, std::int32_t root) {
  std::vector<std::int8_t> others(data.size);
  Swap(comm, data.data, others.data(), data.size);
  if (comm.rank_ != root) std::copy(others.begin(), others.end(), data.data);
  return {};
}

stand_in::Result Coll::Allgather(FIRST Comm const& comm, SPAN<std::int8_t> data) {
  const std::size_t half = data.size / 2;
  Swap(comm, data.data + half * comm.rank_, data.data + half * (1 - comm.rank_), half);
  return {};
}

stand_in::Result Coll::AllgatherV(FIRST Comm const& /*comm*/, SPAN<std::int8_t const> /*data*/,
                                  SPAN<std::int64_t const> /*sizes*/, SPAN<std::int64_t> /*recv_segments*/,
                                  SPAN<std::int8_t> /*recv*/, stand_in::AllgatherVAlgo /*algo*/) {
  return stand_in::Result("the stand-in's own has no allgather-v");
}

}  // namespace xgboost::collective

namespace {

using xgboost::collective::Coll;
using xgboost::collective::RabitComm;

std::shared_ptr<RabitComm> comm;  // NOLINT(misc-use-internal-linkage)
std::shared_ptr<Coll> coll;
thread_local std::string last_error;
[[maybe_unused]] const stand_in::Context context;

// Calls a function of Coll through its vtable, as XGBoost does, or directly.
#ifdef STAND_IN_WITHOUT_TABLE
#define CALL(FUNCTION) coll->Coll::FUNCTION
#else
#define CALL(FUNCTION) coll->FUNCTION
#endif

template <typename Function>
int Caught(Function&& function) {
  try {
    const stand_in::Result result = function();
    if (result.OK()) return 0;
    last_error = result.text();
  } catch (const std::exception& error) {
    last_error = error.what();
  }
  return -1;
}

SPAN<std::int8_t> SpanOf(void* buffer, std::size_t bytes) {
  return {bytes, static_cast<std::int8_t*>(buffer)};
}

std::size_t SizeOf(int type) {
  constexpr std::size_t kSizes[] = {2, 4, 8, 16, 1, 2, 4, 8, 1, 2, 4, 8};
  return kSizes[type];
}

#ifdef STAND_IN_TWO_TABLES
extern "C" const char coll_type[] __asm__("_ZTIN7xgboost10collective4CollE");
void Nothing() {}
__attribute__((section(".data.rel.ro"), used)) void const* second_table[9] = {
    nullptr,
    coll_type,
    reinterpret_cast<const void*>(&Nothing),
    reinterpret_cast<const void*>(&Nothing),
    reinterpret_cast<const void*>(&Nothing),
    reinterpret_cast<const void*>(&Nothing),
    reinterpret_cast<const void*>(&Nothing),
    reinterpret_cast<const void*>(&Nothing),
    reinterpret_cast<const void*>(&Nothing)};
#endif

#ifdef STAND_IN_FUNCTION_OUTSIDE
/// Replaces the last function in Coll's table with an address outside the library's code.
__attribute__((constructor)) void MoveFunction() {
  static char elsewhere[64];
  const Coll object;
  void** found = nullptr;
  std::memcpy(&found, static_cast<const void*>(&object), sizeof(found));
  void** volatile hidden = found;  // hides from the compiler that the table is constant
  void** const table = hidden;
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  auto* const begin = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(table) / page * page);
  if (mprotect(begin, 2 * page, PROT_READ | PROT_WRITE) != 0) std::abort();
  table[6] = elsewhere;
}
#endif

}  // namespace

#define STAND_IN_API extern "C" __attribute__((visibility("default")))

/// Called by the test. Makes the world of two ranks; the other rank is at the other end of `socket`.
STAND_IN_API void StandInConnect(int socket, int rank) {
  comm = std::make_shared<RabitComm>();
  comm->world_ = 2;
  comm->rank_ = rank;
  comm->socket_ = socket;
  coll = std::make_shared<Coll>();
}
/// Called by the test. Puts the communicator into the state that XGBoost's communicator has after finalizing:
/// without a world.
STAND_IN_API void StandInFinalize() {
  comm->world_ = -1;
}
/// Makes a call on a second communicator of this process, which the ranks have not agreed on.
STAND_IN_API int StandInAllreduceOfOther(std::int64_t* value) {
  RabitComm other;
  other.world_ = 2;
  other.rank_ = comm->rank_;
  other.socket_ = comm->socket_;
  return Caught([&] {
    return CALL(Allreduce)(PASSED other, SpanOf(value, sizeof(*value)), stand_in::Type::kI8,
                           stand_in::Op::kSum);
  });
}
STAND_IN_API int StandInAllgatherV(const char* data, std::size_t bytes, const std::int64_t* sizes,
                                   std::int64_t* segments, char* received, std::size_t received_bytes) {
  return Caught([&] {
    return CALL(AllgatherV)(PASSED * comm, {bytes, reinterpret_cast<const std::int8_t*>(data)}, {2, sizes},
                            {3, segments}, {received_bytes, reinterpret_cast<std::int8_t*>(received)},
                            stand_in::AllgatherVAlgo::kRing);
  });
}

STAND_IN_API int XGCommunicatorGetRank() {
  return comm->rank_;
}
STAND_IN_API int XGCommunicatorGetWorldSize() {
  return comm->world_;
}
STAND_IN_API int XGCommunicatorAllreduce(void* buffer, std::size_t count, int type, int op) {
  const int code = Caught([&] {
    return CALL(Allreduce)(PASSED * comm, SpanOf(buffer, count * SizeOf(type)),
                           static_cast<stand_in::Type>(type), static_cast<stand_in::Op>(op));
  });
#ifdef STAND_IN_WRONG_RESULTS
  if (type == static_cast<int>(stand_in::Type::kF8)) static_cast<double*>(buffer)[0] += 1;
#endif
  return code;
}
STAND_IN_API int XGCommunicatorBroadcast(void* buffer, std::size_t bytes, int root) {
  return Caught([&] { return CALL(Broadcast)(PASSED * comm, SpanOf(buffer, bytes), root); });
}
#ifndef STAND_IN_WITHOUT_FUNCTION
STAND_IN_API int XGCommunicatorAllgather(void* buffer, std::size_t bytes) {
  return Caught([&] { return CALL(Allgather)(PASSED * comm, SpanOf(buffer, bytes)); });
}
#endif
STAND_IN_API int XGCommunicatorPrint(const char* /*text*/) {
  return 0;
}
STAND_IN_API const char* XGBGetLastError() {
  return last_error.c_str();
}
