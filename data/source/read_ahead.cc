#include "data/source/read_ahead.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <list>
#include <mutex>
#include <utility>

#include "data/array.h"

namespace warren::data {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;

constexpr std::uint64_t kLeastDirect = kMiB;
constexpr std::uint64_t kLeastWindow = 4 * kKiB;
constexpr std::uint64_t kMostWindow = 4 * kMiB;
constexpr std::uint64_t kBefore = 8 * kKiB;
constexpr std::uint64_t kGrowth = 4;
/// A read that begins at most this many bytes after a window counts as its continuation: the headers of BGZF
/// blocks are up to 64 KiB apart.
constexpr std::uint64_t kMostSkipped = 64 * kKiB;
constexpr std::uint64_t kMostKept = 64 * kMiB;

struct Span {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;

  bool Has(std::uint64_t offset) const { return begin <= offset && offset < end; }
  std::uint64_t size() const { return end - begin; }
};

/// Returns the window to read for `bytes` bytes at `offset`, which is in no window. `before` is the window
/// that the new one continues, or null; `limit` is the beginning of the next window, or the end of the file.
Span NewWindow(std::uint64_t offset, std::uint64_t bytes, const Span* before, std::uint64_t limit) {
  std::uint64_t size = std::max(kLeastWindow, 2 * bytes);
  Span window{offset, 0};
  if (before != nullptr) {
    size = std::max(size, std::min(kGrowth * before->size(), kMostWindow));
  } else {
    window.begin -= std::min(offset, kBefore);
  }
  window.end = offset + std::min(size, limit - offset);
  return window;
}

class Window {
 public:
  Window(std::string file, Span span) : file_(std::move(file)), span_(span) {}

  const std::string& file() const { return file_; }
  const Span& span() const { return span_; }

  /// Copies up to `bytes` bytes at `offset`, which must be in the window, and returns the number of bytes
  /// copied. The first call reads the window from the file.
  std::size_t Read(const File& file, std::uint64_t offset, char* to, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (text_.empty()) {
      Array<char> text;
      text.resize(static_cast<std::size_t>(span_.size()));
      file.ReadAt(span_.begin, text.data(), text.size());
      text_ = std::move(text);
    }
    const auto count = static_cast<std::size_t>(std::min(bytes, span_.end - offset));
    std::memcpy(to, text_.data() + (offset - span_.begin), count);
    return count;
  }

 private:
  const std::string file_;
  const Span span_;
  std::mutex mutex_;
  Array<char> text_;
};

/// The windows of all files, most recently used first. Thread-safe.
class Windows {
 public:
  std::shared_ptr<Window> FindOrMake(const std::string& file, std::uint64_t file_size, std::uint64_t offset,
                                     std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (auto window = Find(file, offset)) return window;
    const Span* before = nullptr;
    std::uint64_t limit = file_size;
    for (const auto& window : windows_) {
      if (window->file() != file) continue;
      const Span& span = window->span();
      if (span.begin > offset) {
        limit = std::min(limit, span.begin);
      } else if (offset - span.end <= kMostSkipped && (before == nullptr || span.end > before->end)) {
        before = &span;
      }
    }
    windows_.push_front(std::make_shared<Window>(file, NewWindow(offset, bytes, before, limit)));
    kept_ += windows_.front()->span().size();
    while (kept_ > kMostKept && windows_.size() > 1) {
      kept_ -= windows_.back()->span().size();
      windows_.pop_back();
    }
    return windows_.front();
  }

 private:
  std::shared_ptr<Window> Find(const std::string& file, std::uint64_t offset) {
    const auto found = std::find_if(windows_.begin(), windows_.end(), [&](const auto& window) {
      return window->span().Has(offset) && window->file() == file;
    });
    if (found == windows_.end()) return nullptr;
    windows_.splice(windows_.begin(), windows_, found);
    return windows_.front();
  }

  std::mutex mutex_;
  std::list<std::shared_ptr<Window>> windows_;
  std::uint64_t kept_ = 0;  ///< bytes in all windows
};

class ReadAheadFile final : public File {
 public:
  ReadAheadFile(std::unique_ptr<File> file, std::shared_ptr<Windows> windows)
      : File(file->name(), file->size()), file_(std::move(file)), windows_(std::move(windows)) {}

  void ReadAt(std::uint64_t offset, char* to, std::size_t bytes) const override {
    RequireWithin(offset, bytes);
    if (bytes >= kLeastDirect) return file_->ReadAt(offset, to, bytes);
    while (bytes > 0) {
      const auto window = windows_->FindOrMake(name(), size(), offset, bytes);
      const std::size_t got = window->Read(*file_, offset, to, bytes);
      offset += got;
      to += got;
      bytes -= got;
    }
  }

 private:
  std::unique_ptr<File> file_;
  std::shared_ptr<Windows> windows_;
};

class ReadAheadFiles final : public RemoteFiles {
 public:
  explicit ReadAheadFiles(std::shared_ptr<const RemoteFiles> files) : files_(std::move(files)) {}

  std::vector<RemoteFile> List(const std::string& uri) const override { return files_->List(uri); }
  std::unique_ptr<File> Open(const std::string& uri, std::uint64_t size) const override {
    return std::make_unique<ReadAheadFile>(files_->Open(uri, size), windows_);
  }

 private:
  std::shared_ptr<const RemoteFiles> files_;
  std::shared_ptr<Windows> windows_ = std::make_shared<Windows>();
};

}  // namespace

std::shared_ptr<const RemoteFiles> WithReadAhead(std::shared_ptr<const RemoteFiles> files) {
  return std::make_shared<ReadAheadFiles>(std::move(files));
}

}  // namespace warren::data
