// For systems other than Linux, which lack memfd, pidfd, eventfd or futexes between processes: the ranks of a
// host share no memory and use TCP. No rank on these systems makes an offer, so there is never a segment; the
// functions that would use a segment exist only for the linker.

#include <utility>

#include "posix/host_name.h"
#include "rabit_engine/host/doorbell.h"
#include "rabit_engine/host/host_segment.h"
#include "rabit_engine/host/kernel.h"
#include "rabit_engine/host/sharing.h"

namespace warren {
namespace {

[[noreturn]] void ThereIsNoSegment() noexcept {
  std::terminate();
}

}  // namespace

HostSegment::Offer::Offer(const std::string& /*group*/) {}

// Called if a rank on Linux has made an offer. Takes part in the exchanges of the ranks that made offers.
std::unique_ptr<HostSegment> HostSegment::Offer::Join(OobAllgather& oob, std::span<const std::string> offers,
                                                      bool /*is_crowded*/, std::vector<int>& hosts) {
  const std::vector<std::string> reached = oob.Allgather("0");
  hosts = LeadersOf(offers, reached, oob.Allgather("-1"));
  for (int rank = 0; rank < static_cast<int>(hosts.size()); ++rank) {
    if (hosts[rank] < 0) hosts[rank] = rank;
  }
  return nullptr;
}

// Distinguishes machines by their host names. This decides which ranks count as local, and whether they may
// spin.
std::string HostKey() {
  return posix::HostName();
}

void FutexWait(std::atomic<std::uint32_t>& /*word*/, std::uint32_t /*seen*/,
               std::chrono::nanoseconds /*limit*/) noexcept {
  ThereIsNoSegment();
}

void FutexWakeAll(std::atomic<std::uint32_t>& /*word*/) noexcept {
  ThereIsNoSegment();
}

int CurrentCore() noexcept {
  ThereIsNoSegment();
}

void GiveBackPages(int /*memory*/, std::size_t /*offset*/, std::size_t /*bytes*/) noexcept {
  ThereIsNoSegment();
}

void Doorbell::Ring() const noexcept {
  ThereIsNoSegment();
}

Doorbell::Seat::Seat(std::shared_ptr<Doorbell> doorbell) : doorbell_(std::move(doorbell)) {
  ThereIsNoSegment();
}

Doorbell::Seat::~Seat() = default;

bool Doorbell::Seat::Begin() {
  ThereIsNoSegment();
}

void Doorbell::Seat::Poll(int /*other_descriptor*/, std::chrono::milliseconds /*limit*/) {
  ThereIsNoSegment();
}

void Doorbell::Seat::End(bool /*alone*/) {
  ThereIsNoSegment();
}

}  // namespace warren
