#include "bench/allreduce/conducted.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>

#include "bench/allreduce/measure.h"

namespace warren::bench {
namespace {

/// Returns a socket connected to the conductor.
int Connect(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path))
    throw std::invalid_argument("the conductor's path is too long");
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int descriptor = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (descriptor < 0 || connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    throw std::system_error(errno, std::generic_category(), path);
  }
  return descriptor;
}

}  // namespace

void ObeyConductor(World& world, const std::string& path) {
  const int descriptor = Connect(path);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> commands(fdopen(descriptor, "r"), &std::fclose);
  const auto answer = [&](const std::string& text) {
    const std::string line = text + "\n";
    if (send(descriptor, line.data(), line.size(), MSG_NOSIGNAL) < 0) {
      throw std::system_error(errno, std::generic_category(), "the conductor");
    }
  };
  answer(std::to_string(world.rank()));
  std::string current;
  std::unique_ptr<Measurement> measurement;
  char line[256];
  while (std::fgets(line, sizeof(line), commands.get()) != nullptr) {
    std::istringstream words(line);
    std::string command;
    std::string what;
    double block_s = 0;
    words >> command;
    if (command == "forget") {
      measurement = nullptr;
      current.clear();
      answer("ok");
      continue;
    }
    words >> what >> block_s;
    if (command != "sample" || !words) throw std::invalid_argument(fmt::format("not a command: {}", line));
    if (what != current) {
      measurement = nullptr;
      measurement = std::make_unique<Measurement>(world, ParseCase(what), block_s);
      current = what;
    }
    answer(fmt::format("{:.6g}", measurement->Sample()));
  }
}

}  // namespace warren::bench
