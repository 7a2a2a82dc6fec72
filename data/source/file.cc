#include "data/source/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <utility>

#include "data/error.h"
#include "data/source/bgzf_file.h"
#include "data/source/zstd_file.h"
#include "posix/descriptor.h"
#include "posix/files.h"

namespace warren::data {
namespace {

using posix::Descriptor;

void RequireRegular(const std::string& path, const struct stat& status) {
  if (S_ISREG(status.st_mode)) return;
  const char* const what =
      S_ISDIR(status.st_mode) ? "a folder" : "a pipe or device, which cannot be read at an offset";
  throw DataError(fmt::format("{}: is {}, expected a regular file", path, what));
}

Descriptor OpenRegular(const std::string& path) {
  // Check before opening, since opening a pipe would wait for its writer.
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) throw DataError(SystemFailure(path, "opening", errno));
  RequireRegular(path, status);
  Descriptor descriptor(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!descriptor) throw DataError(SystemFailure(path, "opening", errno));
  return descriptor;
}

std::uint64_t SizeNow(const std::string& path, int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) throw DataError(SystemFailure(path, "looking up the size", errno));
  RequireRegular(path, status);
  return static_cast<std::uint64_t>(status.st_size);
}

class PlainFile : public File {
 public:
  explicit PlainFile(const std::string& path) : PlainFile(path, OpenRegular(path)) {}

  void ReadAt(std::uint64_t offset, char* to, std::size_t bytes) const override {
    RequireWithin(offset, bytes);
    while (bytes > 0) {
      const ssize_t got = pread(descriptor_.get(), to, bytes, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) throw DataError(SystemFailure(name(), fmt::format("reading at byte {}", offset), errno));
      if (got == 0) FailShortened(offset);
      to += got;
      bytes -= static_cast<std::size_t>(got);
      offset += static_cast<std::uint64_t>(got);
    }
  }

 private:
  PlainFile(const std::string& path, Descriptor descriptor)
      : File(path, SizeNow(path, descriptor.get())), descriptor_(std::move(descriptor)) {
    posix::WillReadInOrder(descriptor_.get());
  }

  [[noreturn]] void FailShortened(std::uint64_t offset) const {
    throw DataError(fmt::format(
        "{}: became shorter while it was read: it ended at byte {}, but had {} bytes when it was opened; it has {} now",
        name(), offset, size(), SizeNow(name(), descriptor_.get())));
  }

  Descriptor descriptor_;
};

}  // namespace

File::File(std::string name, std::uint64_t size) : name_(std::move(name)), size_(size) {}

void File::RequireWithin(std::uint64_t offset, std::size_t bytes) const {
  if (offset <= size_ && bytes <= size_ - offset) return;
  throw std::out_of_range(fmt::format("{}: asked for {} bytes at byte {}, expected no more than its {}",
                                      name_, bytes, offset, size_));
}

Container Recognise(const std::string& path) {
  return Recognise(PlainFile(path));
}

Container Recognise(const File& stored) {
  std::array<char, internal::kRecognisedBytes> first{};
  const auto bytes = static_cast<std::size_t>(std::min<std::uint64_t>(first.size(), stored.size()));
  stored.ReadAt(0, first.data(), bytes);
  const Container start = internal::RecogniseStart({first.data(), bytes});
  if (const std::string_view format = internal::FormatWithColumns({first.data(), bytes}); !format.empty()) {
    throw DataError(fmt::format(
        "{}: is a file of {}, expected text: the Python package reads it (warren.data.load), and `warren data convert {} OUTPUT.svm --label COLUMN` converts it to text",
        stored.name(), format, stored.name()));
  }
  if (start == Container::kGzip && internal::IsBgzf(stored)) return Container::kBgzf;
  if (start == Container::kZstd && internal::HasSeekTable(stored)) return Container::kZstdSeekable;
  return start;
}

std::unique_ptr<File> OpenFile(const std::string& path, Container container) {
  return OpenFile(std::make_unique<PlainFile>(path), container);
}

std::unique_ptr<File> OpenFile(std::unique_ptr<File> stored, Container container) {
  switch (container) {
    case Container::kPlain:
      return stored;
    case Container::kBgzf:
      return internal::OpenBgzf(std::move(stored));
    case Container::kZstdSeekable:
      return internal::OpenZstdSeekable(std::move(stored));
    default:
      throw DataError(fmt::format(
          "{}: is {}, which can only be read from the beginning; expected plain, BGZF or zstd seekable",
          stored->name(), NameOf(container)));
  }
}

}  // namespace warren::data
