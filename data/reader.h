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

/// How far a reader is.
struct Progress {
  std::uint64_t bytes = 0;        ///< bytes of text so far
  std::uint64_t bytes_total = 0;  ///< as far as known before; compressed streams have more text than that
  std::uint64_t rows = 0;
};

struct ReaderOptions {
  /// That parse. 0: one for each core this process may use, 16 at most, and 8 at least where there are remote
  /// files, whose stores they wait for. With 1 the caller's own does all.
  int threads = 0;
  /// About how much text becomes one block.
  std::size_t chunk_bytes = std::size_t{4} << 20;
  /// With bad_rows=skip: how many of them are described. Finding out the line of each may mean reading the
  /// file again.
  std::uint64_t most_described = 10;
  /// Opens scheme://... (source/remote.h); null: dmlc-core.
  std::shared_ptr<const RemoteFiles> remote_files;
  /// Told after each block, in the thread that calls Next.
  std::function<void(const Progress&)> on_progress;
};

/// What was left out with bad_rows=skip.
struct BadRows {
  std::uint64_t count = 0;
  std::vector<std::string> first;  ///< a few of them: file, line, column, what was found, what was expected
};

/// The queries that rows of a part belong to, in increasing order, by the paths of their files: files may
/// number their queries independently.
using QueriesByFile = std::map<std::string, std::vector<std::uint64_t>>;

/// Blocks come in the order of the text, however many threads there are. Memory: at most 2 * threads + 2
/// blocks and texts are under way.
///
/// With Indexing::kDetect the indices are those of the text: see agreement.h.
///
/// Not thread safe: one thread calls.
template <typename Index>
class Reader {
 public:
  /// Reads the part that `uri` names, or else `share`. Throws DataError when there is nothing to read, or a
  /// path leads nowhere.
  explicit Reader(const DataUri& uri, Share share = {}, const ReaderOptions& options = {});
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  /// The next block, at least one row; what `block` held is gone, its memory is used again. False at the end.
  /// Throws DataError for a bad row, unless those are skipped, for a file that cannot be read, and at the end
  /// for a query that had ended and came again in its file; there is no going on then.
  bool Next(RowBlock<Index>& block);
  /// The same, added to what `block` holds.
  bool AppendNext(RowBlock<Index>& block);

  const BadRows& bad_rows() const;
  /// After the last row. A query that other parts of the data set have, too, is not noticed here.
  const QueriesByFile& queries() const;
  const Progress& progress() const;

 private:
  class Work;
  std::unique_ptr<Work> work_;
};

extern template class Reader<std::uint32_t>;
extern template class Reader<std::uint64_t>;

/// All of the part in one block.
template <typename Index>
RowBlock<Index> ReadAll(const DataUri& uri, Share share = {}, const ReaderOptions& options = {},
                        BadRows* bad_rows = nullptr, QueriesByFile* queries = nullptr);

}  // namespace warren::data
