#include "data/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "data/error.h"
#include "data/source/chunks.h"
#include "data/source/remote.h"
#include "data/text/format.h"
#include "data/text/registry.h"
#include "posix/cores.h"

namespace warren::data {
namespace {

constexpr int kMostThreads = 16;
constexpr int kMostThreadsAskedFor = 1024;
/// The minimum of the default number of threads if there are remote files: a thread waits about 100 ms for
/// the text of a chunk, which is far longer than parsing takes.
constexpr int kLeastRemoteThreads = 8;

int Cores() {
  return std::max(1, static_cast<int>(posix::OwnCores().size()));
}

int DefaultThreads(const DataUri& uri) {
  const bool remote = std::any_of(uri.paths.begin(), uri.paths.end(), IsRemote);
  return std::clamp(Cores(), remote ? kLeastRemoteThreads : 1, kMostThreads);
}

/// Collects the queries of each file.
class QueryCollector {
 public:
  /// Adds the query ids of consecutive rows of a file.
  void Add(const std::string& path, std::span<const std::uint64_t> qids) {
    if (qids.empty()) return;
    if (!last_path_.empty() && last_path_ != path && last_query_ == qids.front()) {
      // Groups are runs of equal query ids, so the rows on both sides would become one group.
      throw DataError(fmt::format(
          "{}: its query {} comes right after query {} of {}, and the two would be one query: number the queries of all files differently, or put the rows of a query into one file",
          path, last_query_, last_query_, last_path_));
    }
    last_query_ = qids.back();
    std::vector<std::uint64_t>& queries = queries_[path];
    // A query that continues from the previous chunk has been added already.
    if (last_path_ != path || queries.empty() || queries.back() != qids.front())
      queries.push_back(qids.front());
    for (std::size_t row = 1; row < qids.size(); ++row) {
      if (qids[row] != qids[row - 1]) queries.push_back(qids[row]);
    }
    last_path_ = path;
  }

  /// Returns all queries. Throws DataError if the rows of a query are not contiguous in a file.
  const QueriesByFile& Finish() {
    for (auto& [path, queries] : queries_) {
      std::sort(queries.begin(), queries.end());
      const auto again = std::adjacent_find(queries.begin(), queries.end());
      if (again == queries.end()) continue;
      throw DataError(
          fmt::format("{}: the rows of query {} are not together: sort the file by qid", path, *again));
    }
    return queries_;
  }
  const QueriesByFile& queries() const { return queries_; }

