#include "rabit_engine/call/communicator.h"

#include <fmt/format.h>

#include "rabit_engine/base/error.h"

namespace warren {

namespace {

[[noreturn]] void RefuseToServe(const Communicator& communicator, const char* what) {
  throw Refused(
      fmt::format("rank {}: this engine has no {}; set WARREN_ENGINE=native", communicator.rank(), what));
}

}  // namespace

std::unique_ptr<Communicator> Communicator::Split(int, int) {
  RefuseToServe(*this, "split");
}

std::unique_ptr<Communicator> Communicator::Group(std::span<const int>, const std::string&, OobAllgather&) {
  RefuseToServe(*this, "group creation by its members alone");
}

std::unique_ptr<TaggedMessages> Communicator::MakeMailbox() {
  RefuseToServe(*this, "mailbox");
}

int Communicator::host_of(int) const {
  RefuseToServe(*this, "knowledge of hosts");
}

}  // namespace warren
