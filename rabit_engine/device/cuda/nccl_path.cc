// The path through NCCL. Its communicator is non-blocking, so that the loss of a rank can be detected, and
// the operation aborted, while the ranks join or connect.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <string_view>
#include <thread>

#include "rabit_engine/device/cuda/error.h"
#include "rabit_engine/device/cuda/nccl_library.h"
#include "rabit_engine/device/cuda/path.h"
#include "rabit_engine/device/cuda/place.h"
#include "rabit_engine/device/cuda/waiting.h"

namespace warren::device {
namespace {

constexpr std::chrono::seconds kPatience{10};
/// The first NCCL version that supports float8.
constexpr int kFloat8Version = 22400;

/// Rank 0's message to the others: NCCL's unique id, or the reason why NCCL did not provide one.
struct Ticket {
  ncclUniqueId id{};
  std::array<char, 512> trouble{};
};

class NcclPath final : public CollectivePath {
 public:
  explicit NcclPath(const WarrenDeviceHost& host) : host_(host), nccl_(Nccl()) {
    Check(cudaGetDevice(&device_), "getting the current GPU");
    Ticket ticket;
    if (host_.rank == 0) {
      const ncclResult_t result = nccl_.GetUniqueId(&ticket.id);
      if (result != ncclSuccess) {
        const std::string said = Describe(result);
        std::memcpy(ticket.trouble.data(), said.data(), std::min(said.size(), ticket.trouble.size() - 1));
      }
    }
    CheckHost(host_.broadcast(host_.context, &ticket, sizeof ticket, 0));
    if (ticket.trouble.front() != '\0') throw CudaError(ticket.trouble.data());
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    try {
      Settle(nccl_.CommInitRankConfig(&communicator_, host_.world_size, ticket.id, host_.rank, &config),
             "joining");
    } catch (...) {
      Abort();
      throw;
    }
  }
  ~NcclPath() override { Abort(); }

  std::string Describe() const override { return "NCCL " + NcclVersionText(nccl_.version); }
  bool CanBeCaptured() const override { return true; }

  void Enqueue(std::span<const Operation> calls) override {
    for (const Operation& call : calls) CheckType(call);
    if (calls.size() == 1) return Settle(Start(calls.front()), Text(calls.front()));
    Settle(nccl_.GroupStart(), "a group");
    for (const Operation& call : calls) {
      const ncclResult_t result = Start(call);
      if (result == ncclSuccess || result == ncclInProgress) continue;
      nccl_.GroupEnd();
      Settle(result, Text(call));
    }
    Settle(nccl_.GroupEnd(), "a group");
  }

  void Look() override {
    ncclResult_t state = ncclSuccess;
    const ncclResult_t asked = nccl_.CommGetAsyncError(communicator_, &state);
    if (asked != ncclSuccess) state = asked;
    if (state != ncclSuccess && state != ncclInProgress) throw CudaError(Describe(state));
  }

  void Finish() override {
    using Clock = std::chrono::steady_clock;
    ncclResult_t result = nccl_.CommFinalize(communicator_);
    const Clock::time_point end = Clock::now() + kPatience;
    WaitFor(host_, [&] {
      if (result == ncclInProgress) nccl_.CommGetAsyncError(communicator_, &result);
      return result != ncclInProgress || Clock::now() >= end;
    });
    if (result == ncclInProgress) {
      communicator_ = nullptr;  // CUDA graphs still use it; it is freed when the process ends
      return;
    }
    Settle(result, "ending");
    GiveBack(nccl_.CommDestroy);
  }

  void Abort() noexcept override { GiveBack(nccl_.CommAbort); }

 private:
  /// Frees the communicator by calling `end` on another thread. `end` returns only when all CUDA graphs that
  /// were captured with this communicator have been destroyed, which may never happen, so this rank waits for
  /// at most kPatience.
  void GiveBack(ncclResult_t (*end)(ncclComm_t)) noexcept {
    if (communicator_ == nullptr) return;
    try {
      auto done = std::make_shared<std::promise<void>>();
      const std::future<void> ended = done->get_future();
      std::thread([end, done, device = device_, communicator = communicator_] {
        cudaSetDevice(device);
        end(communicator);
        done->set_value();
      }).detach();
      ended.wait_for(kPatience);
    } catch (const std::exception&) {
      // No thread or no memory: the communicator is freed when the process ends.
    }
    communicator_ = nullptr;
  }

  ncclResult_t Start(const Operation& call) {
    const auto type = static_cast<ncclDataType_t>(call.type);
    // With one rank, NCCL 2.28 refuses to average float8; the sum is the same value.
    const bool is_plain = call.operation == ReduceOp::kAverage && host_.world_size == 1;
    const auto operation = static_cast<ncclRedOp_t>(is_plain ? ReduceOp::kSum : call.operation);
    cudaStream_t stream = StreamOf(call);
    switch (call.kind) {
      case Collective::kAllreduce:
        return nccl_.AllReduce(call.send, call.receive, call.count, type, operation, communicator_, stream);
      case Collective::kBroadcast:
        return nccl_.Broadcast(call.send, call.receive, call.count, type, call.root, communicator_, stream);
      case Collective::kAllgather:
        return nccl_.AllGather(call.send, call.receive, call.count, type, communicator_, stream);
      default:
        return nccl_.ReduceScatter(call.send, call.receive, call.count, type, operation, communicator_,
                                   stream);
    }
  }

  static std::string Text(const Operation& call) {
    return fmt::format("{}{} of {} elements of {}", Name(call.kind),
                       Reduces(call.kind) ? fmt::format(" ({})", Name(call.operation)) : "", call.count,
                       Name(call.type));
  }

  void CheckType(const Operation& call) const {
    const bool is_float8 = call.type == Type::kFloat8E4M3 || call.type == Type::kFloat8E5M2;
    if (is_float8 && nccl_.version < kFloat8Version) {
      throw CudaError(fmt::format("NCCL {} has no {}; it came with {}", NcclVersionText(nccl_.version),
                                  Name(call.type), NcclVersionText(kFloat8Version)));
    }
  }

  std::string Describe(ncclResult_t result) const {
    const char* more = nccl_.GetLastError(communicator_);
    const bool has_more = more != nullptr && *more != '\0';
    return fmt::format("NCCL reported '{}'{}{}; set NCCL_DEBUG=WARN for more", nccl_.GetErrorString(result),
                       has_more ? ", and " : "", has_more ? more : "");
  }

  /// Waits until NCCL has finished the operation itself (not the work on streams). Throws if it failed.
  void Settle(ncclResult_t result, std::string_view what) {
    if (result == ncclInProgress) {
      WaitFor(host_, [&] {
        const ncclResult_t asked = nccl_.CommGetAsyncError(communicator_, &result);
        if (asked != ncclSuccess) result = asked;
        return result != ncclInProgress;
      });
    }
    if (result == ncclSuccess) return;
    const CudaError error(fmt::format("{}: {}", what, Describe(result)));
    if (result == ncclRemoteError || result == ncclSystemError) ThrowUnlessLost(host_, error);
    throw error;
  }

  const WarrenDeviceHost& host_;
  const NcclLibrary& nccl_;
  int device_ = 0;
  ncclComm_t communicator_ = nullptr;
};

}  // namespace

std::unique_ptr<CollectivePath> MakeNcclPath(const WarrenDeviceHost& host) {
  return std::make_unique<NcclPath>(host);
}

}  // namespace warren::device
