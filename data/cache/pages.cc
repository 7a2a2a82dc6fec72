#include "data/cache/pages.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "data/cache/cache.h"
#include "data/cache/cache_format.h"
#include "data/error.h"
#include "data/source/inputs.h"
#include "data/text/registry.h"
#include "posix/files.h"

namespace warren::data {
namespace {

constexpr std::size_t kLeastChunk = std::size_t{16} << 10;
/// Maximum number of threads for a shuffled data set. Its chunks are sized for this number, whatever the
/// actual number is.
constexpr int kThreadsToShuffle = 8;
/// The assumed number of bytes in memory per byte of text while both the text and the block of a chunk exist.
/// With short words, a block has eight bytes for every two bytes of text, and more for each row.
constexpr std::size_t kBytesOfText = 6;

template <typename Index>
std::size_t BytesOf(const RowView<Index>& rows) {
  return rows.offsets.size_bytes() + rows.indices.size_bytes() + rows.values.size_bytes() +
         rows.labels.size_bytes() + rows.label_offsets.size_bytes() + rows.weights.size_bytes() +
         rows.qids.size_bytes() + rows.fields.size_bytes();
}

/// Describes everything that determines the contents of a cache. Throws DataError if an input is not a local
/// file.
std::string Identity(const DataUri& uri, Share share,
                     const std::shared_ptr<const RemoteFiles>& remote_files) {
  const TextOptions& options = uri.options;
  std::string identity = fmt::format("part {} of {}; {}", share.index, share.count, DescribeFormat(options));
  if (options.seed) identity += fmt::format(", shuffle {}", *options.seed);
  if (options.skip_bad_rows) identity += ", without bad rows";
  for (const Input& input : ListInputs(uri.paths, remote_files, uri.paths_are)) {
    struct stat status {};
    if (stat(input.path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) {
      throw DataError(
          fmt::format("{}: cannot be cached, because only files can be checked for changes", input.path));
    }
    const timespec modified = posix::ModifiedAt(status);
    const timespec changed = posix::ChangedAt(status);
    // Modification times can be set back; the time of the last status change cannot.
    identity += fmt::format("\n{} {} bytes, {}.{:09}, {}.{:09}", input.path, status.st_size, modified.tv_sec,
                            modified.tv_nsec, changed.tv_sec, changed.tv_nsec);
  }
  return identity;
}

/// Throws DataError if a non-empty file that is not a cache, or that cannot be read, exists at this path: the
/// user may have named it by mistake.
void RequireNoOtherFile(const std::string& cache) {
  std::array<char, internal::kCacheMagic.size()> begin{};
  std::ifstream file(cache, std::ios::binary);
  std::error_code ignored;
  if (!file.is_open() && std::filesystem::exists(cache, ignored)) {
    throw DataError(fmt::format(
        "{}: this file cannot be read, and would be overwritten by the cache; name another file, or remove it",
        cache));
  }
  if (!file.read(begin.data(), begin.size()) && file.gcount() == 0) return;
  if (begin == internal::kCacheMagic) return;
  throw DataError(fmt::format(
      "{}: this file is not a cache and would be overwritten; name another file, or remove it", cache));
}

/// Throws DataError if the cache would become one of the data set's files: it would then be read as text,
/// later or even while it is made.
void RequireElsewhere(const DataUri& uri, const std::string& cache) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::absolute(cache).parent_path();
  for (const std::string& path : uri.paths) {
    std::error_code ignored;
    const bool hidden = fs::path(cache).filename().string().find_first_of("._") == 0;
    const bool in_folder =
        fs::is_directory(path, ignored) && fs::equivalent(path, folder, ignored) && !hidden;
    const auto matches = [&](const std::string& name) {
      return fnmatch(path.c_str(), name.c_str(), FNM_PATHNAME) == 0;
    };
    if (in_folder || matches(cache) || matches(cache + ".0.tmp")) {
      throw DataError(fmt::format(
          "{}: the cache would become one of the files of the data set {}; name one in another folder", cache,
          path));
    }
  }
}

/// Regroups the blocks of a reader so that consecutive rows of a query are never split between two blocks.
template <typename Index>
class WholeQueries {
 public:
  WholeQueries(const DataUri& uri, Share share, const ReaderOptions& options)
      : reader_(uri, share, options) {}

