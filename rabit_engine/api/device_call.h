// The handle of a collective on device memory. The collective is enqueued on its stream, followed by a mark
// that is reached when the collective has ended.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "rabit_engine/api/pending_call.h"
#include "rabit_engine/api/session.h"

namespace warren::api {

class DeviceCall final : public PendingCall {
 public:
  /// Enqueues the collective on its stream.
  DeviceCall(const Call& call, std::shared_ptr<Session> session, const device::Operation& operation)
      : call_(call), session_(std::move(session)), mark_(session_->OnDeviceWithMark(call, operation)) {}

  bool HasEnded() override { return session_->IsDeviceReached(mark_); }
  void Wait() override { session_->DeviceWait(call_, mark_); }
  /// `function` is called by the session's call queue, which waits for the mark.
  void WhenEnded(std::function<void(const std::exception_ptr& error)> function) override {
    const auto waits = [call = call_, session = session_, mark = mark_] { session->DeviceWait(call, mark); };
    session_->Enqueue(call_, waits)->WhenEnded(std::move(function));
  }

 private:
  const Call call_;
  const std::shared_ptr<Session> session_;
  const Session::DeviceMark mark_;
};

}  // namespace warren::api
