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
  /// Approximate limit for the total size of pages, text and blocks in memory. A single row or query that is
  /// larger exceeds it.
  std::size_t memory_bytes = std::size_t{256} << 20;
  /// Its chunk_bytes is reduced if memory_bytes requires it. `threads` = 0 means 2; a shuffled data set is
  /// read with at most 8 threads.
  ReaderOptions reader;
  /// Called with the reason if there is a file at the cache's path that cannot be used.
  std::function<void(const std::string&)> on_stale_cache;
};

/// Returns the path of a part's cache, or of another file with the rows of a part: `cache` itself if there is
/// one part, otherwise `<cache>.part<k>-of-<n>`.
std::string CachePath(const std::string& cache, Share share);

/// The pages of one part. If `uri.cache` is set, they are read from the file CachePath(). It is made from the
/// text if it is missing, is truncated or damaged outside its pages, or was made from other files (names,
/// sizes, times of modification and status change), options or parts. A damaged page causes a DataError, and
/// so does a non-empty file that is not a cache, which is kept. Several processes may make the cache of one
/// part concurrently, from the same files and options.
///
/// Not thread-safe.
template <typename Index>
class Pages {
 public:
  /// Reads the data once if there is no usable cache. A collective call if `allreduce_max` connects workers,
  /// which then agree on the shape of the data set. Throws DataError, also for Indexing::kDetect, which pages
  /// do not support, and for standard input, pipes and devices, which can be read only once.
  Pages(const DataUri& uri, Share share, const PageOptions& options = {},
        const AllreduceMax& allreduce_max = NobodyElse);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  /// Sets `page` to the next page, which has at least one row and is valid until the next call of Next.
  /// Returns false at the end. Pages are in text order unless shuffled. Consecutive rows of a query are on
  /// one page. Either all pages of all workers have weights, or none has.
  bool Next(RowView<Index>& page);
  /// Returns to the first page.
  void Rewind();

  std::uint64_t rows() const;       ///< in this part
  std::uint64_t entries() const;    ///< in this part
  std::uint64_t columns() const;    ///< in the whole data set
  const Shape& shape() const;       ///< shape of the whole data set
  const BadRows& bad_rows() const;  ///< found while reading the text; none if an existing cache is used

 private:
  class Source;
  std::unique_ptr<Source> source_;
};

extern template class Pages<std::uint32_t>;
extern template class Pages<std::uint64_t>;

}  // namespace warren::data
