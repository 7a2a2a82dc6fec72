#include "rabit_engine/bootstrap/rendezvous_bootstrap.h"

#include <fmt/format.h>

#include <utility>

#include "rabit_engine/base/error.h"
#include "rabit_engine/bootstrap/none_bootstrap.h"

namespace warren {

RendezvousBootstrap::RendezvousBootstrap(int rank, int world_size, Exchange exchange)
    : rank_(rank), world_size_(world_size), exchange_(std::move(exchange)) {}

std::vector<std::string> RendezvousBootstrap::Allgather(const std::string& record) {
  std::vector<std::string> records = exchange_(record);
  if (records.size() != static_cast<std::size_t>(world_size_) || records[rank_] != record) {
    throw EngineError(fmt::format(
        "rank {} of {}: the rendezvous gave {} records{}; expected one of each rank, in their order", rank_,
        world_size_, records.size(),
        records.size() == static_cast<std::size_t>(world_size_) ? ", and not this rank's own in its place"
                                                                : ""));
  }
  return records;
}

void RendezvousBootstrap::Print(const std::string& text) {
  NoneBootstrap().Print(text);
}

}  // namespace warren
