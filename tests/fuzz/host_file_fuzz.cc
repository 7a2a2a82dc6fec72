// Host files: the result is hosts whose lines read back as the same hosts, or an error that names the file.
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <string_view>

#include "submit/cluster/host_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using warren::submit::Host;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<Host> hosts;
  try {
    hosts = warren::submit::ParseHosts(text, "f");
  } catch (const std::runtime_error& error) {
    if (!std::string_view(error.what()).starts_with("f:")) std::abort();
    return 0;
  }
  if (hosts.size() > 1000) return 0;  // a large range takes time and tests nothing new
  std::string lines;
  for (const Host& host : hosts) {
    if (host.name.empty() || host.name[0] == '-' || host.slots < 1) std::abort();
    lines += host.Line() + '\n';
  }
  if (warren::submit::ParseHosts(lines, "f") != hosts) std::abort();
  return 0;
}
