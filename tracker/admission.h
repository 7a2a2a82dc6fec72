// Who may take part in a job: those who have proved that they know its token, and of the others those that
// --admit lets in. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

#include "wire/authentication.h"
#include "wire/job_token.h"

namespace warren::tracker {

/// Workers that cannot prove a token: XGBoost's own and rabit's. Those that prove it may always come.
enum class Admit {
  kToken,  ///< none of them
  kHosts,  ///< those from the hosts of the job
  kAny
};

struct AdmissionOptions {
  /// None: nobody has to prove anything, and nobody can.
  std::optional<wire::JobToken> token;
  /// What nonces are made from: random, and another for each tracker.
  wire::Nonce seed{};
  Admit admit = Admit::kAny;
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

  /// Why a peer at this address that proves nothing may not take part; nothing when it may.
  std::optional<std::string> Refusal(const std::string& host) const;

  /// Whether workers have come that know the token. From then on the job is theirs alone: no job has workers
  /// of ours and of others.
  bool closed() const { return closed_; }
  void Close() { closed_ = true; }

 private:
  AdmissionOptions options_;
  std::optional<wire::AuthenticationKeys> keys_;
  wire::HmacKey seed_;
  std::uint64_t num_nonces_ = 0;
  bool closed_ = false;
};

}  // namespace warren::tracker
