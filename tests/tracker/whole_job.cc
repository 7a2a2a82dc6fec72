// Runs a whole job on the tracker's state machine, without sockets or clocks, to count its cost: all workers
// join and are linked, one of them is lost and returns (classic workers only), and all leave.
//
//   whole_job classic|collective <workers> [authenticated]
//
// Prints the number of allocations and of allocated bytes between the first worker and the end. Instructions
// are counted from outside (growth_test.py). authenticated: each connection first proves a token.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <new>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracker/job.h"
#include "wire/authentication.h"
#include "wire/collective.h"

namespace {

std::size_t allocations = 0;
std::size_t allocated_bytes = 0;

}  // namespace

// Neither operator is inlined: if only one of the pair were, GCC would report a mismatch.
[[gnu::noinline]] void* operator new(std::size_t bytes) {
  ++allocations;
  allocated_bytes += bytes;
  if (void* memory = std::malloc(bytes)) return memory;
  std::abort();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace {

using namespace warren;
using namespace warren::tracker;
namespace classic = wire::classic;
namespace collective = wire::collective;

class Counted {
 public:
  Counted(int num_workers, bool authenticated) : num_workers_(num_workers), authenticated_(authenticated) {
    JobOptions options;
    options.num_workers = num_workers;
    options.world_size_is_fixed = true;
    options.admission.token = token_;
    options.admission.admit = Admit::kAny;
    job_.emplace(options, TimePoint{});
  }

  bool Classic() {
    for (int task = 0; task < num_workers_; ++task) {
      // Each field is sent separately, as in rabit.
      const ConnectionId id = Open();
      exchanges_[id];
      Say(id, classic::EncodeMagic());
      Hello(id, -1, task, "start");
    }
    Exchange();
    const ConnectionId back = Open();
    exchanges_[back];
    Say(back, classic::EncodeMagic());
    Hello(back, -1, num_workers_ / 2, "start");
    Exchange();
    for (int task = 0; task < num_workers_; ++task) {
      const ConnectionId id = Open();
      Say(id, classic::EncodeMagic());
      Hello(id, ranks_.at(std::to_string(task)), task, "shutdown");
      job_->Closed(id, "it closed the connection", {});
      Take();
    }
    return finished_;
  }

  bool Collective() {
    std::vector<ConnectionId> all;
    for (int task = 0; task < num_workers_; ++task) {
      const ConnectionId id = Open();
      all.push_back(id);
      Say(id, classic::EncodeMagic());
      Say(id, collective::Encode(collective::Hello{-1, -1, std::to_string(task)}));
      Say(id, collective::Encode(collective::Start{9000, 9001}));
    }
    for (int task = 0; task < num_workers_; ++task) {
      const ConnectionId id = Open();
      Say(id, classic::EncodeMagic());
      const std::string name = std::to_string(task);
      Say(id, collective::Encode(collective::Hello{num_workers_, ranks_.at(name), name}));
      Say(id, collective::Encode(collective::Shutdown{}));
      job_->Closed(id, "it closed the connection", {});
      Take();
    }
    return finished_;
  }

 private:
  struct Exchanging {
    classic::TrackerStream stream;
    int stage = 0;  // the awaited message: 0 the magic, 1 the assignment, 2 the plan
  };

  ConnectionId Open() {
    const ConnectionId id = next_++;
    job_->Opened(id, "10.0.0.1", 4000, {});
    if (authenticated_) Authenticate(id);
    return id;
  }
  void Authenticate(ConnectionId id) {
    const wire::Nonce own = wire::RandomNonce();
    answer_.clear();
    Say(id, keys_.Hello(own));
    wire::Reader reader;
    reader.Append(std::string_view(answer_).substr(4));
    const auto theirs = wire::NextDigest(reader);
    Say(id, std::string(wire::BytesOf(keys_.Proof(wire::Party::kWorker, own, *theirs))));
  }
  void Say(ConnectionId id, const std::string& bytes) {
    job_->Received(id, bytes, {});
    Take();
  }
  void Hello(ConnectionId id, int rank, int task, const char* command) {
    Say(id, wire::Writer().Int(rank).Take());
    Say(id, wire::Writer().Int(-1).Take());
    Say(id, wire::Writer().String(std::to_string(task)).Take());
    Say(id, wire::Writer().String(command).Take());
  }
  void Take() {
    for (Action& action : job_->TakeActions()) {
      if (const auto* send = std::get_if<Send>(&action)) {
        answer_ = send->bytes;
        const auto found = exchanges_.find(send->connection);
        if (found != exchanges_.end()) {
          found->second.stream.Append(send->bytes);
          ready_.push_back(send->connection);
        }
      } else if (const auto* assigned = std::get_if<Assigned>(&action)) {
        ranks_[assigned->task_id] = assigned->rank;
      } else if (std::get_if<Finished>(&action)) {
        finished_ = true;
      } else if (const auto* call = std::get_if<Connect>(&action)) {
        calls_.push_back(call->connection);
      }
    }
    for (const ConnectionId call : std::exchange(calls_, {})) job_->Connected(call);
  }
  /// Answers the tracker until no connection has anything left to send.
  void Exchange() {
    while (!ready_.empty()) {
      const ConnectionId id = ready_.front();
      ready_.pop_front();
      const auto found = exchanges_.find(id);
      if (found == exchanges_.end()) continue;
      Exchanging& one = found->second;
      if (one.stage == 0 && one.stream.NextMagic()) one.stage = 1;
      if (one.stage == 1 && one.stream.NextAssignment()) {
        one.stage = 2;
        Say(id, classic::Encode(classic::GoodLinks{}));
      }
      if (one.stage == 2 && one.stream.NextLinkPlan()) {
        exchanges_.erase(found);
        Say(id, classic::Encode(classic::LinkErrors{0}));
        Say(id, classic::Encode(classic::ListenPort{9010}));
      }
    }
  }

  int num_workers_;
  bool authenticated_;
  wire::JobToken token_ = wire::JobToken::Parse(std::string(64, '7'));
  wire::AuthenticationKeys keys_{token_};
  std::optional<Job> job_;
  ConnectionId next_ = 1;
  std::string answer_;
  std::unordered_map<ConnectionId, Exchanging> exchanges_;
  std::unordered_map<std::string, int> ranks_;
  std::deque<ConnectionId> ready_;
  std::vector<ConnectionId> calls_;
  bool finished_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  Counted counted(std::atoi(argv[2]), argc > 3);
  const std::size_t allocations_before = allocations;
  const std::size_t bytes_before = allocated_bytes;
  const bool done = std::strcmp(argv[1], "classic") == 0 ? counted.Classic() : counted.Collective();
  if (!done) {
    std::fprintf(stderr, "the job did not come to its end\n");
    return 1;
  }
  std::printf("%zu allocations, %zu bytes\n", allocations - allocations_before,
              allocated_bytes - bytes_before);
  return 0;
}