 private:
  QueriesByFile queries_;
  std::string last_path_;
  std::uint64_t last_query_ = 0;
};

/// A parsed chunk.
template <typename Index>
struct Parsed {
  RowBlock<Index> block;
  std::string path;
  std::uint64_t bytes = 0;
  BadRows bad_rows;
  std::exception_ptr error;
};

}  // namespace

template <typename Index>
class Reader<Index>::Work {
 public:
  Work(const DataUri& uri, Share share, const ReaderOptions& options)
      : format_(TextFormatOf(uri.options.format)),
        skip_bad_rows_(uri.options.skip_bad_rows),
        on_progress_(options.on_progress),
        most_described_(options.most_described),
        source_(ListInputs(uri.paths, options.remote_files, uri.paths_are), RowRulesOf(uri.options),
                {uri.options.share.value_or(share), uri.options.seed, options.chunk_bytes}),
        parse_(format_.parser(uri.options, source_.first_row())) {
    progress_.bytes_total = source_.bytes();
    if (options.threads < 0 || options.threads > kMostThreadsAskedFor) {
      throw DataError(fmt::format("cannot read with {} threads: expected 1 to {}, or 0 for one per core",
                                  options.threads, kMostThreadsAskedFor));
    }
    const int threads = options.threads > 0 ? options.threads : DefaultThreads(uri);
    if (threads == 1) return;
    most_under_way_ = 2 * static_cast<std::uint64_t>(threads) + 2;
    try {
      for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Run(); });
    } catch (const std::system_error&) {
      // Continue with fewer threads; without any, the caller's thread parses.
    } catch (...) {
      Stop();  // join the threads that did start
      throw;
    }
  }

  ~Work() { Stop(); }
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  /// Appends the next rows to `block`.
  bool AppendNext(RowBlock<Index>& block) {
    if (failure_) std::rethrow_exception(failure_);
    try {
      for (const std::size_t before = block.rows(); block.rows() == before;) {
        if (threads_.empty() ? !ParseHere(block) : !AppendParsed(block)) {
          queries_.Finish();
          return false;
        }
        if (on_progress_) on_progress_(progress_);
      }
    } catch (...) {
      failure_ = std::current_exception();
      throw;
    }
    return true;
  }

  const BadRows& bad_rows() const { return bad_rows_; }
  const QueriesByFile& queries() const { return queries_.queries(); }
  const Progress& progress() const { return progress_; }
  std::uint64_t inputs_digest() const { return source_.inputs_digest(); }

 private:
  // --- with one thread ---

  bool ParseHere(RowBlock<Index>& block) {
    if (!source_.Take(chunk_)) return false;
    const std::size_t rows = block.rows();
    Parsed<Index> result;
    Parse(chunk_, block, result);
    if (rows == 0) RequireAlike(block.View(), result.path);
    if (!block.qids.empty()) queries_.Add(result.path, block.View().Part(rows, block.rows()).qids);
    Count(result, block.rows() - rows);
    return true;
  }

  // --- with several threads ---

  void Stop() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  /// The main function of a parser thread; passes any exception on to the caller's thread.
  void Run() {
    try {
      ParseChunks();
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!broken_) broken_ = std::current_exception();
      changed_.notify_all();
    }
  }

  void ParseChunks() {
    Chunk chunk;
    for (;;) {
      Parsed<Index> result;
      {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return stop_ || number_of_next_ - delivered_ < most_under_way_; });
        if (stop_ || ended_) return;
        // Streams are read here, under the mutex, since only one thread at a time may read them.
        try {
          ended_ = !source_.Take(chunk);
        } catch (...) {
          ended_ = true;
          chunk.number = number_of_next_;
          result.error = std::current_exception();
        }
        if (ended_ && !result.error) {
          changed_.notify_all();
          return;
        }
        number_of_next_ = chunk.number + 1;
        if (!idle_.empty()) {
          result.block = std::move(idle_.back());
          idle_.pop_back();
        }
      }
      if (!result.error) ParseInto(chunk, result);
      const std::lock_guard lock(mutex_);
      if (result.error) ended_ = true;  // no later chunk is needed
      results_.emplace(chunk.number, std::move(result));
      changed_.notify_all();
    }
  }

  void ParseInto(Chunk& chunk, Parsed<Index>& result) {
    result.block.Clear();
    try {
      Parse(chunk, result.block, result);
    } catch (...) {
      result.error = std::current_exception();
    }
  }

  bool AppendParsed(RowBlock<Index>& block) {
    std::optional<Parsed<Index>> result = NextResult();
    if (!result) return false;
    if (result->error) std::rethrow_exception(result->error);
    const std::size_t rows = result->block.rows();
    RequireAlike(result->block.View(), result->path);
    queries_.Add(result->path, result->block.View().qids);
    if (block.empty()) {
      std::swap(block, result->block);
    } else {
      block.Append(result->block.View());
    }
    Count(*result, rows);
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(result->block));
    return true;
  }

  std::optional<Parsed<Index>> NextResult() {
    std::unique_lock lock(mutex_);
    typename std::map<std::uint64_t, Parsed<Index>>::iterator found;
    changed_.wait(lock, [&] {
      found = results_.find(delivered_);
      return broken_ || found != results_.end() || (ended_ && delivered_ == number_of_next_);
    });
    if (broken_) std::rethrow_exception(broken_);
    if (found == results_.end()) return std::nullopt;
    Parsed<Index> result = std::move(found->second);
    results_.erase(found);
    ++delivered_;
    changed_.notify_all();
    return result;
  }

  // --- in both cases ---

  void Parse(Chunk& chunk, RowBlock<Index>& block, Parsed<Index>& result) {
    source_.Load(chunk);
    result.path = source_.path(chunk);
    result.bytes = chunk.text.rows.size();
    const std::uint64_t wanted = most_described_ - std::min(most_described_, described_.load());
    parse_(chunk.text.rows, block, [&](const Fault& fault) {
      if (!skip_bad_rows_) throw DataError(source_.Describe(chunk, fault));
      ++result.bad_rows.count;
      if (result.bad_rows.first.size() < wanted) {
        result.bad_rows.first.push_back(source_.Describe(chunk, fault));
      }
    });
  }

  /// Throws DataError if the chunk differs from the first one in having query ids or, for formats with fixed
  /// columns, in the number of columns. Parsers cannot check this, since they see one chunk at a time.
  void RequireAlike(const RowView<Index>& block, const std::string& path) {
    if (block.rows() == 0) return;
    const bool has_qids = !block.qids.empty();
    if (!first_) first_ = {has_qids, block.columns};
    if (first_->has_qids != has_qids) {
      throw DataError(fmt::format(
          "{}: some rows of the data set have a qid and others have none; expected a qid in every row or in none",
          path));
    }
    if (format_.fixed_columns && first_->columns != block.columns) {
      throw DataError(fmt::format(
          "{}: rows with {} feature columns after rows with {}; expected the same number in all files", path,
          block.columns, first_->columns));
    }
  }

  void Count(Parsed<Index>& result, std::size_t rows) {
    progress_.bytes += result.bytes;
    progress_.rows += rows;
    bad_rows_.count += result.bad_rows.count;
    // This function is called in text order, so the descriptions are in text order, too, although several
    // threads make them.
    for (std::string& text : result.bad_rows.first) {
      if (bad_rows_.first.size() < most_described_) bad_rows_.first.push_back(std::move(text));
    }
    described_ = bad_rows_.first.size();
  }

  struct Shape {
    bool has_qids;
    std::uint64_t columns;
  };

  const TextFormat& format_;
  bool skip_bad_rows_;
  std::function<void(const Progress&)> on_progress_;
  std::uint64_t most_described_;
  ChunkSource source_;
  RowParser parse_;
  std::atomic<std::uint64_t> described_{0};  ///< number of described bad rows in delivered blocks
  Progress progress_;
  BadRows bad_rows_;
  std::optional<Shape> first_;
  QueryCollector queries_;
  std::exception_ptr failure_;  ///< once set, nothing more is delivered
  Chunk chunk_;                 ///< the chunk of the caller's thread, if there are no other threads

  std::vector<std::thread> threads_;
  std::uint64_t most_under_way_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_:
  bool stop_ = false;
  bool ended_ = false;
  std::exception_ptr broken_;  ///< the exception that ended a thread
  std::uint64_t number_of_next_ = 0;
  std::uint64_t delivered_ = 0;
  std::map<std::uint64_t, Parsed<Index>> results_;
  std::vector<RowBlock<Index>> idle_;
};

