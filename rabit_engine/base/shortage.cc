#include "rabit_engine/base/shortage.h"

#include <fmt/format.h>

#include <system_error>

#include "posix/host_name.h"
#include "posix/shortage.h"

namespace warren {

void ThrowShortage(const std::string& doing, std::string_view call, int error) {
  throw LocalShortage(error,
                      fmt::format("{}: {} failed on {}, its own host: {}. {}", doing, call, posix::HostName(),
                                  std::generic_category().message(error), posix::ShortageAdvice(error)));
}

void ThrowIfShortage(const std::string& doing, std::string_view call, int error) {
  if (posix::IsLocalShortage(error)) ThrowShortage(doing, call, error);
}

std::string DescribeShortage(int error) {
  return fmt::format("for a shortage of its own ({})", std::generic_category().message(error));
}

}  // namespace warren
