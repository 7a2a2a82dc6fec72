#include "tracker/state_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace warren::tracker {
namespace {

constexpr char kHeader[] = "warren-tracker-state 1 port %hu workers %23s %c";
constexpr std::string_view kToken = " token ";
/// The offset of the version in the header. While the file is incomplete, kIncomplete replaces the version.
constexpr off_t kVersionOffset = sizeof("warren-tracker-state ") - 1;
constexpr char kVersion = '1';
constexpr char kIncomplete = '!';

}  // namespace

StateFile::StateFile(std::string path) : path_(std::move(path)) {
  descriptor_ = open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor_ < 0) Throw(std::strerror(errno));
  try {
    if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
      Throw(errno == EWOULDBLOCK ? "another tracker is using it" : std::strerror(errno));
    }
    struct stat status {};
    if (fstat(descriptor_, &status) != 0) Throw(std::strerror(errno));
    if (!S_ISREG(status.st_mode)) Throw("it is not a regular file");
    Read();
    // The file will hold the token, and an existing file may have other permissions.
    if (fchmod(descriptor_, 0600) != 0) Throw(std::strerror(errno));
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

StateFile::~StateFile() {
  close(descriptor_);
}

void StateFile::Read() {
  std::string text;
  std::array<char, 64 * 1024> bytes;
  for (;;) {
    const ssize_t count = read(descriptor_, bytes.data(), bytes.size());
    if (count == 0) break;
    if (count > 0) {
      text.append(bytes.data(), static_cast<std::size_t>(count));
    } else if (errno != EINTR) {
      Throw(std::strerror(errno));
    }
  }
  const std::size_t whole = text.rfind('\n') + 1;  // 0 if there is no complete line
  std::string_view rest = std::string_view(text).substr(0, whole);
  bool first = true;
  while (!rest.empty()) {
    const std::string line(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(line.size() + 1);
    if (!std::exchange(first, false)) {
      try {
        notes_.push_back(DecodeNote(line));
      } catch (const std::invalid_argument& error) {
        Throw(fmt::format("line {}: {}", notes_.size() + 2, error.what()));
      }
      continue;
    }
    ReadHeader(line);
  }
  if (whole == 0 && !text.empty() && !std::string_view(kHeader).starts_with(text.substr(0, 20))) {
    Throw("it is not a tracker's state file; choose another name for --state, or remove it");
  }
  size_ = static_cast<std::int64_t>(whole);
  if (whole < text.size() && ftruncate(descriptor_, size_) != 0) Throw(std::strerror(errno));
}

void StateFile::ReadHeader(const std::string& line) {
  if (line.size() > kVersionOffset && line[kVersionOffset] == kIncomplete) {
    Throw("it lacks the events from while its disk was full, so the job cannot be taken over; remove it");
  }
  const std::size_t token = line.find(kToken);
  char more = 0;
  std::array<char, 24> workers{};
  const bool is_header =
      std::sscanf(line.substr(0, token).c_str(), kHeader, &port_, workers.data(), &more) == 2 && port_ != 0;
  workers_ = workers.data();
  try {
    if (is_header && token != std::string::npos)
      token_ = wire::JobToken::Parse(std::string_view(line).substr(token + kToken.size()));
    if (is_header) return;
  } catch (const std::invalid_argument&) {
    // The call of Throw below reports this.
  }
  Throw("it is not a tracker's state file; choose another name for --state, or remove it");
}

std::string StateFile::Begin(std::uint16_t port, const std::string& workers, const wire::JobToken& token) {
  port_ = port;
  workers_ = workers;
  token_ = token;
  return Append(
      fmt::format("warren-tracker-state 1 port {} workers {}{}{}", port, workers, kToken, token.ToHex()));
}

std::string StateFile::Add(const Note& note) {
  return Append(Encode(note));
}

std::string StateFile::Append(const std::string& line) {
  pending_ += line + '\n';
  const int error = WritePending();
  if (fails_ == (error != 0)) return {};
  fails_ = error != 0;
  Mark(fails_ ? kIncomplete : kVersion);
  return fails_
             ? fmt::format(
                   "the state file '{}': {}; the job goes on, but no other tracker can take it over until the file can be written again",
                   path_, std::strerror(error))
             : fmt::format("the state file '{}' is complete again", path_);
}

int StateFile::WritePending() {
  while (!pending_.empty()) {
    const ssize_t count = pwrite(descriptor_, pending_.data(), pending_.size(), size_);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 ? errno : ENOSPC;
    size_ += count;
    pending_.erase(0, static_cast<std::size_t>(count));
  }
  return 0;
}

void StateFile::Mark(char version) {
  // Written in place, which needs no disk space. If even this fails, a reader still gets whole lines only,
  // though not the last ones.
  if (size_ > kVersionOffset) (void)!pwrite(descriptor_, &version, 1, kVersionOffset);
}

void StateFile::Remove() {
  unlink(path_.c_str());
}

void StateFile::Throw(const std::string& what) const {
  throw std::runtime_error(fmt::format("the state file '{}': {}", path_, what));
}

}  // namespace warren::tracker
