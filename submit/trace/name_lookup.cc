#include "submit/trace/name_lookup.h"

#include <netdb.h>

#include <boost/asio/post.hpp>
#include <cstring>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "posix/thread.h"

namespace warren::submit {
namespace {

namespace asio = boost::asio;

struct Found {
  std::string error;
  NameLookup::Endpoints endpoints;
};

Found LookUpNow(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), port.c_str(), &hints, &list);
  if (error != 0) return {gai_strerror(error), {}};
  Found found;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    asio::ip::tcp::endpoint endpoint;
    if (one->ai_addrlen > endpoint.capacity()) continue;
    std::memcpy(endpoint.data(), one->ai_addr, one->ai_addrlen);
    endpoint.resize(one->ai_addrlen);
    found.endpoints.push_back(endpoint);
  }
  freeaddrinfo(list);
  return found;
}

}  // namespace

/// The state shared with the thread. It outlives the io_context if the name server takes longer to answer
/// than the job runs.
struct NameLookup::Shared {
  std::mutex mutex;
  asio::io_context* io = nullptr;  ///< null: the lookup was canceled
  Done done;
};

void NameLookup::Start(const std::string& host, const std::string& port, Done done) {
  Cancel();
  shared_ = std::make_shared<Shared>();
  shared_->io = &io_;
  shared_->done = std::move(done);
  try {
    const posix::SignalsBlocked blocked;  // also in the new thread, so that the main thread receives signals
    std::thread([shared = shared_, host, port] {
      Found found = LookUpNow(host, port);
      const std::lock_guard lock(shared->mutex);
      if (shared->io == nullptr) return;
      asio::post(*shared->io, [shared, found = std::move(found)] {
        if (shared->io != nullptr) std::exchange(shared->done, nullptr)(found.error, found.endpoints);
      });
    }).detach();
  } catch (const std::system_error& error) {
    asio::post(io_, [shared = shared_, what = std::string(error.what())] {
      if (shared->io != nullptr) std::exchange(shared->done, nullptr)(what, {});
    });
  }
}

void NameLookup::Cancel() {
  if (!shared_) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->io = nullptr;
  shared_->done = nullptr;
}

}  // namespace warren::submit
