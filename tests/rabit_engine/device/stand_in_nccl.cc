// A stand-in for NCCL on top of the stand-in for CUDA: ranks on one host communicate through an in-memory
// file. As in NCCL, joining and finalizing run in the background unless the communicator is blocking;
// collectives run on their streams, but in the order of the calls; and a rank that waits for a dead rank
// keeps waiting until it aborts its own communicator.
#include <fcntl.h>
#include <fmt/format.h>
#include <nccl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "rabit_engine/device/host_reduction.h"

#define STAND_IN extern "C" __attribute__((visibility("default")))

namespace {

using warren::device::ReduceOp;
using warren::device::Type;

constexpr int kMostRanks = 64;
constexpr std::size_t kSlotBytes = std::size_t{64} << 10;
constexpr auto kPoll = std::chrono::microseconds(50);

struct Id {
  pid_t pid;
  int file;
};

struct Shared {
  std::atomic<int> arrived;
  std::atomic<int> turn;
  std::byte slots[kMostRanks][kSlotBytes];  // NOLINT(modernize-avoid-c-arrays)
};

struct Aborted {};

}  // namespace

struct ncclComm {
  Shared* shared = nullptr;
  int rank = 0;
  int ranks = 1;
  bool blocking = false;
  std::atomic<ncclResult_t> state = ncclInProgress;
  std::atomic<bool> aborted = false;
  std::atomic<int> under_way = 0;
  int given = 0;                   ///< collectives called
  std::atomic<int> completed = 0;  ///< collectives completed

  void Meet() const {
    const int turn = shared->turn;
    if (++shared->arrived == ranks) {
      shared->arrived = 0;
      ++shared->turn;
      return;
    }
    while (shared->turn == turn) {
      if (aborted) throw Aborted();
      std::this_thread::sleep_for(kPoll);
    }
  }
  std::byte* slot(int of) const { return shared->slots[of]; }
};

namespace {

/// Runs `work` in the background. The communicator's state is ncclInProgress until `work` returns; if `work`
/// is aborted, the state is not updated.
void Begin(ncclComm* communicator, std::function<bool()> work) {
  communicator->state = ncclInProgress;
  ++communicator->under_way;
  std::thread([=] {
    try {
      communicator->state = work() ? ncclSuccess : ncclSystemError;
    } catch (const Aborted&) {
    }
    --communicator->under_way;
  }).detach();
}

/// Returns the result of a call that continues in the background. If the communicator is blocking, waits
/// until the call has ended.
ncclResult_t UnlessBlocking(const ncclComm* communicator) {
  if (!communicator->blocking) return ncclInProgress;
  while (communicator->state == ncclInProgress) std::this_thread::sleep_for(kPoll);
  return communicator->state;
}

using Work = std::function<void()>;

void RunOnce(void* argument) {
  const std::unique_ptr<Work> work(static_cast<Work*>(argument));
  (*work)();
}
/// Runs work captured into a graph. The work is never freed, as the graph may be launched again.
void RunAgain(void* argument) {
  (*static_cast<Work*>(argument))();
}

/// Captures work into a CUDA graph. The work runs in the order of the streams on which the graph is launched,
/// not in the order of the calls.
ncclResult_t IntoGraph(ncclComm_t communicator, cudaStream_t stream, Work work) {
  auto* whole = new Work([=] {
    ++communicator->under_way;
    try {
      work();
    } catch (const Aborted&) {
    }
    --communicator->under_way;
  });
  cudaLaunchHostFunc(stream, RunAgain, whole);
  return ncclSuccess;
}

ncclResult_t OnStream(ncclComm* communicator, cudaStream_t stream, std::function<void()> work) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaStreamIsCapturing(stream, &status);
  if (status != cudaStreamCaptureStatusNone) return IntoGraph(communicator, stream, std::move(work));
  ++communicator->under_way;
  auto* whole = new Work([=, turn = communicator->given++] {
    try {
      while (communicator->completed != turn) {
        if (communicator->aborted) throw Aborted();
        std::this_thread::sleep_for(kPoll);
      }
      work();
    } catch (const Aborted&) {
    }
    ++communicator->completed;
    --communicator->under_way;
  });
  cudaLaunchHostFunc(stream, RunOnce, whole);
  return ncclSuccess;
}

/// Reduces the pieces in all slots, in rank order, into `out`.
void Reduce(const ncclComm& communicator, void* out, std::size_t count, Type type, ReduceOp operation) {
  const std::size_t bytes = count * warren::device::SizeOf(type);
  std::vector<std::byte> sum(communicator.slot(0), communicator.slot(0) + bytes);
  const warren::Reduction reduction = warren::device::HostReduction(type, operation);
  for (int rank = 1; rank < communicator.ranks; ++rank) {
    reduction.Combine(sum.data(), sum.data(), communicator.slot(rank), count);
  }
  if (operation == ReduceOp::kAverage) warren::device::Divide(type, sum.data(), count, communicator.ranks);
  std::memcpy(out, sum.data(), bytes);
}

/// Divides `count` elements of `size` bytes into pieces that fit a slot, and calls `piece(first element,
/// count)` for each.
template <typename Piece>
void InPieces(std::size_t count, std::size_t size, Piece&& piece) {
  const std::size_t most = kSlotBytes / size;
  for (std::size_t first = 0; first < count; first += most) piece(first, std::min(most, count - first));
}

