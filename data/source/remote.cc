#include "data/source/remote.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>

#include "data/error.h"

#if defined(WARREN_HAVE_DMLC)
#include <dmlc/io.h>
#include <dmlc/logging.h>
#endif

namespace warren::data {

bool IsRemote(std::string_view path) {
  return path.find("://") != std::string_view::npos;
}

#if defined(WARREN_HAVE_DMLC)
namespace {

/// dmlc-core's complaints are dmlc::Error, with a stack trace.
template <typename Action>
auto Translated(const std::string& uri, const Action& action) {
  try {
    return action();
  } catch (const dmlc::Error& error) {
    std::string message = error.what();
    message.resize(std::min(message.find("Stack trace"), message.size()));
    while (!message.empty() && message.back() == '\n') message.pop_back();
    throw DataError(fmt::format("{}: dmlc-core: {}", uri, message));
  }
}

dmlc::io::FileInfo InfoOf(const std::string& uri) {
  const dmlc::io::URI parsed(uri.c_str());
  return dmlc::io::FileSystem::GetInstance(parsed)->GetPathInfo(parsed);
}

class RemoteFile final : public File {
 public:
  RemoteFile(const std::string& uri, std::uint64_t size, std::unique_ptr<dmlc::SeekStream> stream)
      : File(uri, size), stream_(std::move(stream)) {}

  void ReadAt(std::uint64_t offset, char* to, std::size_t bytes) const override {
    RequireWithin(offset, bytes);
    const std::lock_guard lock(mutex_);
    Translated(name(), [&] {
      if (stream_->Tell() != offset) stream_->Seek(offset);
      for (std::size_t done = 0; done < bytes;) {
        const std::size_t got = stream_->Read(to + done, bytes - done);
        if (got == 0) {
          throw DataError(fmt::format("{}: ended at byte {}, expected {} bytes as at opening", name(),
                                      offset + done, size()));
        }
        done += got;
      }
    });
  }

 private:
  mutable std::mutex mutex_;
  std::unique_ptr<dmlc::SeekStream> stream_;
};

}  // namespace

std::vector<std::string> ListRemote(const std::string& uri) {
  return Translated(uri, [&] {
    const dmlc::io::FileInfo info = InfoOf(uri);
    if (info.type == dmlc::io::kFile) return std::vector<std::string>{uri};
    std::vector<dmlc::io::FileInfo> entries;
    dmlc::io::FileSystem::GetInstance(info.path)->ListDirectory(info.path, &entries);
    std::vector<std::string> files;
    for (const dmlc::io::FileInfo& entry : entries) {
      if (entry.type == dmlc::io::kFile) files.push_back(entry.path.str());
    }
    std::sort(files.begin(), files.end());
    return files;
  });
}

std::unique_ptr<File> OpenRemote(const std::string& uri) {
  return Translated(uri, [&]() -> std::unique_ptr<File> {
    const std::uint64_t size = InfoOf(uri).size;
    std::unique_ptr<dmlc::SeekStream> stream(dmlc::SeekStream::CreateForRead(uri.c_str()));
    return std::make_unique<RemoteFile>(uri, size, std::move(stream));
  });
}
#else
namespace {

[[noreturn]] void Fail(const std::string& uri) {
  throw DataError(fmt::format("{}: cannot be opened: this was built without dmlc-core (libdmlc-dev)", uri));
}

}  // namespace

std::vector<std::string> ListRemote(const std::string& uri) {
  Fail(uri);
}
std::unique_ptr<File> OpenRemote(const std::string& uri) {
  Fail(uri);
}
#endif

}  // namespace warren::data
