// Tagged messages for C++11 and later, independent of the calls on a communicator (warren/collectives.h): any
// number of them may be in progress, started from any thread and with tags in any order.
//
//     warren::Mailbox mailbox(world);
//     warren::Handle sent = mailbox.Send(row.data(), row.size(), neighbor, /*tag=*/7);
//     mailbox.Recv(got.data(), got.size(), warren::kAnyRank, /*tag=*/7).Wait();
//     sent.Wait();
//
// Messages with the same sender, receiver and tag keep their order. For rules and errors, see warren/c_api.h.
#ifndef WARREN_MAILBOX_H_
#define WARREN_MAILBOX_H_

#include <cstddef>
#include <memory>

#include "warren/collectives.h"

namespace warren {
inline namespace v1 {

constexpr int kAnyRank = WARREN_ANY_RANK;

/// A mailbox for tagged messages. Copies refer to the same mailbox; destroying the last of them frees it,
/// which ends operations in progress with an error.
class Mailbox {
 public:
  /// Collective: all ranks of the communicator construct one.
  explicit Mailbox(const Communicator& communicator) {
    WarrenMailbox made = nullptr;
    internal::Check(WarrenMailboxCreate(communicator.get(), &made));
    mailbox_ = std::shared_ptr<WarrenMailbox_>(made, WarrenMailboxFree);
  }

  /// Sends `count` elements to another rank. The operation ends when the buffer may be reused; for a long
  /// message, this is only after the other rank has started to receive it.
  template <typename T>
  Handle Send(const T* buffer, std::size_t count, int to, long long tag,  // NOLINT(google-runtime-int)
              const CallOptions& options = CallOptions()) const {
    const WarrenCallOptions wanted = internal::InC(options);
    WarrenHandle made = nullptr;
    internal::Check(
        WarrenMailboxSend(mailbox_.get(), buffer, internal::Bytes<T>(count), to, tag, &wanted, &made));
    return Handle(made);
  }
  /// Receives from another rank, or kAnyRank. `source`, unless null, is set to the sender before the
  /// operation ends. If the message has a different length, only this receive fails.
  template <typename T>
  Handle Recv(T* buffer, std::size_t count, int from, long long tag,  // NOLINT(google-runtime-int)
              int* source = nullptr, const CallOptions& options = CallOptions()) const {
    const WarrenCallOptions wanted = internal::InC(options);
    WarrenHandle made = nullptr;
    internal::Check(WarrenMailboxRecv(mailbox_.get(), buffer, internal::Bytes<T>(count), from, tag, source,
                                      &wanted, &made));
    return Handle(made);
  }

 private:
  std::shared_ptr<WarrenMailbox_> mailbox_;
};

}  // namespace v1
}  // namespace warren

#endif  // WARREN_MAILBOX_H_
