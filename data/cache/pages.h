// A part of a data set that is too large for memory, read page by page as often as needed: parsed from the
// text each time, or, with a cache, parsed once and then mapped into memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "data/agreement.h"
#include "data/reader.h"
#include "data/row_block.h"
#include "data/uri.h"

namespace warren::data {

struct PageOptions {
  /// Limit for the total size of pages, text and blocks in memory. Larger single rows or queries exceed it.
  std::size_t memory_bytes = std::size_t{256} << 20;
  ReaderOptions reader;  ///< its chunk_bytes is reduced if memory_bytes requires it
  /// Called with the reason if an existing cache is unusable and is rebuilt.
  std::function<void(const std::string&)> on_stale_cache;
};

/// Returns the path of a part's cache: `cache` itself if there is one part, otherwise
/// `<cache>.part<k>-of-<n>`.
std::string CachePath(const std::string& cache, Share share);

/// If `uri.cache` is set, the pages are read from the file CachePath(). It is made from the text if it is
/// missing or damaged, or was made from other files (names, sizes, times of the last change), options or
/// parts. A file that is not a cache causes a DataError and is kept. Several processes may make the cache of
/// one part concurrently, from the same files and options.
///
/// Not thread-safe.
template <typename Index>
class Pages {
 public:
  /// Reads the data once if there is no usable cache. A collective call if `allreduce_max` connects workers,
  /// which then agree on the shape of the data set. Throws DataError, including for Indexing::kDetect,
  /// because all rows would have to be read before the first could be returned.
  Pages(const DataUri& uri, Share share, const PageOptions& options = {},
        const AllreduceMax& allreduce_max = NobodyElse);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  /// Sets `page` to the next page, with at least one row, in text order; valid until the next call. Returns
  /// false at the end. Consecutive rows of a query are on one page. Either all pages of all workers have
  /// weights, or none has.
  bool Next(RowView<Index>& page);
  /// Returns to the first page.
  void Rewind();

  std::uint64_t rows() const;       ///< in this part
  std::uint64_t entries() const;    ///< in this part
  std::uint64_t columns() const;    ///< in the whole data set
  const Shape& shape() const;       ///< shape of the whole data set
  const BadRows& bad_rows() const;  ///< found while reading the text; empty when read from a cache

 private:
  class Source;
  std::unique_ptr<Source> source_;
};

extern template class Pages<std::uint32_t>;
extern template class Pages<std::uint64_t>;

}  // namespace warren::data
