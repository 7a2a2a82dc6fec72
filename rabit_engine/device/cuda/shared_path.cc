// Ranks that share a GPU access each other's memory directly, mapped with CUDA IPC. A call takes two
// exchanges on the host and, for memory from cudaMalloc, no intermediate copy:
//
//   1. each rank records on its stream that its input is ready, and sends the others handles to its buffers;
//   2. its stream waits for the others' inputs, then does its share: in an allreduce, a slice of the
//      elements, which it reads from all inputs, reduces, and writes to all outputs;
//   3. each rank records that its share is done, and its stream waits for all others' shares.
//
// So an allreduce reads and writes each buffer once. A buffer that cannot be mapped because it is not from
// cudaMalloc is replaced by one that this path allocates, and the data is copied there before the call, or
// back after it. The GPU runs the processes that share it one after the other, so fewer steps are more
// important than shorter steps.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "rabit_engine/device/cuda/error.h"
#include "rabit_engine/device/cuda/exported_memory.h"
#include "rabit_engine/device/cuda/path.h"
#include "rabit_engine/device/cuda/reduce_kernels.h"
#include "rabit_engine/device/cuda/resources.h"
#include "rabit_engine/device/cuda/waiting.h"

namespace warren::device {
namespace {

/// In an allreduce, the ranks' slices begin at multiples of this number of bytes.
constexpr std::size_t kSliceBytes = 128;

struct Handles {
  cudaIpcEventHandle_t ready{};
  cudaIpcEventHandle_t done{};
};

/// A rank's message in the first exchange of a call.
struct Notice {
  // The call, which must be the same on all ranks:
  std::int32_t kind = 0;
  std::int32_t type = 0;
  std::int32_t operation = 0;
  std::int32_t root = 0;
  std::uint64_t count = 0;
  ExportedBuffer send;
  ExportedBuffer receive;
};

struct Verdict {
  std::array<char, 256> trouble{};
};

class SharedPath final : public CollectivePath {
 public:
  explicit SharedPath(const WarrenDeviceHost& host) : host_(host) {
    std::vector<Handles> handles(Ranks());
    Check(cudaIpcGetEventHandle(&handles[Own()].ready, held_->ready.get()), "exporting an event");
    Check(cudaIpcGetEventHandle(&handles[Own()].done, held_->done.get()), "exporting an event");
    CheckHost(host_.allgather(host_.context, handles.data(), sizeof(Handles)));
    for (std::size_t rank = 0; rank < Ranks(); ++rank) {
      if (rank == Own()) continue;
      held_->others.push_back(
          {static_cast<int>(rank), Event(handles[rank].ready), Event(handles[rank].done)});
    }
  }

  ~SharedPath() override {
    if (waits_for_the_dead_) {
      // The resources are leaked, because freeing them would wait for the device, and the process ends soon.
      static_cast<void>(held_.release());
    } else {
      cudaDeviceSynchronize();
    }
  }

  void Abort() noexcept override {
    waits_for_the_dead_ = waits_for_others_ && cudaEventQuery(held_->last.get()) != cudaSuccess;
  }

  std::string Describe() const override { return "CUDA IPC on one GPU"; }

  void Enqueue(std::span<const Operation> calls) override {
    for (const Operation& call : calls) {
      if (call.count > 0) Run(call);
    }
  }

  /// Waits until all ranks have closed the memory and events that they opened, since no rank may free its own
  /// memory before that.
  void Finish() override {
    WaitForLast();
    held_->others.clear();
    held_->imported.reset();
    std::vector<std::int32_t> all(Ranks());
    CheckHost(host_.allgather(host_.context, all.data(), sizeof(std::int32_t)));
  }

 private:
  struct Other {
    int rank;
    Event ready;
    Event done;
  };
  /// The buffers that a call works on: the caller's, or replacements that this path allocates.
  struct Working {
    const void* send = nullptr;
    void* receive = nullptr;
    bool own_receive = false;  ///< whether the result must be copied to the caller's buffer
  };

  std::size_t Ranks() const { return static_cast<std::size_t>(host_.world_size); }
  std::size_t Own() const { return static_cast<std::size_t>(host_.rank); }

