// How a worker is admitted that joins by the protocol of XGBoost or rabit, in which nothing can be proved:
// before it begins, its process vouches for it over a connection that has proved the job's token
// (authentication.h, or TLS). It names the worker's task and a ticket, a random text. The worker then calls
// itself TASK#TICKET in its hellos, from the same address, and the tracker takes it for TASK. Pure.
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

/// First four bytes of a vouch, in place of kMagic of wire/dialect.h.
inline constexpr std::int32_t kVouchMagic = 0x56525257;  // "WRRV"
inline constexpr std::size_t kMinTicketBytes = 16;
inline constexpr std::size_t kMaxTicketBytes = 64;
inline constexpr std::string_view kVouched = "expected";

struct Vouch {
  std::string task_id;  ///< as in the hello that follows: may be empty, or "NULL"
  std::string ticket;   ///< letters, digits, '-' and '_', kMinTicketBytes to kMaxTicketBytes
};

/// With its magic.
std::string Encode(const Vouch& vouch);
/// What follows the magic; std::nullopt until it has come whole. Throws ProtocolError.
std::optional<Vouch> NextVouch(Reader& reader);

/// A task id with a ticket, TASK#TICKET, taken apart; std::nullopt for one without.
std::optional<Vouch> SplitTicket(std::string_view task_id);

}  // namespace warren::wire
