// Messages with tags for C++11 and later, beside the calls of a communicator (warren/collectives.h) and in no
// order with them: any number under way at once, from any thread, in any order of tags.
//
//     warren::Mailbox mailbox(world);
//     warren::Handle sent = mailbox.Send(row.data(), row.size(), neighbour, /*tag=*/7);
//     mailbox.Recv(got.data(), got.size(), warren::kAnyRank, /*tag=*/7).Wait();
//     sent.Wait();
//
// Those from one rank to another with one tag keep their order. Rules and errors: warren/c_api.h.
#ifndef WARREN_MAILBOX_H_
#define WARREN_MAILBOX_H_

#include <cstddef>
#include <memory>

#include "warren/collectives.h"

namespace warren {
inline namespace v1 {

constexpr int kAnyRank = WARREN_ANY_RANK;

/// Copies are the same mailbox; the last of them frees it, which ends what is under way with an error.
class Mailbox {
 public:
  /// All ranks of the communicator make one at the same time.
  explicit Mailbox(const Communicator& communicator) {
    WarrenMailbox made = nullptr;
    internal::Check(WarrenMailboxCreate(communicator.get(), &made));
    mailbox_ = std::shared_ptr<WarrenMailbox_>(made, WarrenMailboxFree);
  }

  /// `count` elements to another rank. Ends when the buffer may be used again, which for a long message is
  /// not before the other receives it.
  template <typename T>
  Handle Send(const T* buffer, std::size_t count, int to, long long tag,  // NOLINT(google-runtime-int)
              const CallOptions& options = CallOptions()) const {
    const WarrenCallOptions wanted = internal::InC(options);
    WarrenHandle made = nullptr;
    internal::Check(
        WarrenMailboxSend(mailbox_.get(), buffer, internal::Bytes<T>(count), to, tag, &wanted, &made));
    return Owned(made);
  }
  /// From another rank, or kAnyRank. `source`, unless null, becomes the sender before the handle ends. A
  /// message of another length is an error of this receive alone.
  template <typename T>
  Handle Recv(T* buffer, std::size_t count, int from, long long tag,  // NOLINT(google-runtime-int)
              int* source = nullptr, const CallOptions& options = CallOptions()) const {
    const WarrenCallOptions wanted = internal::InC(options);
    WarrenHandle made = nullptr;
    internal::Check(WarrenMailboxRecv(mailbox_.get(), buffer, internal::Bytes<T>(count), from, tag, source,
                                      &wanted, &made));
    return Owned(made);
  }

 private:
  static Handle Owned(WarrenHandle made) {
    Handle handle;
    handle.handle_.reset(made);
    return handle;
  }

  std::shared_ptr<WarrenMailbox_> mailbox_;
};

}  // namespace v1
}  // namespace warren

#endif  // WARREN_MAILBOX_H_