  bool Next(RowBlock<Index>& block) {
    block.Clear();
    block.Append(begun_.View());
    begun_.Clear();
    while (block.empty() ? reader_.Next(block) : reader_.AppendNext(block)) {
      if (block.qids.empty()) return true;
      // The last query may continue in the next block.
      std::size_t last = block.rows() - 1;
      while (last > 0 && block.qids[last - 1] == block.qids[last]) --last;
      if (last == 0) continue;
      begun_.Append(block.View().Part(last, block.rows()));
      block.Truncate(last);
      return true;
    }
    return !block.empty();
  }
  const BadRows& bad_rows() const { return reader_.bad_rows(); }

 private:
  Reader<Index> reader_;
  RowBlock<Index> begun_;
};

}  // namespace

std::string CachePath(const std::string& cache, Share share) {
  return share.count == 1 ? cache : fmt::format("{}.part{}-of-{}", cache, share.index, share.count);
}

template <typename Index>
class Pages<Index>::Source {
 public:
  Source(const DataUri& uri, Share share, const PageOptions& options, const AllreduceMax& allreduce_max)
      : uri_(uri), share_(uri.options.share.value_or(share)), options_(options.reader) {
    if (uri.options.indexing == Indexing::kDetect) {
      throw DataError("indexing_mode=-1 needs all rows before the first page; use indexing_mode=0 or 1");
    }
    const std::vector<Input> inputs = ListInputs(uri.paths, options_.remote_files, uri.paths_are);
    for (const Input& input : inputs) {
      if (input.divisible || input.size > 0) continue;
      throw DataError(fmt::format("{}: can be read only once, but pages are read repeatedly", input.path));
    }
    const std::uint64_t inputs_digest = DigestOf(inputs);
    BoundMemory(options.memory_bytes);
    ShapeFinder finder;
    if (uri.cache.empty()) {
      Scan(finder, [](const RowView<Index>&) {});
    } else {
      OpenOrMakeCache(options, finder);
    }
    if (!uri.options.share && share.count > 1) finder.AddInputs(inputs_digest);
    shape_ = finder.Agree(uri.options.indexing, allreduce_max);
    Rewind();
  }

  bool Next(RowView<Index>& page) {
    if (cache_) {
      if (next_page_ == cache_->pages()) return false;
      page_.reset();  // free its memory first
      page_.emplace(cache_->Page(next_page_++));
      page = page_->View();
    } else {
      if (!reader_->Next(block_)) return false;
      if (block_.columns > shape_.columns) {
        throw DataError(fmt::format(
            "{}: column {} was not there when the rows were first read; no program may write to the files while they are read",
            fmt::join(uri_.paths, ";"), block_.columns - 1));
      }
      page = block_.View();
    }
    page.columns = shape_.columns;
    if (shape_.has_weights && page.weights.empty()) {
      ones_.assign(page.rows(), 1.0F);
      page.weights = ones_;
    }
    return true;
  }

  void Rewind() {
    next_page_ = 0;
    if (!cache_) reader_ = std::make_unique<WholeQueries<Index>>(uri_, share_, options_);
  }

  std::uint64_t rows() const { return rows_; }
  std::uint64_t entries() const { return entries_; }
  std::uint64_t columns() const { return shape_.columns; }
  const Shape& shape() const { return shape_; }
  const BadRows& bad_rows() const { return bad_rows_; }

 private:
  void BoundMemory(std::size_t bytes) {
    if (options_.threads == 0) options_.threads = 2;
    int threads = options_.threads;
    if (uri_.options.seed) {
      // Chunks, and therefore their shuffled order, must not depend on the number of threads.
      threads = kThreadsToShuffle;
      options_.threads = std::min(options_.threads, threads);
    }
    const std::size_t under_way = threads == 1 ? 2 : 2 * static_cast<std::size_t>(threads) + 3;
    options_.chunk_bytes = std::clamp(bytes / (2 * under_way * kBytesOfText), kLeastChunk,
                                      std::max(options_.chunk_bytes, kLeastChunk));
    page_bytes_ = bytes / 4;  // chunks take half of the memory, and arrays may have spare capacity
  }

