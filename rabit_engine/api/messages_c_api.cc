// The C API of tagged messages (warren/c_api.h): mailboxes, and the handles of messages.
#include <fmt/format.h>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "rabit_engine/api/c_result.h"
#include "rabit_engine/api/collectives_face.h"
#include "rabit_engine/api/pending_call.h"
#include "rabit_engine/api/session.h"
#include "rabit_engine/base/descriptor.h"
#include "rabit_engine/base/error.h"
#include "rabit_engine/base/tagged_messages.h"
#include "warren/c_api.h"

struct WarrenMailbox_ {
  std::shared_ptr<warren::api::Session> session;
  std::unique_ptr<warren::TaggedMessages> messages;
};

namespace {

using warren::EngineError;
using warren::Misuse;
using warren::NumForks;
using warren::TaggedMessages;
using warren::api::Attempt;
using warren::api::Call;
using warren::api::PendingCall;
using warren::api::Session;
using warren::api::face::On;
using warren::api::face::RequireWhole;

/// A message in progress.
class PostedMessage final : public PendingCall {
 public:
  bool HasEnded() override {
    RequireNoFork();
    const std::lock_guard lock(mutex_);
    return has_ended_;
  }

  void Wait() override {
    RequireNoFork();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return has_ended_; });
    if (error_) std::rethrow_exception(error_);
  }

  void WhenEnded(std::function<void(const std::exception_ptr& error)> function) override {
    {
      const std::lock_guard lock(mutex_);
      if (!has_ended_) {
        when_ended_ = std::move(function);
        return;
      }
    }
    function(error_);  // constant once the message has ended
  }

  /// Ends the message, successfully if `error` is null. `where`: the text that precedes the error's own
  /// message.
  void End(const std::string& where, const std::exception_ptr& error) {
    std::function<void(const std::exception_ptr&)> function;
    {
      const std::lock_guard lock(mutex_);
      error_ = At(where, error);
      has_ended_ = true;
      function = std::exchange(when_ended_, nullptr);
      changed_.notify_all();
    }
    if (function) function(error_);
  }

 private:
  static std::exception_ptr At(const std::string& where, const std::exception_ptr& error) {
    if (!error) return nullptr;
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& failure) {
      return std::make_exception_ptr(EngineError(fmt::format("{}: {}", where, failure.what())));
    }
  }
  void RequireNoFork() const {
    if (NumForks() == num_forks_) return;
    throw Misuse("the parent process began this message before it forked: wait for it in the parent");
  }

  const std::uint64_t num_forks_ = NumForks();
  std::mutex mutex_;
  std::condition_variable changed_;
  bool has_ended_ = false;
  std::exception_ptr error_;
  std::function<void(const std::exception_ptr&)> when_ended_;
};

/// Checks the arguments of a send or a receive and starts the message with `post(messages, timeout, ended)`.
template <typename Post>
int Begin(WarrenMailbox mailbox, const char* name, bool may_be_any, int peer, const void* buffer,
          size_t bytes, const WarrenCallOptions* options, WarrenHandle* handle, Post&& post) {
  return Attempt([&] {
    const Call call{name};
    if (mailbox == nullptr) throw Misuse(fmt::format("rank unknown: {}: the mailbox is null", name));
    const Session& session = *mailbox->session;
    if (handle == nullptr) session.Refuse(call, "`handle` is NULL");
    *handle = nullptr;
    if (buffer == nullptr && bytes > 0)
      session.Refuse(call, fmt::format("the buffer of {} bytes is NULL", bytes));
    const bool is_any = may_be_any && peer == WARREN_ANY_RANK;
    if (!is_any && (peer < 0 || peer >= session.world_size() || peer == session.rank())) {
      session.Refuse(call, fmt::format("{} is not another rank of {}", peer, session.world_size()));
    }
    if (is_any && session.world_size() == 1) session.Refuse(call, "there is no other rank to receive from");
    RequireWhole(session, call, options, "CALL");
    const auto timeout = session.Timeout(call, options == nullptr ? 0 : options->timeout_seconds);
    const bool has_name = options != nullptr && options->name != nullptr && *options->name != '\0';
    const std::string where =
        has_name ? fmt::format("{} '{}'", session.Where(call), options->name) : session.Where(call);
    auto posted = std::make_shared<PostedMessage>();
    post(*mailbox->messages, timeout,
         [posted, where](const std::exception_ptr& error) { posted->End(where, error); });
    *handle = new WarrenHandle_{std::move(posted)};
  });
}

}  // namespace

int WarrenMailboxCreate(WarrenComm comm, WarrenMailbox* out) {
  return On(comm, "WarrenMailboxCreate", [&](Session& session, const Call& call) {
    if (out == nullptr) session.Refuse(call, "out is NULL");
    *out = nullptr;
    *out = new WarrenMailbox_{comm->session, session.MakeMailbox(call)};
  });
}

int WarrenMailboxFree(WarrenMailbox mailbox) {
  return Attempt([&] {
    if (mailbox != nullptr && mailbox->messages->EndsOnThisThread()) {
      // Called by a completion function; the mailbox's thread cannot wait for its own end.
      std::thread([mailbox] { delete mailbox; }).detach();
      return;
    }
    delete mailbox;
  });
}

int WarrenMailboxSend(WarrenMailbox mailbox, const void* buffer, size_t bytes, int to, long long tag,
                      const WarrenCallOptions* options, WarrenHandle* handle) {
  const auto post = [&](TaggedMessages& messages, std::chrono::milliseconds timeout, const auto& ended) {
    messages.Send(to, static_cast<std::uint64_t>(tag), buffer, bytes, timeout,
                  [ended](const std::exception_ptr& error, int) { ended(error); });
  };
  return Begin(mailbox, "WarrenMailboxSend", false, to, buffer, bytes, options, handle, post);
}

int WarrenMailboxRecv(WarrenMailbox mailbox, void* buffer, size_t bytes, int from, long long tag, int* source,
                      const WarrenCallOptions* options, WarrenHandle* handle) {
  const auto post = [&](TaggedMessages& messages, std::chrono::milliseconds timeout, const auto& ended) {
    messages.Receive(from, static_cast<std::uint64_t>(tag), buffer, bytes, timeout,
                     [ended, source](const std::exception_ptr& error, int sender) {
                       if (source != nullptr) *source = sender;
                       ended(error);
                     });
  };
  return Begin(mailbox, "WarrenMailboxRecv", true, from, buffer, bytes, options, handle, post);
}
