#include "rabit_engine/base/shortage.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <system_error>

#include "posix/shortage.h"

namespace warren {

void ThrowShortage(const std::string& doing, std::string_view call, int error) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  throw LocalShortage(error,
                      fmt::format("{}: {} failed on {}, its own host: {}. {}", doing, call, host.data(),
                                  std::generic_category().message(error), posix::ShortageAdvice(error)));
}

void ThrowIfShortage(const std::string& doing, std::string_view call, int error) {
  if (posix::IsLocalShortage(error)) ThrowShortage(doing, call, error);
}

std::string DescribeShortage(int error) {
  return fmt::format("for a shortage of its own ({})", std::generic_category().message(error));
}

}  // namespace warren
