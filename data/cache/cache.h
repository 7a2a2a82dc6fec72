// Row blocks in one binary file, written once in one pass and then read repeatedly, page by page, without
// parsing: a page is mapped into memory. The file is checked when it is opened, and each page before it is
// returned, so a cache that was truncated, damaged, or made from other data is detected. The format:
// docs/reference/data-cache.md.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/cache/atomic_file.h"
#include "data/error.h"
#include "data/row_block.h"
#include "posix/descriptor.h"

namespace warren::data {

namespace internal {
struct CacheHeader;
struct CachePageEntry;

/// A deleter that unmaps `bytes` bytes.
struct Unmap {
  std::size_t bytes = 0;
  void operator()(const std::byte* mapped) const noexcept;
};
}  // namespace internal

/// Writes a cache. Until Commit() has flushed the new contents to disk, the path refers to the old file, or
/// to no file: even if the writer is killed, no reader sees a partial cache. Whoever has opened the old cache
/// can read it even after Commit().
///
/// All functions throw DataError naming the file and the reason, such as a full disk; the unfinished file is
/// then removed and the writer can no longer be used. `Index` is std::uint32_t or std::uint64_t. Not
/// thread-safe. If several writers write the same path concurrently, even in different processes, the last
/// one to commit wins.
template <typename Index>
class CacheWriter {
 public:
  /// `identity` is any byte string that describes the source of the cache: names, sizes and times of files,
  /// options, the share. Removes temporary files left by killed writers of the same path.
  CacheWriter(const std::string& path, std::string_view identity);
  ~CacheWriter();
  CacheWriter(const CacheWriter&) = delete;
  CacheWriter& operator=(const CacheWriter&) = delete;

  /// Adds a page; a page without rows is ignored. Throws DataError if the arrays of the page are
  /// inconsistent.
  void Append(const RowView<Index>& page);
  /// Completes the cache; call once, at the end.
  void Commit();

 private:
  void Write(const void* bytes, std::size_t size);
  void WritePage(const RowView<Index>& page);
  template <typename Action>
  void OrNothing(const Action& action);

  std::string path_;
  std::optional<AtomicFile> file_;
  std::uint64_t position_ = 0;
  std::vector<internal::CachePageEntry> table_;
};

/// A page of a cache. It stays mapped while this object lives, even after the Cache is destroyed. Movable,
/// not copyable.
template <typename Index>
class CachePage {
 public:
  CachePage(std::unique_ptr<const std::byte, internal::Unmap> mapping, const RowView<Index>& view)
      : mapping_(std::move(mapping)), view_(view) {}

  const RowView<Index>& View() const& { return view_; }
  const RowView<Index>& View() const&& = delete;  // the page would be unmapped before the view is used

 private:
  std::unique_ptr<const std::byte, internal::Unmap> mapping_;
  RowView<Index> view_;
};

/// Reads a cache. Takes 105 bytes of memory per page of the file, plus the pages currently held.
///
/// A cache must not be changed in place. CacheWriter never does that: replacing a cache leaves the old file
/// to its readers. If something else has truncated the file, Page() throws. But if the file is truncated, or
/// the disk fails, between Page() and the last access to the page, the system kills the process with SIGBUS.
///
/// Thread-safe: many threads may call Page() of one Cache.
template <typename Index>
class Cache {
 public:
  /// Returns null if there is no usable cache. `why` then describes what was found and what was expected; it
  /// is empty if the file does not exist. Pages are not read, so this detects everything except damage inside
  /// them.
  static std::unique_ptr<Cache> Open(const std::string& path, std::string_view identity, std::string& why);
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  std::size_t pages() const;
  // Over all pages: the number of rows and of entries, the greatest number of columns, and the least index.
  std::uint64_t rows() const { return rows_; }
  std::uint64_t entries() const { return entries_; }
  std::uint64_t columns() const { return columns_; }
  Index least_index() const { return least_index_; }
  /// Whether any page has weights; in pages without weights, rows weigh 1.
  bool has_weights() const { return has_weights_; }
  /// Whether any page has label offsets. If none has, every row has exactly one label.
  bool has_label_offsets() const { return has_label_offsets_; }

  /// Returns page `i`, which must be less than pages(). The whole page is checked the first time, and every
  /// time after the file's modification time has changed since Open(). Throws DataError if the page is
  /// damaged or unreadable, or if the file's length has changed; this function itself does not cause SIGBUS.
  CachePage<Index> Page(std::size_t i);

 private:
  Cache(std::string path, posix::Descriptor fd);
  void ReadHeader(std::string_view identity);
  void ReadIdentity(const internal::CacheHeader& header, std::string_view identity);
  void ReadTable();
  void CheckTable(std::uint64_t pages_end) const;
  void AddTotals();
  void Check(std::size_t i) const;
  CachePage<Index> Map(std::size_t i) const;
  std::string Describe(std::size_t i) const;

  const std::string path_;
  const posix::Descriptor fd_;
  std::uint64_t file_bytes_ = 0;
  std::timespec modified_{};
  std::uint64_t pages_begin_ = 0;
  std::vector<internal::CachePageEntry> table_;
  std::unique_ptr<std::atomic<bool>[]> checked_;
  std::uint64_t rows_ = 0;
  std::uint64_t entries_ = 0;
  std::uint64_t columns_ = 0;
  Index least_index_ = Index(-1);
  bool has_weights_ = false;
  bool has_label_offsets_ = false;
};

extern template class CacheWriter<std::uint32_t>;
extern template class CacheWriter<std::uint64_t>;
extern template class Cache<std::uint32_t>;
extern template class Cache<std::uint64_t>;

}  // namespace warren::data