  static bool SendsFrom(const Operation& call, std::size_t rank) {
    return call.kind != Collective::kBroadcast || static_cast<std::size_t>(call.root) == rank;
  }
  /// Whether other ranks write to this rank's output.
  static bool OthersWrite(const Operation& call) { return call.kind == Collective::kAllreduce; }

  void Run(const Operation& call) {
    cudaStream_t stream = StreamOf(call);
    held_->last.Hold(stream);
    Working working;
    std::vector<Notice> notices(Ranks());
    Prepare(call, working, notices[Own()]);
    held_->ready.Record(stream);
    HostWaitsIfRanksMayBeLost(held_->ready);
    CheckHost(host_.allgather(host_.context, notices.data(), sizeof(Notice)));
    ThrowUnlessAlike(notices);

    std::vector<Verdict> verdicts(Ranks());
    try {
      waits_for_others_ = host_.recovers == 0;
      if (waits_for_others_) {
        for (const Other& other : held_->others) other.ready.Hold(stream);
      }
      Work(call, working, notices);
      held_->done.Record(stream);
      HostWaitsIfRanksMayBeLost(held_->done);
    } catch (const CudaError& error) {
      // Report the error to the other ranks before this rank fails.
      std::strncpy(verdicts[Own()].trouble.data(), error.what(), verdicts[Own()].trouble.size() - 1);
    }
    CheckHost(host_.allgather(host_.context, verdicts.data(), sizeof(Verdict)));
    for (std::size_t rank = 0; rank < Ranks(); ++rank) {
      if (verdicts[rank].trouble.front() != '\0')
        throw CudaError(fmt::format("rank {}: {}", rank, verdicts[rank].trouble.data()));
    }
    if (host_.recovers == 0) {
      for (const Other& other : held_->others) other.done.Hold(stream);
    }
    if (working.own_receive) {
      Copy(call.receive, working.receive, ReceiveBytes(call, host_.world_size), stream);
    }
    held_->last.Record(stream);
  }

  /// A stream that waits for the event of a dead process may wait forever. So if the job can continue after a
  /// loss, each rank waits for its own events before it exchanges anything with the others.
  void HostWaitsIfRanksMayBeLost(const Event& event) {
    if (host_.recovers == 0) return;
    WaitFor(host_, [&event] { return event.IsDone(); });
  }

  /// Exports the buffers that other ranks access, after replacing those that cannot be exported.
  void Prepare(const Operation& call, Working& working, Notice& notice) {
    notice.kind = static_cast<std::int32_t>(call.kind);
    notice.type = static_cast<std::int32_t>(call.type);
    notice.operation = static_cast<std::int32_t>(call.operation);
    notice.root = call.root;
    notice.count = call.count;
    working.send = call.send;
    working.receive = call.receive;
    const std::size_t send_bytes = SendBytes(call, host_.world_size);
    if (SendsFrom(call, Own()) && !Export(call.send, notice.send)) {
      void* copy = held_->send.Take(send_bytes);
      Copy(copy, call.send, send_bytes, StreamOf(call));
      working.send = copy;
      if (!Export(copy, notice.send))
        throw CudaError("memory of the GPU cannot be exported (cudaIpcGetMemHandle)");
    }
    if (OthersWrite(call) && !Export(call.receive, notice.receive)) {
      working.receive = held_->receive.Take(ReceiveBytes(call, host_.world_size));
      working.own_receive = true;
      if (!Export(working.receive, notice.receive))
        throw CudaError("memory of the GPU cannot be exported (cudaIpcGetMemHandle)");
    }
  }

  void ThrowUnlessAlike(const std::vector<Notice>& notices) const {
    const Notice& own = notices[Own()];
    for (std::size_t rank = 0; rank < notices.size(); ++rank) {
      const Notice& other = notices[rank];
      if (other.kind == own.kind && other.type == own.type && other.operation == own.operation &&
          other.root == own.root && other.count == own.count) {
        continue;
      }
      const auto describe = [](const Notice& notice) {
        return fmt::format("{} of {} {} (operation {}, root {})", Name(static_cast<Collective>(notice.kind)),
                           notice.count, Name(static_cast<Type>(notice.type)), notice.operation, notice.root);
      };
      throw CudaError(fmt::format("this rank called {}, and rank {} {}; all ranks must make the same calls",
                                  describe(own), rank, describe(other)));
    }
  }

