// A part of a data set that is too large for memory, page by page and as often as wanted: parsed from the
// text each time, or, with a cache, parsed once and mapped into memory from then on.
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
  /// For all pages, texts and blocks that are under way. A row or a query that is larger takes what it needs.
  std::size_t memory_bytes = std::size_t{256} << 20;
  ReaderOptions reader;  ///< its chunk_bytes is made smaller where memory_bytes wants it
  /// Told why a cache that is there cannot be used and is made anew.
  std::function<void(const std::string&)> on_stale_cache;
};

/// The file of a part's cache: `cache` itself when there is one part, `<cache>.part<k>-of-<n>` else.
std::string CachePath(const std::string& cache, Share share);

/// With a cache (`uri.cache`), the file is CachePath. It is made from the text when there is
/// none or when it is not of these files (names, sizes, times of the last change), options and part; a torn
/// or damaged one is made anew, too; a file that is no cache is a DataError, and stays. Only the process
/// whose part it is may have it open while it is made.
///
/// Not thread safe.
template <typename Index>
class Pages {
 public:
  /// Reads the data once if there is no cache that can be used, or no cache. A collective call when
  /// `allreduce_max` is one: all workers agree on the columns. Throws DataError; so does Indexing::kDetect,
  /// which would have to know all rows before it could hand out the first.
  Pages(const DataUri& uri, Share share, const PageOptions& options = {},
        const AllreduceMax& allreduce_max = NobodyElse);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  /// The next page, at least one row, in the order of the text; valid until the next call. False at the end.
  /// Rows of a query that follow each other are on one page. Either all pages of all workers
  /// have weights or none has.
  bool Next(RowView<Index>& page);
  /// To the first page again.
  void Rewind();

  std::uint64_t rows() const;       ///< in this part
  std::uint64_t entries() const;    ///< in this part
  std::uint64_t columns() const;    ///< as in the whole data set
  const Shape& shape() const;       ///< as in the whole data set
  const BadRows& bad_rows() const;  ///< found when the text was read; none from a cache

 private:
  class Source;
  std::unique_ptr<Source> source_;
};

extern template class Pages<std::uint32_t>;
extern template class Pages<std::uint64_t>;

}  // namespace warren::data
