// Who may take part in a job: workers that have proved that they know its token, those that were vouched for
// (wire/vouch.h), and those that --admit lets in without either. Pure.
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

/// Workers that neither prove the token nor are vouched for: those of programs that join by XGBoost's own
/// protocol or rabit's. Those that prove it may always come.
enum class Admit {
  kToken,  ///< none of them
  kUser,   ///< processes of the tracker's own user on its machine, who can read the token anyway
  kHosts,  ///< those from the hosts of the job
  kAny
};

struct AdmissionOptions {
  /// The job's token; without one nobody has to prove anything, and nobody can.
  std::optional<wire::JobToken> token;
  /// What nonces are made from: random, and another for each tracker.
  wire::Nonce seed{};
  Admit admit = Admit::kUser;
  /// Addresses, as a connection shows them: "10.0.0.7", "fd00::7".
  std::set<std::string> hosts;
  /// The token is proved by TLS alone, which encrypts what follows.
  bool tls = false;
};

class Admission {
 public:
  explicit Admission(AdmissionOptions options);

  /// None without a token.
  const std::optional<wire::AuthenticationKeys>& keys() const { return keys_; }
  bool requires_tls() const { return options_.tls; }
  /// One that was never said before.
  wire::Nonce NextNonce();

  /// Why a peer at this address that proves nothing may not take part; nothing when it may. `is_own_user`:
  /// whether it is a process of the tracker's user on this machine; it matters if AsksForUser.
  std::optional<std::string> Refusal(const std::string& host, bool is_own_user) const;
  bool AsksForUser() const { return options_.token && !closed_ && options_.admit == Admit::kUser; }

  /// A process at `host` that has proved the token vouches for a worker that is about to join.
  void Vouch(const wire::Vouch& vouch, const std::string& host);
  /// Whether a peer at `host` may be one that was vouched for.
  bool ExpectsFrom(const std::string& host) const { return hosts_with_tickets_.contains(host); }
  /// The task that a peer at `host` has which calls itself `shown` in its hello. `starts`: it wants to join,
  /// which a ticket is good for once. Throws wire::ProtocolError where it was not vouched for; `refusal` is
  /// what it is told if it shows no ticket.
  std::string TaskOf(std::string_view shown, const std::string& host, bool starts,
                     const std::string& refusal);

  /// Whether workers have come that know the token. From then on the job is theirs alone: no job has workers
  /// of ours and of others.
  bool closed() const { return closed_; }
  void Close() { closed_ = true; }

 private:
  struct Ticket {
    std::string task_id;
    std::string host;
    bool used = false;
  };

  AdmissionOptions options_;
  std::unordered_map<std::string, Ticket>
      tickets_;  ///< by ticket; only processes that know the token add to them
  std::set<std::string> hosts_with_tickets_;
  std::optional<wire::AuthenticationKeys> keys_;
  wire::HmacKey seed_;
  std::uint64_t num_nonces_ = 0;
  bool closed_ = false;
};

}  // namespace warren::tracker
