#include "data/cache/cache.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <span>
#include <utility>

#include "data/cache/cache_format.h"
#include "posix/files.h"

namespace warren::data {
namespace {

using internal::AlignUp;
using internal::CacheFooter;
using internal::CacheHeader;
using internal::CachePageEntry;
using internal::PageCheck;
using internal::PageLayout;
using internal::PerArray;

/// The size of the pieces that are checked and written, or read and checked. A piece fits the CPU's cache.
constexpr std::size_t kPieceBytes = 256 << 10;

constexpr std::array<char, internal::kCacheAlignment> kZeros{};

template <typename Index>
PerArray<std::span<const std::byte>> ArraysOf(const RowView<Index>& page) {
  return {std::as_bytes(page.offsets), std::as_bytes(page.indices),       std::as_bytes(page.values),
          std::as_bytes(page.labels),  std::as_bytes(page.label_offsets), std::as_bytes(page.weights),
          std::as_bytes(page.qids),    std::as_bytes(page.fields)};
}

/// Returns the page's entry for the table of pages. Its offset, bytes and checksum are not set yet.
template <typename Index>
CachePageEntry EntryOf(const RowView<Index>& page) {
  CachePageEntry entry;
  entry.columns = page.columns;
  entry.least_index = page.least_index;
  entry.counts = {page.offsets.size(),       page.indices.size(), page.values.size(), page.labels.size(),
                  page.label_offsets.size(), page.weights.size(), page.qids.size(),   page.fields.size()};
  return entry;
}

/// Returns the arrays of the page whose bytes are at `page`.
template <typename Index>
RowView<Index> ViewOf(const CachePageEntry& entry, const std::byte* page) {
  const PageLayout layout = internal::LayoutOf(entry.counts, sizeof(Index));
  const auto array = [&]<typename T>(std::span<const T>& span, internal::CacheArray which) {
    span = {reinterpret_cast<const T*>(page + layout.begin[which]), entry.counts[which]};
  };
  RowView<Index> view;
  array(view.offsets, internal::kOffsets);
  array(view.indices, internal::kIndices);
  array(view.values, internal::kValues);
  array(view.labels, internal::kLabels);
  array(view.label_offsets, internal::kLabelOffsets);
  array(view.weights, internal::kWeights);
  array(view.qids, internal::kQids);
  array(view.fields, internal::kFields);
  view.columns = entry.columns;
  view.least_index = static_cast<Index>(entry.least_index);
  return view;
}

/// Reads `size` bytes at `offset` with pread, so that missing bytes cause a DataError. In a mapping, they
/// would cause a signal.
void ReadAt(int fd, const std::string& path, std::uint64_t offset, void* to, std::size_t size) {
  auto* at = static_cast<std::byte*>(to);
  for (std::size_t done = 0; done < size;) {
    const ssize_t got = pread(fd, at + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw DataError(SystemFailure(path, "reading", errno));
    if (got == 0) {
      throw DataError(fmt::format("{}: ends at byte {}, expected {} bytes at byte {}", path, offset + done,
                                  size, offset));
    }
    done += static_cast<std::size_t>(got);
  }
}

struct stat StatusOf(int fd, const std::string& path) {
  struct stat status {};
  if (fstat(fd, &status) != 0) throw DataError(SystemFailure(path, "reading its size", errno));
  return status;
}

/// Describes the first difference between two identities: the word found there and the word expected.
std::string FirstDifference(std::string_view found, std::string_view expected) {
  constexpr std::size_t kMostBefore = 20;
  const auto difference = std::mismatch(found.begin(), found.end(), expected.begin(), expected.end());
  const auto at = static_cast<std::size_t>(difference.first - found.begin());
  std::size_t begin = at;
  while (begin > 0 && at - begin < kMostBefore &&
         std::string_view(" \t\r\n").find(found[begin - 1]) == std::string::npos) {
    --begin;
  }
  const std::string found_word = Quote(found, begin);
  const std::string expected_word = Quote(expected, begin);
  if (found_word == expected_word) return fmt::format("the identities differ from byte {} on", at);
  return fmt::format("found {}, expected {}", found_word, expected_word);
}

}  // namespace

namespace internal {

void Unmap::operator()(const std::byte* mapped) const noexcept {
  munmap(const_cast<std::byte*>(mapped), bytes);
}

}  // namespace internal

template <typename Index>
CacheWriter<Index>::CacheWriter(const std::string& path, std::string_view identity) : path_(path) {
  std::string padded(identity);
  padded.resize(AlignUp(identity.size()));
  CacheHeader header;
  header.index_bytes = sizeof(Index);
  header.identity_bytes = identity.size();
  header.identity_checksum = internal::Checksum(padded.data(), padded.size());
  header.checksum = ChecksumOf(header);
  OrNothing([&] {
    RemoveLeftovers(path_);
    file_.emplace(path_);
    Write(&header, sizeof(header));
    Write(padded.data(), padded.size());
  });
}

template <typename Index>
CacheWriter<Index>::~CacheWriter() = default;

template <typename Index>
void CacheWriter<Index>::Append(const RowView<Index>& page) {
  if (page.rows() == 0) return;
  OrNothing([&] { WritePage(page); });
}

template <typename Index>
void CacheWriter<Index>::Commit() {
  OrNothing([&] {
    CacheFooter footer;
    footer.table_offset = position_;
    footer.pages = table_.size();
    footer.table_checksum = internal::Checksum(table_.data(), table_.size() * sizeof(CachePageEntry));
    footer.checksum = ChecksumOf(footer);
    Write(table_.data(), table_.size() * sizeof(CachePageEntry));
    Write(&footer, sizeof(footer));
    file_->Commit();
    file_.reset();
  });
}

template <typename Index>
void CacheWriter<Index>::Write(const void* bytes, std::size_t size) {
  if (!file_)
    throw DataError(fmt::format("{}: cannot write to a cache that is already finished or has failed", path_));
  file_->Write({static_cast<const char*>(bytes), size});
  position_ += size;
}

template <typename Index>
void CacheWriter<Index>::WritePage(const RowView<Index>& page) {
  CachePageEntry entry = EntryOf(page);
  const auto require_none = [&](const std::string& fault) {
    if (!fault.empty())
      throw DataError(fmt::format("{}: page {} cannot be written: {}", path_, table_.size(), fault));
  };
  require_none(internal::FaultOf(entry, sizeof(Index)));
  PageCheck check(entry, sizeof(Index));
  const auto put = [&](std::span<const std::byte> bytes) {
    check.Add(bytes);
    Write(bytes.data(), bytes.size());
  };
  entry.offset = position_;
  for (std::span<const std::byte> array : ArraysOf(page)) {
    const std::size_t padding = AlignUp(array.size()) - array.size();
    while (!array.empty()) {
      const std::size_t piece = std::min(array.size(), kPieceBytes);
      put(array.first(piece));
      array = array.subspan(piece);
    }
    put(std::as_bytes(std::span(kZeros)).first(padding));
  }
  require_none(check.fault());
  entry.bytes = position_ - entry.offset;
  entry.checksum = check.checksum();
  table_.push_back(entry);
}

/// Runs `action`. If it throws, removes the unfinished file and rethrows; a std::runtime_error becomes a
/// DataError.
template <typename Index>
template <typename Action>
void CacheWriter<Index>::OrNothing(const Action& action) {
  try {
    action();
  } catch (const std::runtime_error& error) {
    file_.reset();
    throw DataError(error.what());
  } catch (...) {
    file_.reset();
    throw;
  }
}

template <typename Index>
std::unique_ptr<Cache<Index>> Cache<Index>::Open(const std::string& path, std::string_view identity,
                                                 std::string& why) {
  why.clear();
  // With O_NONBLOCK, opening a pipe does not wait for its writer.
  posix::Descriptor fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) {
    if (errno != ENOENT) why = SystemFailure(path, "opening", errno);
    return nullptr;
  }
  try {
    std::unique_ptr<Cache> cache(new Cache(path, std::move(fd)));
    cache->ReadHeader(identity);
    cache->ReadTable();
    cache->AddTotals();
    return cache;
  } catch (const DataError& error) {
    why = error.what();
    return nullptr;
  }
}

template <typename Index>
Cache<Index>::Cache(std::string path, posix::Descriptor fd) : path_(std::move(path)), fd_(std::move(fd)) {
  const struct stat status = StatusOf(fd_.get(), path_);
  if (!S_ISREG(status.st_mode))
    throw DataError(fmt::format("{}: is not a regular file, expected a cache", path_));
  file_bytes_ = static_cast<std::uint64_t>(status.st_size);
  modified_ = posix::ModifiedAt(status);
}

template <typename Index>
Cache<Index>::~Cache() = default;

template <typename Index>
std::size_t Cache<Index>::pages() const {
  return table_.size();
}

template <typename Index>
void Cache<Index>::ReadHeader(std::string_view identity) {
  constexpr std::size_t kLeastBytes = sizeof(CacheHeader) + sizeof(CacheFooter);
  if (file_bytes_ < kLeastBytes) {
    throw DataError(
        fmt::format("{}: has {} bytes, expected at least {} of a cache", path_, file_bytes_, kLeastBytes));
  }
  CacheHeader header;
  ReadAt(fd_.get(), path_, 0, &header, sizeof(header));
  if (header.magic != internal::kCacheMagic)
    throw DataError(fmt::format("{}: does not begin like a cache", path_));
  if (header.byte_order != internal::kByteOrderMark) {
    throw DataError(fmt::format("{}: has the byte order mark {:#010x}, expected {:#010x}, this machine's",
                                path_, header.byte_order, internal::kByteOrderMark));
  }
  if (header.version != internal::kCacheVersion) {
    throw DataError(fmt::format("{}: is a cache of version {}, expected {}", path_, header.version,
                                internal::kCacheVersion));
  }
  if (header.checksum != ChecksumOf(header)) {
    throw DataError(fmt::format("{}: the header has the checksum {:016x}, expected {:016x}: it is damaged",
                                path_, ChecksumOf(header), header.checksum));
  }
  if (header.index_bytes != sizeof(Index)) {
    throw DataError(
        fmt::format("{}: has indices of {} bytes, expected {}", path_, header.index_bytes, sizeof(Index)));
  }
  ReadIdentity(header, identity);
}

template <typename Index>
void Cache<Index>::ReadIdentity(const CacheHeader& header, std::string_view identity) {
  // The identity must end before the footer, whatever size a damaged header gives.
  const std::uint64_t most = file_bytes_ - sizeof(CacheHeader) - sizeof(CacheFooter);
  if (header.identity_bytes > most || AlignUp(header.identity_bytes) > most) {
    throw DataError(fmt::format("{}: has {} bytes after the header, expected an identity of {}", path_, most,
                                header.identity_bytes));
  }
  std::string found(AlignUp(header.identity_bytes), '\0');
  ReadAt(fd_.get(), path_, sizeof(CacheHeader), found.data(), found.size());
  if (internal::Checksum(found.data(), found.size()) != header.identity_checksum) {
    throw DataError(fmt::format("{}: the identity has the checksum {:016x}, expected {:016x}: it is damaged",
                                path_, internal::Checksum(found.data(), found.size()),
                                header.identity_checksum));
  }
  pages_begin_ = sizeof(CacheHeader) + found.size();
  found.resize(header.identity_bytes);
  if (found != identity) {
    throw DataError(
        fmt::format("{}: was made from other data or options: {}", path_, FirstDifference(found, identity)));
  }
}

template <typename Index>
void Cache<Index>::ReadTable() {
  CacheFooter footer;
  const std::uint64_t footer_offset = file_bytes_ - sizeof(footer);
  ReadAt(fd_.get(), path_, footer_offset, &footer, sizeof(footer));
  if (footer.magic != internal::kCacheEndMagic || footer.checksum != ChecksumOf(footer)) {
    throw DataError(fmt::format("{}: does not end like a cache: it is truncated or damaged", path_));
  }
  // The number of pages is compared with a quotient, because a product of numbers from the file could
  // overflow.
  if (footer.table_offset < pages_begin_ || footer.table_offset > footer_offset ||
      (footer_offset - footer.table_offset) % sizeof(CachePageEntry) != 0 ||
      (footer_offset - footer.table_offset) / sizeof(CachePageEntry) != footer.pages) {
    throw DataError(fmt::format("{}: has a table of {} pages at byte {}, expected it between bytes {} and {}",
                                path_, footer.pages, footer.table_offset, pages_begin_, footer_offset));
  }
  table_.resize(footer.pages);
  checked_ = std::make_unique<std::atomic<bool>[]>(footer.pages);
  ReadAt(fd_.get(), path_, footer.table_offset, table_.data(), table_.size() * sizeof(CachePageEntry));
  const std::uint64_t checksum = internal::Checksum(table_.data(), table_.size() * sizeof(CachePageEntry));
  if (checksum != footer.table_checksum) {
    throw DataError(
        fmt::format("{}: the table of pages has the checksum {:016x}, expected {:016x}: it is damaged", path_,
                    checksum, footer.table_checksum));
  }
  CheckTable(footer.table_offset);
}

template <typename Index>
void Cache<Index>::CheckTable(std::uint64_t pages_end) const {
  std::uint64_t at = pages_begin_;
  for (std::size_t i = 0; i < table_.size(); ++i) {
    const CachePageEntry& page = table_[i];
    const std::string fault = internal::FaultOf(page, sizeof(Index));
    if (!fault.empty()) throw DataError(fmt::format("{}: page {} has {}", path_, i, fault));
    const std::uint64_t bytes = internal::LayoutOf(page.counts, sizeof(Index)).page_bytes;
    if (page.offset != at || page.bytes != bytes || bytes > pages_end - at) {
      throw DataError(
          fmt::format("{}: page {} has {} bytes at byte {}, expected {} at byte {}, all before byte {}",
                      path_, i, page.bytes, page.offset, bytes, at, pages_end));
    }
    at += bytes;
  }
  if (at != pages_end)
    throw DataError(fmt::format("{}: the pages end at byte {}, expected {}", path_, at, pages_end));
}

template <typename Index>
void Cache<Index>::AddTotals() {
  for (const CachePageEntry& page : table_) {
    rows_ += page.rows();
    entries_ += page.entries();
    columns_ = std::max(columns_, page.columns);
    least_index_ = std::min(least_index_, static_cast<Index>(page.least_index));
    has_weights_ = has_weights_ || page.counts[internal::kWeights] > 0;
    has_label_offsets_ = has_label_offsets_ || page.counts[internal::kLabelOffsets] > 0;
  }
}

template <typename Index>
CachePage<Index> Cache<Index>::Page(std::size_t i) {
  const struct stat status = StatusOf(fd_.get(), path_);
  if (static_cast<std::uint64_t>(status.st_size) != file_bytes_) {
    throw DataError(fmt::format("{}: has {} bytes, but had {} when it was opened: something else changed it",
                                path_, status.st_size, file_bytes_));
  }
  const timespec now = posix::ModifiedAt(status);
  const bool touched = now.tv_sec != modified_.tv_sec || now.tv_nsec != modified_.tv_nsec;
  if (touched || !checked_[i].load(std::memory_order_relaxed)) {
    Check(i);
    checked_[i].store(true, std::memory_order_relaxed);
  }
  return Map(i);
}

template <typename Index>
void Cache<Index>::Check(std::size_t i) const {
  const CachePageEntry& page = table_[i];
  PageCheck check(page, sizeof(Index));
  const auto buffer = std::make_unique_for_overwrite<std::byte[]>(kPieceBytes);
  for (std::uint64_t done = 0; done < page.bytes;) {
    const std::size_t piece = std::min<std::uint64_t>(page.bytes - done, kPieceBytes);
    ReadAt(fd_.get(), path_, page.offset + done, buffer.get(), piece);
    check.Add({buffer.get(), piece});
    done += piece;
  }
  if (check.checksum() != page.checksum) {
    throw DataError(fmt::format("{}: has the checksum {:016x}, expected {:016x}: it is damaged", Describe(i),
                                check.checksum(), page.checksum));
  }
  if (!check.fault().empty()) throw DataError(fmt::format("{}: {}", Describe(i), check.fault()));
}

template <typename Index>
CachePage<Index> Cache<Index>::Map(std::size_t i) const {
  const CachePageEntry& page = table_[i];
  const std::uint64_t skipped = page.offset % static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::size_t bytes = page.bytes + skipped;
  void* const at =
      mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd_.get(), static_cast<off_t>(page.offset - skipped));
  if (at == MAP_FAILED) throw DataError(SystemFailure(Describe(i), "mapping", errno));
  std::unique_ptr<const std::byte, internal::Unmap> mapping(static_cast<const std::byte*>(at), {bytes});
  // Reading all memory pages in one call is faster than taking a fault for each, and a read error is reported
  // here instead of by a signal later. Linux before 5.14 and other systems cannot do this; there, each memory
  // page is read on first use.
  if (!posix::ReadNow(at, bytes)) {
    throw DataError(SystemFailure(Describe(i), "reading", errno));
  }
  const RowView<Index> view = ViewOf<Index>(page, mapping.get() + skipped);
  return {std::move(mapping), view};
}

template <typename Index>
std::string Cache<Index>::Describe(std::size_t i) const {
  return fmt::format("{}: page {} of {}, {} bytes at byte {}", path_, i, table_.size(), table_[i].bytes,
                     table_[i].offset);
}

template class CacheWriter<std::uint32_t>;
template class CacheWriter<std::uint64_t>;
template class Cache<std::uint32_t>;
template class Cache<std::uint64_t>;

}  // namespace warren::data
