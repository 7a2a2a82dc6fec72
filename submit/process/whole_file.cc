#include "submit/process/whole_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>

#include "posix/descriptor.h"
#include "posix/files.h"
#include "posix/private_file.h"

namespace warren::submit {

std::string ReadWholeFile(const std::string& path) {
  const auto fail = [&path] {
    throw std::runtime_error(
        fmt::format("cannot read '{}': {}", path, std::generic_category().message(errno)));
  };
  const posix::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) fail();
  std::string content;
  std::array<char, 65536> buffer{};
  while (true) {
    const ssize_t count = read(file.get(), buffer.data(), buffer.size());
    if (count == 0) return content;
    if (count > 0) {
      content.append(buffer.data(), static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      fail();
    }
  }
}

void WritePrivateFile(const std::string& path, const std::string& content, int flags) {
  const posix::Descriptor file = posix::OpenPrivate(path.c_str(), flags);
  if (file && posix::WriteAll(file.get(), content)) return;
  const int error = errno;
  if ((flags & O_EXCL) != 0 && file) unlink(path.c_str());
  throw std::runtime_error(
      fmt::format("cannot write '{}': {}", path, std::generic_category().message(error)));
}

}  // namespace warren::submit
