#include "submit/cluster/shipping.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <system_error>

#include "submit/cluster/clusters.h"
#include "submit/process/capture.h"
#include "submit/process/command.h"

namespace warren::submit {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 11> kArchiveSuffixes = {
    ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst", ".tgz", ".tbz2", ".txz", ".tar", ".zip", ".jar", ".whl"};
constexpr std::array<std::string_view, 5> kSystemFolders = {"/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/"};
constexpr std::chrono::minutes kUnpackPatience{30};

bool IsZip(std::string_view name) {
  return name.ends_with(".zip") || name.ends_with(".jar") || name.ends_with(".whl");
}

std::string NameOf(const std::string& path) {
  return fs::path(path).filename().string();
}

std::string FullPath(const char* option, const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw UsageError(fmt::format("{}: '{}' does not exist", option, path));
  if (!fs::is_regular_file(status)) {
    throw UsageError(
        fmt::format("{}: '{}' is not a file{}", option, path,
                    fs::is_directory(status) ? "; pass a directory as an archive, with --archives" : ""));
  }
  return fs::absolute(path).lexically_normal().string();
}

Archive ArchiveAt(const std::string& path) {
  const std::string full = FullPath("--archives", path);
  const std::string name = NameOf(full);
  for (const std::string_view suffix : kArchiveSuffixes) {
    if (name.size() > suffix.size() && name.ends_with(suffix)) {
      return {full, name.substr(0, name.size() - suffix.size())};
    }
  }
  throw UsageError(fmt::format("--archives: '{}' is not a supported archive; supported are: {}", path,
                               fmt::join(kArchiveSuffixes, ", ")));
}

bool HaveTheSameContent(const fs::path& a, const fs::path& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  if (fs::file_size(a, error) != fs::file_size(b, error) || error) return false;
  std::ifstream one(a, std::ios::binary);
  std::ifstream other(b, std::ios::binary);
  return std::equal(std::istreambuf_iterator<char>(one), {}, std::istreambuf_iterator<char>(other));
}

void AddFile(Shipment& shipment, const std::string& full) {
  for (const std::string& other : shipment.files) {
    if (other == full) return;
    if (NameOf(other) != NameOf(full)) continue;
    throw UsageError(fmt::format("'{}' and '{}' would both be called {} where the processes run", other, full,
                                 NameOf(full)));
  }
  shipment.files.push_back(full);
}

void Unpack(const Archive& archive) {
  const std::vector<std::string> words =
      IsZip(archive.path)
          ? std::vector<std::string>{"unzip", "-q", archive.path, "-d", archive.directory}
          : std::vector<std::string>{"tar", "-x", "-f", archive.path, "-C", archive.directory};
  const Captured done = Capture(words, SearchPath(), kUnpackPatience);
  if (done.exit_code == kNotFound) {
    throw std::runtime_error(fmt::format("--archives: {} is not installed here, but is needed to unpack '{}'",
                                         words[0], archive.path));
  }
  if (done.exit_code != 0) {
    throw std::runtime_error(fmt::format("--archives: '{}' cannot be unpacked ({} exited with code {})",
                                         archive.path, ShellCommand(words), done.exit_code));
  }
}

}  // namespace

Shipment PlanShipment(const Options& options) {
  Shipment shipment;
  shipment.command = options.command;
  for (const std::string& path : options.files) AddFile(shipment, FullPath("--files", path));
  for (const std::string& path : options.archives) shipment.archives.push_back(ArchiveAt(path));
  const ClusterEntry& cluster = ClusterOf(options);
  if (!cluster.has_own_directories || !options.auto_file_cache) return shipment;
  for (std::string& word : shipment.command) {
    std::error_code error;
    const bool first = &word == &shipment.command.front();
    if (first) word = CommandOf(options).argv0;  // "./name" if the command is a file of this directory only
    // A first word without a '/' is looked up on PATH, on the hosts as well as here, and is not shipped.
    if ((first && word.find('/') == std::string::npos) || !fs::is_regular_file(word, error)) continue;
    const bool of_the_system = std::any_of(kSystemFolders.begin(), kSystemFolders.end(),
                                           [&](std::string_view folder) { return word.starts_with(folder); });
    if (first && of_the_system) continue;  // assumed to exist on the hosts, too
    const std::string full = FullPath("the command", word);
    if (fs::file_size(full, error) > cluster.max_file_bytes) {
      shipment.too_big.push_back(word);
      continue;
    }
    AddFile(shipment, full);
    word = fmt::format("{}{}", first ? "./" : "", NameOf(full));
  }
  return shipment;
}

PlacedFiles::PlacedFiles(const Shipment& shipment) {
  try {
    PlaceAll(shipment);
  } catch (...) {
    RemoveAll();
    throw;
  }
}

PlacedFiles::~PlacedFiles() {
  RemoveAll();
}

void PlacedFiles::PlaceAll(const Shipment& shipment) {
  for (const std::string& path : shipment.files) {
    const std::string name = NameOf(path);
    if (fs::exists(fs::symlink_status(name))) {
      if (HaveTheSameContent(name, path)) continue;
      throw UsageError(
          fmt::format("--files: the '{}' in this directory is not the same file as '{}'", name, path));
    }
    placed_.push_back(name);
    fs::copy_file(path, name);
  }
  for (const Archive& archive : shipment.archives) {
    if (fs::exists(fs::symlink_status(archive.directory))) {
      throw UsageError(fmt::format("--archives: '{}' would be unpacked into '{}', which already exists",
                                   archive.path, archive.directory));
    }
    placed_.push_back(archive.directory);
    fs::create_directory(archive.directory);
    Unpack(archive);
  }
}

std::string PlacedFiles::Removal() const {
  if (placed_.empty()) return {};
  std::vector<std::string> words = {"rm", "-rf", "--"};
  for (const std::string& name : placed_) words.push_back(fs::absolute(name).string());
  return ShellCommand(words);
}

void PlacedFiles::RemoveAll() {
  std::error_code ignored;
  for (const std::string& name : placed_) fs::remove_all(name, ignored);
}

}  // namespace warren::submit
