// Row blocks in one binary file, made by one writer in one pass and then read again and again, page by page,
// without parsing: a page is mapped into memory and is there. What is handed out was checked before: a cache
// that was cut, damaged, or made from something else is noticed. The bytes: docs/reference/data-cache.md.
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

/// Unmaps that many bytes.
struct Unmap {
  std::size_t bytes = 0;
  void operator()(const std::byte* mapped) const noexcept;
};
}  // namespace internal

/// Writes a cache. Its name stands for the old contents, or for none, until Commit() has flushed the new ones
/// to disk: whatever kills a writer, nobody sees half of a cache. Readers of the old one keep it.
///
/// All functions throw DataError that names the file and the reason, such as a disk without space; nothing
/// stays of the file then, and the writer is of no more use. `Index` is std::uint32_t or std::uint64_t. For
/// one thread, and there is one writer of a path at a time, of all processes: a second one takes away what
/// the first has written so far.
template <typename Index>
class CacheWriter {
 public:
  /// `identity`: what the cache is made from, in any bytes: names, sizes and times of files,
  /// options, the share. Removes what killed writers of the same path have left.
  CacheWriter(const std::string& path, std::string_view identity);
  ~CacheWriter();
  CacheWriter(const CacheWriter&) = delete;
  CacheWriter& operator=(const CacheWriter&) = delete;

  /// Adds a page; one without rows is left out. Refuses arrays that do not fit each other.
  void Append(const RowView<Index>& page);
  /// Once, at the end.
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

/// A page of a cache, in memory as long as this lives, whatever becomes of the Cache. Moves, and is not
/// copied.
template <typename Index>
class CachePage {
 public:
  CachePage(std::unique_ptr<const std::byte, internal::Unmap> mapping, const RowView<Index>& view)
      : mapping_(std::move(mapping)), view_(view) {}

  const RowView<Index>& View() const& { return view_; }
  const RowView<Index>& View() const&& = delete;  // the page would be gone

 private:
  std::unique_ptr<const std::byte, internal::Unmap> mapping_;
  RowView<Index> view_;
};

/// Reads a cache. Takes 112 bytes of memory for each page of the file, plus the pages that are held at the
/// time.
///
/// A cache is not to be changed in place, and CacheWriter never does: making it anew leaves the old one to
/// those who read it. If something else cuts the file, Page() says so. But cutting it, or a disk that fails,
/// in the time between Page() and the last look at the page is beyond help: the system ends the process with
/// SIGBUS there.
///
/// Thread safe: many threads may call Page() of one Cache.
template <typename Index>
class Cache {
 public:
  /// Null when there is none that can be used. `why` says what was found and what was expected; it is empty
  /// when there simply is no such file. Reads no pages, and so knows all but damage inside of them.
  static std::unique_ptr<Cache> Open(const std::string& path, std::string_view identity, std::string& why);
  ~Cache();
  Cache(const Cache&) = delete;
  Cache& operator=(const Cache&) = delete;

  std::size_t pages() const;
  /// Of all pages together.
  std::uint64_t rows() const { return rows_; }
  std::uint64_t entries() const { return entries_; }
  std::uint64_t columns() const { return columns_; }
  Index least_index() const { return least_index_; }
  /// Some page has them; others may lack them, whose rows weigh 1.
  bool has_weights() const { return has_weights_; }

  /// Page `i`, less than pages(). The first time, and always once the file's modification time is another
  /// than at Open(), all of the page is checked. Throws DataError when it is damaged, cannot be read, or the
  /// file has another length than before; no SIGBUS comes of this function itself.
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
};

extern template class CacheWriter<std::uint32_t>;
extern template class CacheWriter<std::uint64_t>;
extern template class Cache<std::uint32_t>;
extern template class Cache<std::uint64_t>;

}  // namespace warren::data
