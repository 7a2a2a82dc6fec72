#include "data/source/remote.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <mutex>

#include "data/error.h"

#if defined(WARREN_HAVE_DMLC)
#include <dmlc/io.h>
#include <dmlc/logging.h>
#endif

namespace warren::data {

bool IsRemote(std::string_view path) {
  const std::size_t scheme = path.find("://");
  const auto may_be_in_scheme = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '.' || c == '-';
  };
  return scheme != std::string_view::npos &&
         std::all_of(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(scheme), may_be_in_scheme);
}

#if defined(WARREN_HAVE_DMLC)
namespace {

/// Runs `action`. An error of dmlc-core, whose message ends with a stack trace, becomes a DataError without
/// the trace.
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

class DmlcFile final : public File {
 public:
  DmlcFile(const std::string& uri, std::uint64_t size, std::unique_ptr<dmlc::SeekStream> stream)
      : File(uri, size), stream_(std::move(stream)) {}

  void ReadAt(std::uint64_t offset, char* to, std::size_t bytes) const override {
    RequireWithin(offset, bytes);
    const std::lock_guard lock(mutex_);
    Translated(name(), [&] {
      if (stream_->Tell() != offset) stream_->Seek(offset);
      for (std::size_t done = 0; done < bytes;) {
        const std::size_t got = stream_->Read(to + done, bytes - done);
        if (got == 0) {
          throw DataError(fmt::format("{}: ended at byte {}, but had {} bytes when it was opened", name(),
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

class DmlcFileSystems final : public RemoteFiles {
 public:
  std::vector<RemoteFile> List(const std::string& uri) const override {
    const std::lock_guard lock(mutex_);
    return Translated(uri, [&] {
      const dmlc::io::FileInfo info = InfoOf(uri);
      if (info.type == dmlc::io::kFile) return std::vector<RemoteFile>{{uri, info.size}};
      std::vector<dmlc::io::FileInfo> entries;
      dmlc::io::FileSystem::GetInstance(info.path)->ListDirectory(info.path, &entries);
      std::vector<RemoteFile> files;
      for (const dmlc::io::FileInfo& entry : entries) {
        if (entry.type == dmlc::io::kFile) files.push_back({entry.path.str(), entry.size});
      }
      std::sort(files.begin(), files.end(),
                [](const RemoteFile& a, const RemoteFile& b) { return a.uri < b.uri; });
      return files;
    });
  }

  std::unique_ptr<File> Open(const std::string& uri, std::uint64_t size) const override {
    const std::lock_guard lock(mutex_);
    return Translated(uri, [&]() -> std::unique_ptr<File> {
      std::unique_ptr<dmlc::SeekStream> stream(dmlc::SeekStream::CreateForRead(uri.c_str()));
      return std::make_unique<DmlcFile>(uri, size, std::move(stream));
    });
  }

 private:
  mutable std::mutex mutex_;  ///< dmlc-core's file systems are singletons without documented thread safety
};

}  // namespace

std::shared_ptr<const RemoteFiles> DmlcFiles() {
  return std::make_shared<DmlcFileSystems>();
}
#else
namespace {

class NoFiles final : public RemoteFiles {
 public:
  std::vector<RemoteFile> List(const std::string& uri) const override { Fail(uri); }
  std::unique_ptr<File> Open(const std::string& uri, std::uint64_t) const override { Fail(uri); }

 private:
  [[noreturn]] static void Fail(const std::string& uri) {
    throw DataError(fmt::format("{}: cannot be opened: this was built without dmlc-core (libdmlc-dev)", uri));
  }
};

}  // namespace

std::shared_ptr<const RemoteFiles> DmlcFiles() {
  return std::make_shared<NoFiles>();
}
#endif

}  // namespace warren::data