  /// Reads the text of the part once, and passes its rows to `finder` and `visit`.
  template <typename Visit>
  void Scan(ShapeFinder& finder, Visit&& visit) {
    WholeQueries<Index> reader(uri_, share_, options_);
    RowBlock<Index> block;
    while (reader.Next(block)) {
      rows_ += block.rows();
      entries_ += block.entries();
      finder.Add(block.View());
      visit(block.View());
    }
    bad_rows_ = reader.bad_rows();
  }

  void OpenOrMakeCache(const PageOptions& options, ShapeFinder& finder) {
    const std::string path = CachePath(uri_.cache, share_);
    RequireElsewhere(uri_, path);
    const std::string identity = Identity(uri_, share_, options_.remote_files);
    std::string why;
    cache_ = Cache<Index>::Open(path, identity, why);
    if (!cache_) RequireNoOtherFile(path);
    if (!why.empty() && options.on_stale_cache) options.on_stale_cache(why);
    if (cache_) {
      rows_ = cache_->rows();
      entries_ = cache_->entries();
      if (cache_->pages() == 0) return;
      // The first page has the shape of all pages, except for the number of columns, the weights and, if
      // there are label offsets, the number of labels.
      for (std::size_t i = 1; cache_->has_label_offsets() && i < cache_->pages(); ++i) {
        const CachePage<Index> page = cache_->Page(i);
        finder.Add(page.View());
      }
      const CachePage<Index> first = cache_->Page(0);
      RowView<Index> rows = first.View();
      const float weight = 1;
      rows.columns = cache_->columns();
      if (cache_->has_weights() && rows.weights.empty()) rows.weights = std::span(&weight, 1);
      return finder.Add(rows);
    }
    MakeCache(path, identity, finder);
    cache_ = Cache<Index>::Open(path, identity, why);
    if (!cache_) throw DataError(fmt::format("{}: was just made, but cannot be used: {}", path, why));
  }

  void MakeCache(const std::string& path, const std::string& identity, ShapeFinder& finder) {
    CacheWriter<Index> writer(path, identity);
    RowBlock<Index> page;
    Scan(finder, [&](const RowView<Index>& rows) {
      if (!page.empty() && BytesOf(page.View()) + BytesOf(rows) > page_bytes_) {
        writer.Append(page.View());
        page.Clear();
      }
      page.Append(rows);
    });
    writer.Append(page.View());
    if (Identity(uri_, share_, options_.remote_files) != identity) {
      throw DataError(fmt::format("{}: the files of the data set changed while they were read", path));
    }
    writer.Commit();
  }

  DataUri uri_;
  Share share_;
  ReaderOptions options_;
  std::size_t page_bytes_ = 0;
  std::uint64_t rows_ = 0;
  std::uint64_t entries_ = 0;
  Shape shape_;
  std::vector<float> ones_;  ///< weights of a page that has none, if other pages have weights
  BadRows bad_rows_;
  // When reading the text:
  std::unique_ptr<WholeQueries<Index>> reader_;
  RowBlock<Index> block_;
  // When reading the cache:
  std::unique_ptr<Cache<Index>> cache_;
  std::optional<CachePage<Index>> page_;
  std::size_t next_page_ = 0;
};

template <typename Index>
Pages<Index>::Pages(const DataUri& uri, Share share, const PageOptions& options,
                    const AllreduceMax& allreduce_max)
    : source_(std::make_unique<Source>(uri, share, options, allreduce_max)) {}
template <typename Index>
Pages<Index>::~Pages() = default;
template <typename Index>
bool Pages<Index>::Next(RowView<Index>& page) {
  return source_->Next(page);
}
template <typename Index>
void Pages<Index>::Rewind() {
  source_->Rewind();
}
template <typename Index>
std::uint64_t Pages<Index>::rows() const {
  return source_->rows();
}
template <typename Index>
std::uint64_t Pages<Index>::entries() const {
  return source_->entries();
}
template <typename Index>
std::uint64_t Pages<Index>::columns() const {
  return source_->columns();
}
template <typename Index>
const Shape& Pages<Index>::shape() const {
  return source_->shape();
}
template <typename Index>
const BadRows& Pages<Index>::bad_rows() const {
  return source_->bad_rows();
}

template class Pages<std::uint32_t>;
template class Pages<std::uint64_t>;

}  // namespace warren::data
