// The path through pinned host memory and the engine's own collectives, which works with any GPU. Large
// buffers are sent in pieces: while the ranks reduce or exchange one piece, the next is copied to the host
// and the previous one back to the device.
#include <algorithm>
#include <vector>

#include "rabit_engine/device/cuda/error.h"
#include "rabit_engine/device/cuda/path.h"
#include "rabit_engine/device/cuda/resources.h"
#include "rabit_engine/device/cuda/waiting.h"

namespace warren::device {
namespace {

/// The size of a piece: large enough for the full speed of the bus and the engine, small enough for the three
/// steps to overlap.
constexpr std::size_t kPieceBytes = std::size_t{2} << 20;
constexpr std::size_t kPieces = 3;

class StagedPath final : public CollectivePath {
 public:
  explicit StagedPath(const WarrenDeviceHost& host) : host_(host) {}
  ~StagedPath() override {
    cudaStreamSynchronize(down_.get());
    cudaStreamSynchronize(up_.get());
  }

  std::string Describe() const override { return "pinned memory and the engine on the host"; }

  void Enqueue(std::span<const Operation> calls) override {
    for (const Operation& call : calls) {
      if (call.count > 0) Run(call);
    }
  }

 private:
  /// Pinned memory for one piece, and the progress of its copies.
  struct Piece {
    Memory memory{Memory::Where::kHost};
    Event arrived;  ///< done when the piece has arrived on the host
    Event left;     ///< done when the result is back on the device
  };

  /// Runs a collective piece by piece: a piece is fetched from the device, the ranks reduce or exchange it,
  /// and the result is copied back. In an allgather or reduce-scatter, the data has one part for each rank,
  /// and a piece consists of elements of each part.
  void Run(const Operation& call) {
    before_.Record(StreamOf(call));
    before_.Hold(down_.get());
    before_.Hold(up_.get());
    const auto ranks = static_cast<std::size_t>(host_.world_size);
    const bool by_parts = call.kind == Collective::kAllgather || call.kind == Collective::kReduceScatter;
    const std::size_t size = SizeOf(call.type);
    const std::size_t parts = by_parts ? ranks : 1;
    const std::size_t most = std::max<std::size_t>(1, kPieceBytes / (size * parts));
    const std::size_t pieces = (call.count + most - 1) / most;
    const auto range = [&](std::size_t piece) {
      const std::size_t begin = piece * most;
      return std::pair(begin, std::min(most, call.count - begin));
    };
    const std::size_t ahead = std::min(pieces, kPieces - 1);
    for (std::size_t piece = 0; piece < ahead; ++piece) Fetch(call, piece, range(piece), parts);
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      if (piece + ahead < pieces) Fetch(call, piece + ahead, range(piece + ahead), parts);
      Piece& here = pieces_[piece % kPieces];
      WaitFor(host_, [&here] { return here.arrived.IsDone(); });
      Work(call, here, range(piece).second);
      Return(call, here, range(piece), parts);
    }
    // The caller's stream continues when the last piece is back on the device; pieces are copied back in
    // order.
    after_.Record(up_.get());
    after_.Hold(StreamOf(call));
  }

  void Fetch(const Operation& call, std::size_t number, std::pair<std::size_t, std::size_t> range,
             std::size_t parts) {
    const auto [begin, count] = range;
    const std::size_t size = SizeOf(call.type);
    Piece& piece = pieces_[number % kPieces];
    if (piece.memory.bytes() < count * size * parts) {
      WaitFor(host_, [&piece] { return piece.left.IsDone(); });
      piece.memory.Take(count * size * parts);
    }
    auto* to = static_cast<std::byte*>(piece.memory.Take(0));
    const auto* from = static_cast<const std::byte*>(call.send);
    piece.left.Hold(down_.get());
    if (call.kind == Collective::kAllgather) {
      Copy(to + static_cast<std::size_t>(host_.rank) * count * size, from + begin * size, count * size,
           down_);
    } else if (call.kind == Collective::kReduceScatter) {
      for (std::size_t part = 0; part < parts; ++part) {
        Copy(to + part * count * size, from + (part * call.count + begin) * size, count * size, down_);
      }
    } else if (call.kind == Collective::kAllreduce || host_.rank == call.root) {
      Copy(to, from + begin * size, count * size, down_);
    }
    piece.arrived.Record(down_.get());
  }

  void Work(const Operation& call, Piece& piece, std::size_t count) {
    const std::size_t size = SizeOf(call.type);
    void* data = piece.memory.Take(0);
    switch (call.kind) {
      case Collective::kBroadcast:
        return CheckHost(host_.broadcast(host_.context, data, count * size, call.root));
      case Collective::kAllgather:
        return CheckHost(host_.allgather(host_.context, data, count * size));
      default: {
        const std::size_t parts =
            call.kind == Collective::kReduceScatter ? static_cast<std::size_t>(host_.world_size) : 1;
        return CheckHost(host_.allreduce(host_.context, data, count * parts,
                                         static_cast<std::int32_t>(call.type),
                                         static_cast<std::int32_t>(call.operation)));
      }
    }
  }

  void Return(const Operation& call, Piece& piece, std::pair<std::size_t, std::size_t> range,
              std::size_t parts) {
    const auto [begin, count] = range;
    const std::size_t size = SizeOf(call.type);
    const auto* from = static_cast<const std::byte*>(piece.memory.Take(0));
    auto* to = static_cast<std::byte*>(call.receive);
    if (call.kind == Collective::kAllgather) {
      for (std::size_t part = 0; part < parts; ++part) {
        Copy(to + (part * call.count + begin) * size, from + part * count * size, count * size, up_);
      }
    } else {
      const std::size_t part =
          call.kind == Collective::kReduceScatter ? static_cast<std::size_t>(host_.rank) : 0;
      Copy(to + begin * size, from + part * count * size, count * size, up_);
    }
    piece.left.Record(up_.get());
  }

  static void Copy(void* to, const void* from, std::size_t bytes, const CudaStream& stream) {
    Check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream.get()), "copying between GPU and host");
  }

  const WarrenDeviceHost& host_;
  std::vector<Piece> pieces_{kPieces};
  CudaStream down_;
  CudaStream up_;
  Event before_;
  Event after_;
};

}  // namespace

std::unique_ptr<CollectivePath> MakeStagedPath(const WarrenDeviceHost& host) {
  return std::make_unique<StagedPath>(host);
}

}  // namespace warren::device