template <typename Index>
Reader<Index>::Reader(const DataUri& uri, Share share, const ReaderOptions& options)
    : work_(std::make_unique<Work>(uri, share, options)) {}

template <typename Index>
Reader<Index>::~Reader() = default;

template <typename Index>
bool Reader<Index>::Next(RowBlock<Index>& block) {
  block.Clear();
  return work_->AppendNext(block);
}

template <typename Index>
bool Reader<Index>::AppendNext(RowBlock<Index>& block) {
  return work_->AppendNext(block);
}

template <typename Index>
const BadRows& Reader<Index>::bad_rows() const {
  return work_->bad_rows();
}

template <typename Index>
const QueriesByFile& Reader<Index>::queries() const {
  return work_->queries();
}

template <typename Index>
const Progress& Reader<Index>::progress() const {
  return work_->progress();
}

template <typename Index>
std::uint64_t Reader<Index>::inputs_digest() const {
  return work_->inputs_digest();
}

template class Reader<std::uint32_t>;
template class Reader<std::uint64_t>;

template <typename Index>
RowBlock<Index> ReadAll(const DataUri& uri, Share share, const ReaderOptions& options, BadRows* bad_rows,
                        QueriesByFile* queries, std::uint64_t* inputs_digest) {
  RowBlock<Index> all;
  Reader<Index> reader(uri, share, options);
  while (reader.AppendNext(all)) {
  }
  if (bad_rows != nullptr) *bad_rows = reader.bad_rows();
  if (queries != nullptr) *queries = reader.queries();
  if (inputs_digest != nullptr) *inputs_digest = reader.inputs_digest();
  return all;
}

template RowBlock<std::uint32_t> ReadAll(const DataUri&, Share, const ReaderOptions&, BadRows*,
                                         QueriesByFile*, std::uint64_t*);
template RowBlock<std::uint64_t> ReadAll(const DataUri&, Share, const ReaderOptions&, BadRows*,
                                         QueriesByFile*, std::uint64_t*);

}  // namespace warren::data
