#include "rabit_engine/mpi/mpi_communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "rabit_engine/base/copy_bytes.h"
#include "rabit_engine/base/error.h"
#include "rabit_engine/call/slices.h"
#include "rabit_engine/collective/in_floats.h"
#include "rabit_engine/host/host_segment.h"

namespace warren {
namespace {

std::byte* At(void* buffer, std::size_t offset) {
  return static_cast<std::byte*>(buffer) + offset;
}

bool IsHalf(DataType type) {
  return type == DataType::kFloat16 || type == DataType::kBFloat16;
}

bool IsFloatingPoint(DataType type) {
  return type == DataType::kFloat || type == DataType::kDouble || IsHalf(type);
}

/// Whether the operands may be swapped without changing the bits of the result (NaN excepted); MPI then has
/// more algorithms to choose from.
bool IsCommutative(const Reduction& reduction) {
  if (!reduction.order_matters()) return true;
  return !reduction.is_custom() &&
         (reduction.operation() == ReduceOp::kSum || reduction.operation() == ReduceOp::kProduct);
}

/// A buffer for MPI's own operations. They read elements as C types, so the buffer must be aligned, which the
/// engine does not require. An unaligned buffer is copied for the duration of the call.
class AlignedBuffer {
 public:
  AlignedBuffer(void* buffer, std::size_t bytes, const Reduction& reduction)
      : buffer_(buffer), bytes_(bytes) {
    const bool aligned = reinterpret_cast<std::uintptr_t>(buffer) % reduction.element_bytes() == 0;
    if (aligned || !MpiHasSame(reduction)) return;
    copy_.resize(bytes);
    if (bytes > 0) std::memcpy(copy_.data(), buffer, bytes);
  }
  void* get() { return copy_.empty() ? buffer_ : copy_.data(); }
  void CopyBack() {
    if (!copy_.empty()) std::memcpy(buffer_, copy_.data(), bytes_);
  }

