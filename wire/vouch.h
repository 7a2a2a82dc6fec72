// The message that admits a worker which joins with XGBoost's or rabit's own protocol: these protocols cannot
// prove the job's token. Before the worker joins, its process vouches for it over a connection that has
// proved the token (authentication.h, or TLS). The vouch names the worker's task and a ticket, which is a
// random string. The worker then calls itself TASK#TICKET in its hellos, from the same address, and the
// tracker treats it as TASK. This file handles only bytes and does no I/O.
//
//   worker                                            tracker
//   int kVouchMagic, string "TICKET TASK"        ->
//                                                <-   string "expected"; closes
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "wire/bytes.h"

namespace warren::wire {

/// The first four bytes of a vouch, instead of kMagic of wire/dialect.h.
inline constexpr std::int32_t kVouchMagic = 0x56525257;  // "WRRV"
inline constexpr std::size_t kMinTicketBytes = 16;
inline constexpr std::size_t kMaxTicketBytes = 64;
inline constexpr std::string_view kVouched = "expected";

struct Vouch {
  std::string task_id;  ///< the worker's task id, without the ticket; may be empty or "NULL"
  std::string ticket;   ///< letters, digits, '-' and '_', kMinTicketBytes to kMaxTicketBytes
};

/// Encodes the message, including the magic.
std::string Encode(const Vouch& vouch);
/// Decodes the message after the magic; std::nullopt until it has arrived completely. Throws ProtocolError if
/// it has no valid ticket.
std::optional<Vouch> NextVouch(Reader& reader);

/// Splits a task id with a ticket, TASK#TICKET; std::nullopt if it has no ticket.
std::optional<Vouch> SplitTicket(std::string_view task_id);

}  // namespace warren::wire
