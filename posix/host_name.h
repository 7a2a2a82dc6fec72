// The name of this host. Depends on nothing else in the tree.
#pragma once

#include <unistd.h>

#include <array>
#include <string>

namespace warren::posix {

/// The name returned by gethostname; "localhost" if it fails.
inline std::string HostName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

}  // namespace warren::posix