  void WaitForLast() {
    WaitFor(host_, [this] { return held_->last.IsDone(); });
  }
  void* Open(const ExportedBuffer& buffer) {
    return held_->imported->Open(buffer, [this] { WaitForLast(); });
  }

  Buffers Map(const std::vector<Notice>& notices, ExportedBuffer Notice::*which, void* own) {
    Buffers buffers;
    buffers.count = host_.world_size;
    for (std::size_t rank = 0; rank < Ranks(); ++rank) {
      buffers.of[rank] = rank == Own() ? own : Open(notices[rank].*which);
    }
    return buffers;
  }

  void Work(const Operation& call, const Working& working, const std::vector<Notice>& notices) {
    cudaStream_t stream = StreamOf(call);
    const std::size_t size = SizeOf(call.type);
    // Inputs are only read, though the kernel's argument type does not show it.
    void* const own_send = const_cast<void*>(working.send);  // NOLINT(cppcoreguidelines-pro-type-const-cast)
    switch (call.kind) {
      case Collective::kAllreduce: {
        const Buffers inputs = Map(notices, &Notice::send, own_send);
        const Buffers outputs = Map(notices, &Notice::receive, working.receive);
        const std::size_t unit = kSliceBytes / size;
        const std::size_t slice = ((call.count + Ranks() - 1) / Ranks() + unit - 1) / unit * unit;
        const std::size_t begin = std::min(call.count, Own() * slice);
        const std::size_t end = std::min(call.count, begin + slice);
        if (begin < end) LaunchReduce(call.type, call.operation, inputs, outputs, begin, end, stream);
        return;
      }
      case Collective::kReduceScatter: {
        Buffers inputs = Map(notices, &Notice::send, own_send);
        for (int rank = 0; rank < inputs.count; ++rank) {
          inputs.of[rank] = static_cast<std::byte*>(inputs.of[rank]) + Own() * call.count * size;
        }
        Buffers output;
        output.count = 1;
        output.of[0] = working.receive;
        return LaunchReduce(call.type, call.operation, inputs, output, 0, call.count, stream);
      }
      case Collective::kAllgather: {
        const Buffers inputs = Map(notices, &Notice::send, own_send);
        for (std::size_t rank = 0; rank < Ranks(); ++rank) {
          std::byte* to = static_cast<std::byte*>(working.receive) + rank * call.count * size;
          if (to != inputs.of[rank]) Copy(to, inputs.of[rank], call.count * size, stream);
        }
        return;
      }
      case Collective::kBroadcast: {
        const auto root = static_cast<std::size_t>(call.root);
        const void* from = root == Own() ? working.send : Open(notices[root].send);
        if (from != working.receive) Copy(working.receive, from, call.count * size, stream);
        return;
      }
      default:  // the caller has refused other kinds
        return;
    }
  }

  static void Copy(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
    Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream), "copying on the GPU");
  }

  /// The resources obtained from CUDA.
  struct Held {
    Event ready{Event::Use::kInterprocess};
    Event done{Event::Use::kInterprocess};
    Event last;  ///< end of the previous call: calls run one after the other, whatever their streams
    std::vector<Other> others;
    std::shared_ptr<ImportedMemory> imported = ImportedMemory::OfThisProcess();
    Memory send{Memory::Where::kDevice};
    Memory receive{Memory::Where::kDevice};
  };

  const WarrenDeviceHost& host_;
  std::unique_ptr<Held> held_ = std::make_unique<Held>();
  bool waits_for_others_ = false;  ///< whether the last call's work on the device may wait for other ranks
  bool waits_for_the_dead_ = false;
};

}  // namespace

std::unique_ptr<CollectivePath> MakeSharedPath(const WarrenDeviceHost& host) {
  return std::make_unique<SharedPath>(host);
}

}  // namespace warren::device
