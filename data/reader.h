// Reads a share of a data set as row blocks, with several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "data/row_block.h"
#include "data/uri.h"

namespace warren::data {

class RemoteFiles;

/// The progress of a reader.
struct Progress {
  std::uint64_t bytes = 0;        ///< bytes of text in the chunks delivered so far
  std::uint64_t bytes_total = 0;  ///< as far as known in advance; stored bytes for compressed streams
  std::uint64_t rows = 0;
};

struct ReaderOptions {
  /// Parser threads. 0 means one per core this process may use, at most 16, and at least 8 if there are
  /// remote files, since their threads mostly wait for the store. With 1, the caller's thread does
  /// everything.
  int threads = 0;
  /// Approximate bytes of text per block.
  std::size_t chunk_bytes = std::size_t{4} << 20;
  /// With bad_rows=skip: the maximum number of bad rows described. Finding the line of each may mean reading
  /// the file again.
  std::uint64_t most_described = 10;
  /// Opens scheme://... (source/remote.h); null uses dmlc-core.
  std::shared_ptr<const RemoteFiles> remote_files;
  /// Called after each chunk of text, even if all its rows are bad, on the thread that calls Next.
  std::function<void(const Progress&)> on_progress;
};

/// The rows skipped with bad_rows=skip.
struct BadRows {
  std::uint64_t count = 0;
  std::vector<std::string> first;  ///< descriptions of the first most_described rows (Describe in error.h)
};

/// For each file, by path, the queries of the part's rows in increasing order. Files may number their queries
/// independently.
using QueriesByFile = std::map<std::string, std::vector<std::uint64_t>>;

/// Delivers blocks in text order, or in the shuffled order, whatever the number of threads. Several threads
/// read at most 2 * threads + 2 chunks of text ahead of delivery.
///
/// With Indexing::kDetect, indices are returned as written in the text: see agreement.h.
///
/// Not thread-safe.
template <typename Index>
class Reader {
 public:
  /// Starts to read the part given in `uri`, or else `share`. Throws DataError, e.g. if a path leads to no
  /// file or the part is invalid.
  explicit Reader(const DataUri& uri, Share share = {}, const ReaderOptions& options = {});
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// Replaces the contents of `block` with the next block, which has at least one row, reusing its memory.
  /// Returns false at the end. Throws DataError for a bad row (unless bad rows are skipped), for an
  /// unreadable file, if only some rows have a qid, and at the end if the rows of a query are not contiguous
  /// in a file. Later calls throw the same error.
  bool Next(RowBlock<Index>& block);
  /// Like Next, but appends to `block`.
  bool AppendNext(RowBlock<Index>& block);

  const BadRows& bad_rows() const;
  /// Complete and sorted once Next has returned false. Queries that also occur in other parts of the data set
  /// are not detected here.
  const QueriesByFile& queries() const;
  const Progress& progress() const;
  /// For ShapeFinder::AddInputs.
  std::uint64_t inputs_digest() const;

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

extern template class Reader<std::uint32_t>;
extern template class Reader<std::uint64_t>;

/// Reads the whole part into one block. Throws like Reader.
template <typename Index>
RowBlock<Index> ReadAll(const DataUri& uri, Share share = {}, const ReaderOptions& options = {},
                        BadRows* bad_rows = nullptr, QueriesByFile* queries = nullptr,
                        std::uint64_t* inputs_digest = nullptr);

}  // namespace warren::data