 private:
  void* buffer_;
  std::size_t bytes_;
  std::vector<std::byte> copy_;
};

}  // namespace

bool MpiHasSame(const Reduction& reduction) {
  if (reduction.is_custom() || IsHalf(reduction.type())) return false;
  const bool picks_one = reduction.operation() == ReduceOp::kMax || reduction.operation() == ReduceOp::kMin;
  return !(picks_one && IsFloatingPoint(reduction.type()));
}

/// A reduction passed to the plugin. An exception must not pass through MPI's frames, so an exception that
/// the caller's function throws is stored here.
class MpiCommunicator::Call {
 public:
  explicit Call(const Reduction& reduction) : reduction_(reduction) {
    in_c_.native = MpiHasSame(reduction) ? 1 : 0;
    in_c_.type = static_cast<int>(reduction.type());
    in_c_.operation = static_cast<int>(reduction.operation());
    in_c_.commutative = IsCommutative(reduction) ? 1 : 0;
    in_c_.element_bytes = reduction.element_bytes();
    in_c_.combine = &Call::Combine;
    in_c_.context = this;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  const WarrenMpiReduction* in_c() const { return &in_c_; }
  void Rethrow() const {
    if (thrown_) std::rethrow_exception(thrown_);
  }

 private:
  static void Combine(const void* left, void* right, std::size_t count, void* context) {
    auto* call = static_cast<Call*>(context);
    if (call->thrown_) return;
    try {
      call->reduction_.Combine(right, left, right, count);
    } catch (...) {
      call->thrown_ = std::current_exception();
    }
  }

  const Reduction& reduction_;
  WarrenMpiReduction in_c_{};
  std::exception_ptr thrown_;
};

MpiCommunicator::MpiCommunicator(const WarrenMpi& mpi, Options options)
    : mpi_(mpi), options_(std::move(options)) {
  options_.max_call_bytes = std::clamp<std::size_t>(options_.max_call_bytes, 1, INT_MAX);
  Check(mpi_.open(&group_, &rank_, &world_size_), "joining MPI's world");
  char name[512] = "";
  Check(mpi_.host(name, sizeof name), "getting the name of this host");
  host_ = name;
  members_.resize(static_cast<std::size_t>(world_size_));
  std::iota(members_.begin(), members_.end(), 0);
  MeetHosts();
}

void MpiCommunicator::MeetHosts() {
  std::vector<std::size_t> keys(static_cast<std::size_t>(world_size_));
  keys[rank_] = std::hash<std::string>()(HostKey());
  if (world_size_ > 1) Allgather(keys.data(), EqualOffsets(world_size_, sizeof(std::size_t)));
  for (const std::size_t key : keys) {
    hosts_.push_back(static_cast<int>(std::find(keys.begin(), keys.end(), key) - keys.begin()));
  }
  local_rank_ = static_cast<int>(std::count(hosts_.begin(), hosts_.begin() + rank_, hosts_[rank_]));
}

MpiCommunicator::MpiCommunicator(const MpiCommunicator& parent, WarrenMpiGroup* group, int rank, int size)
    : mpi_(parent.mpi_),
      options_(parent.options_),
      group_(group),
      rank_(rank),
      world_size_(size),
      host_(parent.host_) {}

MpiCommunicator::~MpiCommunicator() {
  if (!is_world() && group_ != nullptr) mpi_.close(group_);
}

std::unique_ptr<Communicator> MpiCommunicator::Split(int color, int key) {
  RequireOpen("split");
  const int number = ++splits_;
  WarrenMpiGroup* group = nullptr;
  int rank = 0;
  int size = 0;
  Check(mpi_.split(group_, color, key, &group, &rank, &size), "in a split");
  if (group == nullptr) return nullptr;
  std::unique_ptr<MpiCommunicator> made(new MpiCommunicator(*this, group, rank, size));
  made->name_ = fmt::format("{}/{}.{}", name_, number, color);
  made->members_.resize(static_cast<std::size_t>(size));
  made->members_[rank] = members_[rank_];
  made->Allgather(made->members_.data(), EqualOffsets(size, sizeof(int)));
  made->MeetHosts();
  return made;
}

void MpiCommunicator::Run(const Operation& operation) {
  RequireOpen(Name(operation.kind));
  if (const std::string complaint = EngineComplaint(operation, rank_, world_size_); !complaint.empty()) {
    throw Refused(fmt::format("{}: {}: {}", Who(), Name(operation.kind), complaint));
  }
  if (operation.reduction != nullptr && operation.reduction->rounds() && world_size_ > 1) {
    return collective::RunInFloats(operation, rank_, [&](const Operation& on_floats) { Run(on_floats); });
  }
  switch (operation.kind) {
    case Collective::kAllreduce:
      return RunAllreduce(operation);
    case Collective::kReduce:
      return RunReduce(operation);
    case Collective::kReduceScatter:
      return RunReduceScatter(operation);
    case Collective::kBroadcast:
      return RunBroadcast(operation);
    case Collective::kAllgather:
      return RunAllgather(operation);
    case Collective::kBarrier:
      return Check(mpi_.barrier(group_), "in a barrier");
    case Collective::kGather:
      return RunGather(operation);
    case Collective::kScatter:
      return RunScatter(operation);
    case Collective::kAllToAll:
      return RunAllToAll(operation);
    case Collective::kSendReceive:
      return RunMessages(operation);
    case Collective::kExchange:
    case Collective::kSplit:
      break;
  }
  throw Refused(
      fmt::format("{}: this engine has no {}; set WARREN_ENGINE=native", Who(), Name(operation.kind)));
}

void MpiCommunicator::RunAllreduce(const Operation& operation) {
  const Reduction& reduction = *operation.reduction;
  const std::size_t count = operation.count;
  const std::size_t per_call = ElementsPerCall(reduction);
  const std::size_t element = reduction.element_bytes();
  CopyBytes(operation.receive, operation.send, count * element);
  AlignedBuffer aligned(operation.receive, count * element, reduction);
  Call call(reduction);
  for (std::size_t begin = 0; begin < count; begin += per_call) {
    const std::size_t length = std::min(per_call, count - begin);
    Check(mpi_.allreduce(group_, At(aligned.get(), begin * element), static_cast<int>(length), call.in_c()),
          fmt::format("in an allreduce of {} elements of {} bytes", count, element));
    call.Rethrow();
  }
  aligned.CopyBack();
}

void MpiCommunicator::RunReduce(const Operation& operation) {
  const Reduction& reduction = *operation.reduction;
  const std::size_t count = operation.count;
  const std::size_t per_call = ElementsPerCall(reduction);
  const std::size_t element = reduction.element_bytes();
  AlignedBuffer aligned(operation.receive, count * element, reduction);
  Call call(reduction);
  for (std::size_t begin = 0; begin < count; begin += per_call) {
    const std::size_t length = std::min(per_call, count - begin);
    Check(mpi_.reduce(group_, At(aligned.get(), begin * element), static_cast<int>(length), call.in_c(),
                      operation.root),
          fmt::format("in a reduce of {} elements of {} bytes to rank {}", count, element, operation.root));
    call.Rethrow();
  }
  if (rank_ == operation.root) aligned.CopyBack();
}

void MpiCommunicator::RunReduceScatter(const Operation& operation) {
  const Reduction& reduction = *operation.reduction;
  const std::span<const std::size_t> offsets = operation.receive_offsets;
  void* const buffer = operation.receive;
  const std::size_t element = reduction.element_bytes();
  const std::size_t count = offsets.back();
  if (count > ElementsPerCall(reduction)) {
    for (int root = 0; root < world_size_; ++root) {
      Reduce(At(buffer, offsets[root] * element), offsets[root + 1] - offsets[root], reduction, root);
    }
    return;
  }
  std::vector<int> counts(world_size_);
  for (int rank = 0; rank < world_size_; ++rank) {
    counts[rank] = static_cast<int>(offsets[rank + 1] - offsets[rank]);
  }
  AlignedBuffer aligned(buffer, count * element, reduction);
  Call call(reduction);
  Check(mpi_.reduce_scatter(group_, aligned.get(), counts.data(), call.in_c()),
        fmt::format("in a reduce-scatter of {} elements of {} bytes", count, element));
  call.Rethrow();
  // MPI leaves this rank's part at the start of the buffer; the rest of the buffer may be overwritten.
  if (counts[rank_] > 0)
    std::memmove(At(buffer, offsets[rank_] * element), aligned.get(), counts[rank_] * element);
}

void MpiCommunicator::RunBroadcast(const Operation& operation) {
  const std::size_t bytes = operation.count;
  for (std::size_t begin = 0; begin < bytes; begin += options_.max_call_bytes) {
    const std::size_t length = std::min(options_.max_call_bytes, bytes - begin);
    Check(mpi_.broadcast(group_, At(operation.receive, begin), static_cast<int>(length), operation.root),
          fmt::format("in a broadcast of {} bytes from rank {}", bytes, operation.root));
  }
}

void MpiCommunicator::RunAllgather(const Operation& operation) {
  void* const buffer = operation.receive;
  if (operation.without_offsets) {
    return Allgather(buffer, GatherOffsets(*this, {operation.count, operation.begin, operation.end}));
  }
  CopyOwnSlice(operation, rank_);
  const std::span<const std::size_t> offsets = operation.receive_offsets;
  const std::size_t total = offsets.back();
  if (total > options_.max_call_bytes) {
    // MPI's displacements are ints, too, so above the limit each rank broadcasts its slice.
    for (int root = 0; root < world_size_; ++root) {
      Broadcast(At(buffer, offsets[root]), offsets[root + 1] - offsets[root], root);
    }
    return;
  }
  std::vector<int> bytes(world_size_);
  std::vector<int> starts(world_size_);
  for (int rank = 0; rank < world_size_; ++rank) {
    bytes[rank] = static_cast<int>(offsets[rank + 1] - offsets[rank]);
    starts[rank] = static_cast<int>(offsets[rank]);
  }
  Check(mpi_.allgather(group_, buffer, bytes.data(), starts.data()),
        fmt::format("in an allgather of {} bytes", total));
}

void MpiCommunicator::RunGather(const Operation& operation) {
  std::vector<Inbound> receives;
  if (rank_ == operation.root) {
    const std::span<const std::size_t> offsets = operation.receive_offsets;
    for (int rank = 0; rank < world_size_; ++rank) {
      receives.push_back({rank, At(operation.receive, offsets[rank]), offsets[rank + 1] - offsets[rank]});
    }
  }
  const Outbound own{operation.root, operation.send, operation.count};
  RunMessages(Operation::SendReceive({&own, 1}, receives));
}

void MpiCommunicator::RunScatter(const Operation& operation) {
  std::vector<Outbound> sends;
  if (rank_ == operation.root) {
    const std::span<const std::size_t> offsets = operation.send_offsets;
    for (int rank = 0; rank < world_size_; ++rank) {
      sends.push_back({rank, static_cast<const std::byte*>(operation.send) + offsets[rank],
                       offsets[rank + 1] - offsets[rank]});
    }
  }
  const Inbound own{operation.root, operation.receive, operation.count};
  RunMessages(Operation::SendReceive(sends, {&own, 1}));
}

void MpiCommunicator::RunAllToAll(const Operation& operation) {
  const std::span<const std::size_t> sent = operation.send_offsets;
  const std::span<const std::size_t> received = operation.receive_offsets;
  std::vector<Outbound> sends;
  std::vector<Inbound> receives;
  // Each rank starts with different peers, so that not all ranks send to the same rank first.
  for (int turn = 0; turn < world_size_; ++turn) {
    const int to = (rank_ + turn) % world_size_;
    const int from = (rank_ + world_size_ - turn) % world_size_;
    sends.push_back({to, static_cast<const std::byte*>(operation.send) + sent[to], sent[to + 1] - sent[to]});
    receives.push_back({from, At(operation.receive, received[from]), received[from + 1] - received[from]});
  }
  RunMessages(Operation::SendReceive(sends, receives));
}

void MpiCommunicator::RunMessages(const Operation& operation) {
  // A message that is too long for one MPI call is split. An empty message is sent, too.
  const auto cut = [this](std::vector<WarrenMpiMessage>& messages, int peer, void* data, std::size_t bytes) {
    std::size_t done = 0;
    do {
      const std::size_t now = std::min(bytes - done, options_.max_call_bytes);
      messages.push_back({peer, At(data, done), static_cast<int>(now)});
      done += now;
    } while (done < bytes);
  };
  std::vector<WarrenMpiMessage> outgoing;
  std::vector<WarrenMpiMessage> incoming;
  // A message to this rank itself is copied here: in place, its two buffers are the same memory, which MPI
  // does not allow.
  CopyOwnSlice(operation, rank_);
  for (const Inbound& in : operation.receives) {
    if (in.from != rank_) cut(incoming, in.from, in.data, in.bytes);
  }
  for (const Outbound& out : operation.sends) {
    if (out.to != rank_) cut(outgoing, out.to, const_cast<void*>(out.data), out.bytes);
  }
  Check(
      mpi_.exchange(group_, outgoing.data(), static_cast<int>(outgoing.size()), incoming.data(),
                    static_cast<int>(incoming.size())),
      fmt::format("in {} messages sent and {} received", operation.sends.size(), operation.receives.size()));
}

void MpiCommunicator::TrackerPrint(const std::string& text) {
  if (options_.print) {
    options_.print(text);
    return;
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void MpiCommunicator::Finalize() {
  if (group_ == nullptr || !is_world()) return;
  Check(mpi_.close(std::exchange(group_, nullptr)), "leaving MPI's world");
}

std::size_t MpiCommunicator::ElementsPerCall(const Reduction& reduction) const {
  const std::size_t element = reduction.element_bytes();
  if (element == 0 || element > INT_MAX) {
    throw Misuse(fmt::format("{}: elements of {} bytes cannot be reduced over MPI, 1 to {} can", Who(),
                             element, INT_MAX));
  }
  return std::max<std::size_t>(1, options_.max_call_bytes / element);
}

void MpiCommunicator::RequireOpen(std::string_view what) const {
  if (group_ == nullptr) throw Misuse(fmt::format("{}: {} after Finalize", Who(), what));
}

void MpiCommunicator::Check(const char* error, const std::string& what) const {
  if (error == nullptr) return;
  throw EngineError(fmt::format("{}: {} ({}): {}", Who(), what, mpi_.name, error));
}

std::string MpiCommunicator::Who() const {
  return fmt::format("rank {} of {} on {}", rank_, world_size_, host_.empty() ? "this host" : host_);
}

}  // namespace warren
