// Decides which workers may join a job: workers that have proved its token, workers that were vouched for
// (wire/vouch.h), and workers that --admit lets in without either. Does no I/O.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>

#include "wire/authentication.h"
#include "wire/job_token.h"
#include "wire/vouch.h"

namespace warren::tracker {

/// The workers that are admitted although they neither prove the token nor were vouched for. They use the
/// plain protocol of XGBoost or rabit. Workers that prove the token are always admitted.
enum class Admit {
  kToken,  ///< none
  kUser,   ///< processes of the tracker's user on the tracker's machine; they can read the token anyway
  kHosts,  ///< workers on AdmissionOptions::hosts
  kAny
};

struct AdmissionOptions {
  /// The job's token. Without one, all workers are admitted, and none can prove anything.
  std::optional<wire::JobToken> token;
  /// The source of the nonces: random, and different for each tracker.
  wire::Nonce seed{};
  Admit admit = Admit::kUser;
  /// Host addresses, in the form in which connections report them: "10.0.0.7", "fd00::7".
  std::set<std::string> hosts;
  /// Whether the token can be proved only by TLS, which also encrypts the connection.
  bool tls = false;
};

class Admission {
 public:
  explicit Admission(AdmissionOptions options);

  /// The keys of the job's token; std::nullopt without a token.
  const std::optional<wire::AuthenticationKeys>& keys() const { return keys_; }
  bool requires_tls() const { return options_.tls; }
  /// Returns a nonce that has never been used before.
  wire::Nonce NextNonce();

  /// The reason for refusing an unauthenticated peer at this address; std::nullopt if it is admitted.
  /// `is_own_user`: whether the peer is a process of the tracker's user on this machine; matters only if
  /// AsksForUser().
  std::optional<std::string> Refusal(const std::string& host, bool is_own_user) const;
  bool AsksForUser() const { return options_.token && !closed_ && options_.admit == Admit::kUser; }

  /// Records that a worker about to join was vouched for by a process at `host` that has proved the token.
  void Vouch(const wire::Vouch& vouch, const std::string& host);
  /// Whether a worker at `host` has been vouched for.
  bool ExpectsFrom(const std::string& host) const { return hosts_with_tickets_.contains(host); }
  /// Returns the task id of a peer at `host`. `shown`: the task id in the peer's hello, which should have the
  /// form TASK#TICKET. `starts`: whether the peer is joining, for which a ticket is valid only once. Throws
  /// wire::ProtocolError if the ticket was not issued for this task at this host, or if `starts` and the
  /// ticket was used before. If `shown` holds no ticket, the error's message is `refusal`.
  std::string TaskOf(std::string_view shown, const std::string& host, bool starts,
                     const std::string& refusal);

  /// Whether a worker with the token has asked to join, or a worker has been vouched for. From then on, only
  /// such workers are admitted: a job never mixes authenticated and unauthenticated workers.
  bool closed() const { return closed_; }
  void Close() { closed_ = true; }

 private:
  struct Ticket {
    std::string task_id;
    std::string host;
    bool used = false;
  };

  AdmissionOptions options_;
  /// Keyed by ticket; only processes that know the token add entries.
  std::unordered_map<std::string, Ticket> tickets_;
  std::set<std::string> hosts_with_tickets_;
  std::optional<wire::AuthenticationKeys> keys_;
  wire::HmacKey seed_;
  std::uint64_t num_nonces_ = 0;
  bool closed_ = false;
};

}  // namespace warren::tracker
