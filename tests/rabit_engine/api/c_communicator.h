// The collectives of warren/c_api.h as an implementation of the engine's own interface, so that tests written
// for that interface can call them, blocking and asynchronously.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "rabit_engine/base/error.h"
#include "rabit_engine/call/communicator.h"
#include "rabit_engine/reduce/reduction.h"
#include "tests/rabit_engine/engine/random_program.h"
#include "warren/c_api.h"

namespace warren::testing {

inline void CheckCall(int result) {
  if (result != 0) throw EngineError(WarrenGetLastError());
}

/// An asynchronous call of the C API, identified by its handle.
class CCall final : public BegunCall {
 public:
  explicit CCall(WarrenHandle handle) : handle_(handle) {}
  ~CCall() override { WarrenHandleFree(handle_); }
  CCall(const CCall&) = delete;
  CCall& operator=(const CCall&) = delete;

  bool Test() override {
    int done = 0;
    CheckCall(WarrenTest(handle_, &done));
    return done != 0;
  }
  void Wait() override { CheckCall(WarrenWait(std::exchange(handle_, nullptr))); }
  void WhenDone(std::function<void(const char* error)> function) override {
    using Function = std::function<void(const char*)>;
    CheckCall(WarrenWhenDone(
        handle_,
        [](const char* error, void* context) {
          const std::unique_ptr<Function> called(static_cast<Function*>(context));
          (*called)(error);
        },
        new Function(std::move(function))));
  }

 private:
  WarrenHandle handle_;
};

/// A communicator over the C API. Supports at most one send and one receive per call.
class CCommunicator final : public BeginningCommunicator {
 public:
  /// Takes ownership of `comm`.
  explicit CCommunicator(WarrenComm comm) : comm_(comm) {
    CheckCall(WarrenCommRank(comm_, &rank_));
    CheckCall(WarrenCommSize(comm_, &world_size_));
  }
  ~CCommunicator() override { WarrenCommFree(comm_); }
  CCommunicator(const CCommunicator&) = delete;
  CCommunicator& operator=(const CCommunicator&) = delete;

  int rank() const override { return rank_; }
  int world_size() const override { return world_size_; }
  bool is_distributed() const override { return world_size_ > 1; }
  std::string host() const override { return "unknown"; }
  int local_rank() const override { return 0; }
  int rank_in_job(int rank) const override {
    int in_world = -1;
    CheckCall(WarrenCommRankInWorld(comm_, rank, &in_world));
    return in_world;
  }

  std::vector<std::unique_ptr<BegunCall>> Begin(const std::function<void()>& make) override {
    begins_ = true;
    make();
    begins_ = false;
    return std::exchange(begun_, {});
  }

  void Run(const Operation& operation) override {
    void* const buffer = operation.receive;
    const int root = operation.root;
    const auto out = CountsOf(operation.send_offsets);
    const auto in = CountsOf(operation.receive_offsets);
    switch (operation.kind) {
      case Collective::kAllreduce:
        return Call(WarrenAllreduce, WarrenAllreduceAsync, buffer, buffer, operation.count, TypeOf(operation),
                    OpOf(operation));
      case Collective::kReduce:
        return Call(WarrenReduce, WarrenReduceAsync, buffer, rank_ == root ? buffer : nullptr,
                    operation.count, TypeOf(operation), OpOf(operation), root);
      case Collective::kReduceScatter:
        return Call(WarrenReduceScatterV, WarrenReduceScatterVAsync, buffer,
                    At(buffer, operation.receive_offsets[rank_] * operation.reduction->element_bytes()),
                    in.data(), TypeOf(operation), OpOf(operation));
      case Collective::kBroadcast:
        return Call(WarrenBroadcast, WarrenBroadcastAsync, buffer, operation.count, WARREN_UINT8, root);
      case Collective::kAllgather:
        return Call(WarrenAllgatherV, WarrenAllgatherVAsync, At(buffer, operation.receive_offsets[rank_]),
                    buffer, in.data(), WARREN_UINT8);
      case Collective::kGather:
        return Call(WarrenGatherV, WarrenGatherVAsync, operation.send, operation.count, buffer,
                    rank_ == root ? in.data() : nullptr, WARREN_UINT8, root);
      case Collective::kScatter:
        return Call(WarrenScatterV, WarrenScatterVAsync, operation.send, rank_ == root ? out.data() : nullptr,
                    buffer, operation.count, WARREN_UINT8, root);
      case Collective::kAllToAll:
        return Call(WarrenAllToAllV, WarrenAllToAllVAsync, operation.send, out.data(), buffer, in.data(),
                    WARREN_UINT8);
      case Collective::kSendReceive:
        return RunMessages(operation.sends, operation.receives);
      case Collective::kBarrier:
        return Call(WarrenBarrier, WarrenBarrierAsync);
      default:
        throw Misuse("no function of C");
    }
  }

  std::unique_ptr<Communicator> Split(int color, int key) override {
    WarrenComm made = nullptr;
    CheckCall(WarrenCommSplit(comm_, color, key, &made));
    if (made == nullptr) return nullptr;
    return std::make_unique<CCommunicator>(made);
  }
  void TrackerPrint(const std::string& /*text*/) override {}
  void Finalize() override {}

 private:
  void RunMessages(std::span<const Outbound> sends, std::span<const Inbound> receives) {
    if (sends.size() > 1 || receives.size() > 1) throw Misuse("several messages in one call");
    if (!sends.empty() && !receives.empty()) {
      Call(WarrenSendRecv, WarrenSendRecvAsync, sends[0].data, sends[0].bytes, sends[0].to, receives[0].data,
           receives[0].bytes, receives[0].from, WARREN_UINT8);
    } else if (!sends.empty()) {
      Call(WarrenSend, WarrenSendAsync, sends[0].data, sends[0].bytes, WARREN_UINT8, sends[0].to);
    } else if (!receives.empty()) {
      Call(WarrenRecv, WarrenRecvAsync, receives[0].data, receives[0].bytes, WARREN_UINT8, receives[0].from);
    }
  }
  template <typename Now, typename Later, typename... Arguments>
  void Call(Now now, Later later, Arguments... arguments) {
    if (!begins_) return CheckCall(now(comm_, arguments...));
    WarrenHandle handle = nullptr;
    CheckCall(later(comm_, arguments..., nullptr, &handle));
    begun_.push_back(std::make_unique<CCall>(handle));
  }
  static void* At(void* buffer, std::size_t bytes) { return static_cast<std::byte*>(buffer) + bytes; }
  static std::vector<std::size_t> CountsOf(std::span<const std::size_t> offsets) {
    std::vector<std::size_t> counts;
    for (std::size_t i = 1; i < offsets.size(); ++i) counts.push_back(offsets[i] - offsets[i - 1]);
    return counts;
  }
  // The engine and the C API use the same numbers for types and operations. The C API has no number for the
  // engine's kLongLong and kULongLong, so callers must not use these.
  static int TypeOf(const Operation& operation) { return static_cast<int>(operation.reduction->type()); }
  static int OpOf(const Operation& operation) { return static_cast<int>(operation.reduction->operation()); }

  WarrenComm comm_;
  int rank_ = 0;
  int world_size_ = 1;
  bool begins_ = false;
  std::vector<std::unique_ptr<BegunCall>> begun_;
};

}  // namespace warren::testing