const std::byte* At(const void* data, std::size_t bytes) {
  return static_cast<const std::byte*>(data) + bytes;
}
std::byte* At(void* data, std::size_t bytes) {
  return static_cast<std::byte*>(data) + bytes;
}

}  // namespace

STAND_IN ncclResult_t ncclGetVersion(int* version) {
  *version = NCCL_VERSION_CODE;
  return ncclSuccess;
}
STAND_IN const char* ncclGetErrorString(ncclResult_t) {
  return "an error of the stand-in";
}
STAND_IN const char* ncclGetLastError(ncclComm_t) {
  return "";
}

STAND_IN ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  const Id own{getpid(), memfd_create("stand-in-nccl", MFD_CLOEXEC)};
  if (own.file < 0 || ftruncate(own.file, sizeof(Shared)) != 0) return ncclSystemError;
  *id = ncclUniqueId{};
  std::memcpy(id, &own, sizeof own);
  return ncclSuccess;
}

STAND_IN ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int ranks, ncclUniqueId id, int rank,
                                             ncclConfig_t* config) {
  const char* const blocks = std::getenv("NCCL_COMM_BLOCKING");  // takes precedence over `config`
  const bool blocking = blocks != nullptr ? std::string_view(blocks) == "1" : config->blocking != 0;
  if (ranks > kMostRanks) return ncclInvalidUsage;
  auto* made = new ncclComm;
  made->blocking = blocking;
  made->rank = rank;
  made->ranks = ranks;
  *communicator = made;
  Begin(made, [made, id] {
    Id root{};
    std::memcpy(&root, &id, sizeof root);
    const std::string path = fmt::format("/proc/{}/fd/{}", root.pid, root.file);
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    void* shared = mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (shared == MAP_FAILED) return false;
    made->shared = static_cast<Shared*>(shared);
    made->Meet();
    if (made->rank == 0) close(root.file);
    return true;
  });
  return UnlessBlocking(made);
}

STAND_IN ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* state) {
  *state = communicator->state;
  return ncclSuccess;
}

STAND_IN ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  Begin(communicator, [=] {
    communicator->Meet();
    return true;
  });
  return UnlessBlocking(communicator);
}

/// Returns once no work is under way. The communicator is never freed, as threads may still access it.
STAND_IN ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  while (communicator->under_way > 0) std::this_thread::sleep_for(kPoll);
  munmap(communicator->shared, sizeof(Shared));
  return ncclSuccess;
}

STAND_IN ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  communicator->aborted = true;
  return ncclCommDestroy(communicator);
}

STAND_IN ncclResult_t ncclGroupStart() {
  return ncclSuccess;
}
STAND_IN ncclResult_t ncclGroupEnd() {
  return ncclSuccess;
}

STAND_IN ncclResult_t ncclAllReduce(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                                    ncclRedOp_t operation, ncclComm_t communicator, cudaStream_t stream) {
  const auto of = static_cast<Type>(type);
  const std::size_t size = warren::device::SizeOf(of);
  return OnStream(communicator, stream, [=] {
    InPieces(count, size, [&](std::size_t first, std::size_t some) {
      std::memcpy(communicator->slot(communicator->rank), At(send, first * size), some * size);
      communicator->Meet();
      Reduce(*communicator, At(receive, first * size), some, of, static_cast<ReduceOp>(operation));
      communicator->Meet();
    });
  });
}

STAND_IN ncclResult_t ncclBroadcast(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                                    int root, ncclComm_t communicator, cudaStream_t stream) {
  const std::size_t size = warren::device::SizeOf(static_cast<Type>(type));
  return OnStream(communicator, stream, [=] {
    InPieces(count, size, [&](std::size_t first, std::size_t some) {
      if (communicator->rank == root)
        std::memcpy(communicator->slot(root), At(send, first * size), some * size);
      communicator->Meet();
      std::memcpy(At(receive, first * size), communicator->slot(root), some * size);
      communicator->Meet();
    });
  });
}

STAND_IN ncclResult_t ncclAllGather(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                                    ncclComm_t communicator, cudaStream_t stream) {
  const std::size_t size = warren::device::SizeOf(static_cast<Type>(type));
  return OnStream(communicator, stream, [=] {
    InPieces(count, size, [&](std::size_t first, std::size_t some) {
      std::memcpy(communicator->slot(communicator->rank), At(send, first * size), some * size);
      communicator->Meet();
      for (int rank = 0; rank < communicator->ranks; ++rank) {
        std::memcpy(At(receive, (static_cast<std::size_t>(rank) * count + first) * size),
                    communicator->slot(rank), some * size);
      }
      communicator->Meet();
    });
  });
}

STAND_IN ncclResult_t ncclReduceScatter(const void* send, void* receive, std::size_t count,
                                        ncclDataType_t type, ncclRedOp_t operation, ncclComm_t communicator,
                                        cudaStream_t stream) {
  const auto of = static_cast<Type>(type);
  const std::size_t size = warren::device::SizeOf(of);
  return OnStream(communicator, stream, [=] {
    for (int to = 0; to < communicator->ranks; ++to) {
      InPieces(count, size, [&](std::size_t first, std::size_t some) {
        const std::size_t at = (static_cast<std::size_t>(to) * count + first) * size;
        std::memcpy(communicator->slot(communicator->rank), At(send, at), some * size);
        communicator->Meet();
        if (to == communicator->rank)
          Reduce(*communicator, At(receive, first * size), some, of, static_cast<ReduceOp>(operation));
        communicator->Meet();
      });
    }
  });
}
