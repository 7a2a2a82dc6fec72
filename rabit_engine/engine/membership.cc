#include "rabit_engine/engine/membership.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <string_view>
#include <utility>

#include "posix/cores.h"
#include "posix/cpu_quota.h"
#include "rabit_engine/base/error.h"
#include "rabit_engine/base/tls_context.h"
#include "rabit_engine/base/told_number.h"
#include "rabit_engine/host/cores.h"

namespace warren {
namespace {

// --- the records that ranks exchange ---

/// The record of one rank, sent as lines of text.
struct Record {
  std::string host_key;
  std::string host_group;
  int cores = 0;          ///< the machine's core count
  std::string own_cores;  ///< the cores the rank may run on, encoded by EncodeCores
  std::string offer;      ///< HostSegment::Offer::text
  std::string secret;     ///< the link key is derived from rank 0's secret
  std::string greeting;
  std::vector<std::string> addresses;
};

/// The first line of a record. Must be changed together with anything that has to be the same in all ranks of
/// a job, such as the format of records.
constexpr std::string_view kRecordFormat = "warren-2";

std::string Encode(const Record& record) {
  return fmt::format("{}\n{}\n{}\n{}\n{} {}\n{}\n{}\n{}\n", kRecordFormat, record.host_key, record.host_group,
                     record.offer, record.cores, record.own_cores, record.secret, record.greeting,
                     fmt::join(record.addresses, "\n"));
}

/// Removes the first line from `text` and returns it.
std::string TakeLine(std::string_view& text) {
  std::string line(text.substr(0, text.find('\n')));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

Record Decode(std::string_view text) {
  Record record;
  const auto next = [&text] { return TakeLine(text); };
  if (next() != kRecordFormat) ThrowOtherVersion("record");
  record.host_key = next();
  record.host_group = next();
  record.offer = next();
  const std::string numbers = next();
  const std::string cores = numbers.substr(0, numbers.find(' '));
  record.secret = next();
  record.greeting = next();
  if (cores.size() == numbers.size()) ThrowOtherVersion("record");
  record.cores = ToldNumber(cores, "record", 0, std::numeric_limits<int>::max() / 2);
  record.own_cores = numbers.substr(cores.size() + 1);
  while (!text.empty()) {
    if (std::string line = next(); !line.empty()) record.addresses.push_back(std::move(line));
  }
  return record;
}

/// Derives the key of the links from `secret` and, if there is one, the job token. With a token, the key
/// cannot be computed from an overheard `secret`.
tcp::LinkKey KeyOfLinks(const Settings& settings, const std::string& secret) {
  return settings.job_token ? settings.job_token->Derive("links", secret)
                            : wire::Sha256().Update(secret).Finish();
}

std::vector<int> EachAlone(int size) {
  std::vector<int> ranks(static_cast<std::size_t>(size));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

std::unique_ptr<TcpTransport> MakeTcp(int rank, Listening listening,
                                      std::vector<std::vector<std::string>> addresses,
                                      const tcp::LinkKey& key, const Settings& settings, bool may_spin) {
  const int world_size = static_cast<int>(addresses.size());
  return std::make_unique<TcpTransport>(rank, world_size, listening.socket.Release(), std::move(addresses),
                                        key,
                                        TcpOptions{.no_delay = settings.tcp_no_delay,
                                                   .connect_timeout = settings.connect_timeout,
                                                   .host_timeout = settings.host_timeout,
                                                   .connect_retry = settings.connect_retry,
                                                   .answer_timeout = settings.collective_timeout,
                                                   .tls = TlsFor(settings, wire::kTlsOfLinks),
                                                   .packing = settings.packing,
                                                   .may_spin = may_spin});
}

}  // namespace

Listening ListenHere(const Settings& settings) {
  Listening listening{tcp::ListenAnywhere({settings.first_port, settings.last_port}), {}};
  listening.addresses = tcp::ListenAddresses(listening.socket.fd(), "");
  return listening;
}

Membership MeetWorld(Bootstrap& bootstrap, Listening listening, const Settings& settings,
                     std::vector<std::string>& greetings, Job& job) {
  const int world_size = bootstrap.world_size();
  Membership membership;
  membership.rank = bootstrap.rank();
  membership.ranks = EachAlone(world_size);
  membership.layout = HostLayout(membership.ranks);
  job.layout = membership.layout;
  job.machines = job.hosts = membership.ranks;
  if (world_size == 1) return membership;

  std::unique_ptr<HostSegment::Offer> offer;
  Record own;
  own.host_key = HostKey();
  own.host_group = settings.host_group;
  own.cores = posix::NumCores();
  own.own_cores = EncodeCores(posix::OwnCores());
  own.greeting = greetings.front();
  own.addresses = std::move(listening.addresses);
  if (settings.shared_memory == SharedMemory::kAuto) {
    offer = std::make_unique<HostSegment::Offer>(settings.host_group);
    own.offer = offer->text();
  }
  own.secret = wire::ToHex(wire::BytesOf(wire::RandomNonce()));

  std::vector<std::string> offers;
  std::vector<std::vector<std::string>> addresses;
  std::vector<std::vector<int>> cores_here;  // the cores that each rank on this host may run on
  std::map<std::string, int> ranks_on;       // by machine; containers may share a machine but not memory
  std::map<std::string, int> first_on;
  greetings.clear();
  for (const std::string& text : bootstrap.Allgather(Encode(own))) {
    Record record = Decode(text);
    const int rank = static_cast<int>(offers.size());
    if (rank == 0) job.secret = record.secret;
    job.machines[rank] = first_on.emplace(record.host_key, rank).first->second;
    job.hosts[rank] =
        first_on.emplace(fmt::format("{}/{}", record.host_key, record.host_group), rank).first->second;
    if (record.host_key == own.host_key) cores_here.push_back(DecodeCores(record.own_cores));
    if (++ranks_on[std::string(MachineOf(record.host_key))] > 2 * record.cores) job.crowded = true;
    greetings.push_back(std::move(record.greeting));
    offers.push_back(std::move(record.offer));
    addresses.push_back(std::move(record.addresses));
  }
  job.may_spin = static_cast<int>(cores_here.size()) <=
                     posix::CoresOfQuotas().value_or(std::numeric_limits<int>::max()) &&
                 EachHasACore(cores_here) && ranks_on[std::string(MachineOf(own.host_key))] <= own.cores;
  // All ranks know whether any rank makes an offer. If so, all of them participate in finding out which ranks
  // share memory.
  const bool any_offer =
      std::any_of(offers.begin(), offers.end(), [](const auto& text) { return !text.empty(); });
  if (any_offer) {
    if (!offer) offer = std::make_unique<HostSegment::Offer>(settings.host_group);
    std::vector<int> leaders;
    membership.segment = offer->Join(bootstrap, offers, !job.may_spin, leaders);
    membership.layout = job.layout = HostLayout(leaders);
  }
  if (membership.segment) membership.segment->SetOversubscribed(!job.may_spin);
  job.SetSegment(membership.segment);
  membership.tcp = MakeTcp(membership.rank, std::move(listening), std::move(addresses),
                           KeyOfLinks(settings, job.secret), settings, job.may_spin);
  return membership;
}

// --- a group of ranks --------------------------------------------------------------------------------------

namespace {

/// Returns the groups of members that share memory. `members`: the members' ranks in the job, in the group's
/// order.
HostLayout LayoutOf(const Job& job, std::span<const int> members) {
  std::vector<int> leaders;
  leaders.reserve(members.size());
  std::map<int, int> first_on;
  for (int i = 0; i < static_cast<int>(members.size()); ++i) {
    leaders.push_back(first_on.emplace(job.layout.host_of(members[i]), i).first->second);
  }
  return HostLayout(leaders);
}

constexpr std::string_view kNoMemory = "-";

}  // namespace

SubgroupOffer::SubgroupOffer(const Job& job, std::vector<int> members, int index, const Settings& settings)
    : job_(job) {
  membership_.rank = index;
  membership_.layout = LayoutOf(job, members);
  membership_.ranks = std::move(members);
  if (membership_.ranks.size() == 1) return;
  // The first line of an offer is the offset of the memory that this rank has reserved for the members on its
  // host, or kNoMemory; only the first member on a host reserves memory. Addresses follow.
  const HostLayout& layout = membership_.layout;
  const int host = layout.host_of(index);
  const std::size_t local_size = layout.ranks_of(host).size();
  text_ = std::string(kNoMemory);
  if (local_size > 1) {
    const auto segment = job.Segment();
    if (!segment) throw EngineError("the job has been left with Finalize");
    const auto offset = layout.leader_of(host) == index ? segment->Reserve(local_size) : std::nullopt;
    if (offset) text_ = fmt::format("{}", *offset);
  }
  if (layout.num_hosts() == 1) return;
  listening_ = ListenHere(settings);
  text_ += fmt::format("\n{}", fmt::join(listening_.addresses, "\n"));
}

Membership SubgroupOffer::Join(std::span<const std::string> offers, const std::string& name,
                               const Settings& settings) {
  if (membership_.ranks.size() == 1) return std::move(membership_);
  std::vector<std::vector<std::string>> addresses(job_.layout.world_size());
  std::vector<std::size_t> offsets;  // by member; 0: no memory is reserved
  for (std::size_t i = 0; i < offers.size(); ++i) {
    std::string_view rest = offers[i];
    const std::string offset = TakeLine(rest);
    constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
    offsets.push_back(offset == kNoMemory ? 0 : ToldNumber<std::size_t>(offset, "offer", 1, kMost));
    while (!rest.empty()) addresses[membership_.ranks[i]].push_back(TakeLine(rest));
  }

  // Members use TCP on a host whose segment is full; all members see this in the offers.
  HostLayout& layout = membership_.layout;
  std::vector<int> leaders = EachAlone(static_cast<int>(offers.size()));
  for (int rank = 0; rank < layout.world_size(); ++rank) {
    const int leader = layout.leader_of(layout.host_of(rank));
    if (offsets[leader] != 0) leaders[rank] = leader;
  }
  const bool is_whole = HostLayout(leaders).num_hosts() == layout.num_hosts();
  layout = HostLayout(leaders);
  if (!is_whole && !listening_.socket) {
    throw Refused(fmt::format(
        "rank {}: no shared memory is left for a communicator of {} ranks of this host: each communicator takes a part of it that is not reused. "
        "Raise the limit of file sizes (ulimit -f)",
        membership_.ranks[membership_.rank], membership_.ranks.size()));
  }
  const std::vector<int>& local = layout.ranks_of(layout.host_of(membership_.rank));
  if (local.size() > 1) {
    const std::shared_ptr<HostSegment> segment = job_.Segment();
    if (!segment) throw EngineError("the job has been left with Finalize");
    std::vector<int> members;
    for (const int rank : local) {
      const auto& ranks = segment->ranks();
      members.push_back(
          static_cast<int>(std::find(ranks.begin(), ranks.end(), membership_.ranks[rank]) - ranks.begin()));
    }
    membership_.segment = segment->Within(offsets[local.front()], members);
  }
  membership_.tcp =
      MakeTcp(membership_.ranks[membership_.rank], std::move(listening_), std::move(addresses),
              KeyOfLinks(settings, fmt::format("{} {}", job_.secret, name)), settings, job_.may_spin);
  return std::move(membership_);
}

}  // namespace warren
