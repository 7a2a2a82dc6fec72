#include "data/rabit_data/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "data/agreement.h"
#include "data/cache/atomic_file.h"
#include "data/cache/pages.h"
#include "data/error.h"
#include "data/progress_bar.h"
#include "data/reader.h"
#include "data/source/chunks.h"
#include "data/source/inputs.h"
#include "data/text/format.h"
#include "data/text/registry.h"
#include "data/xgboost/groups.h"

namespace warren::data {
namespace {

/// 64-bit indices, so that any valid data can be inspected.
using WideIndex = std::uint64_t;
/// The index type of warren.data.load, xgb-train and the caches written here. `validate` uses it, too, so
/// that the rows it accepts can be used for training.
using NarrowIndex = std::uint32_t;
using Block = RowBlock<WideIndex>;

constexpr std::size_t kMostDistinctLabels = 20;

template <typename Index>
class Reading {
 public:
  Reading(const Arguments& arguments, const DataUri& uri)
      : bar_("reading " + arguments.uri), reader_(uri, arguments.share, Options(arguments)) {}

  template <typename Visit>
  void ForEach(Visit&& visit) {
    RowBlock<Index> block;
    while (reader_.Next(block)) visit(block);
  }
  const BadRows& bad_rows() const { return reader_.bad_rows(); }
  const Progress& progress() const { return reader_.progress(); }

 private:
  ReaderOptions Options(const Arguments& arguments) {
    ReaderOptions options;
    options.threads = arguments.threads;
    options.most_described = static_cast<std::uint64_t>(arguments.most_errors);
    options.on_progress = [this](const Progress& progress) { bar_.Show(progress); };
    return options;
  }

  ProgressBar bar_;
  Reader<Index> reader_;
};

/// The results of inspect.
struct Summary {
  std::uint64_t rows = 0;
  std::uint64_t entries = 0;
  std::uint64_t columns = 0;
  WideIndex least_index = std::numeric_limits<WideIndex>::max();
  std::uint64_t queries = 0;
  std::uint64_t missing = 0;  ///< values that are NaN
  bool weights = false;
  bool several_labels = false;
  std::optional<std::uint64_t> last_query;
  float least_label = std::numeric_limits<float>::infinity();
  float greatest_label = -std::numeric_limits<float>::infinity();
  std::set<float> labels;  ///< distinct labels, at most one more than Print lists

  void Add(const Block& block) {
    rows += block.rows();
    entries += block.entries();
    columns = std::max(columns, block.columns);
    least_index = std::min(least_index, block.least_index);
    weights = weights || !block.weights.empty();
    several_labels = several_labels || !block.label_offsets.empty();
    for (const float label : block.labels) {
      least_label = std::min(least_label, label);
      greatest_label = std::max(greatest_label, label);
      if (labels.size() <= kMostDistinctLabels && !std::isnan(label)) labels.insert(label);
    }
    for (const float value : block.values) missing += std::isnan(value) ? 1 : 0;
    for (const std::uint64_t query : block.qids) {
      if (last_query != query) ++queries;
      last_query = query;
    }
  }
};

std::string Text(float value) {
  return fmt::format("{}", value);
}

void Print(const Summary& summary, const TextOptions& options, std::size_t files, const Progress& progress,
           double seconds) {
  const TextFormat& format = TextFormatOf(options.format);
  fmt::print("format:   {}\n", format.name);
  fmt::print("files:    {}\n", files);
  fmt::print("rows:     {}\n", summary.rows);
  fmt::print(
      "entries:  {} ({:.1f} a row, {} of them nan)\n", summary.entries,
      summary.rows > 0 ? static_cast<double>(summary.entries) / static_cast<double>(summary.rows) : 0.0,
      summary.missing);
  if (summary.entries > 0) {
    fmt::print("indices:  {} to {}, so {} columns counted from 0{}\n", summary.least_index,
               summary.columns - 1, summary.columns,
               options.indexing != Indexing::kOne && !format.fixed_columns && summary.least_index > 0
                   ? fmt::format("; counted from 1 (indexing_mode=1) {}", summary.columns - 1)
                   : "");
  }
  if (summary.labels.size() > kMostDistinctLabels) {
    fmt::print("labels:   {} to {}\n", Text(summary.least_label), Text(summary.greatest_label));
  } else {
    std::string all;
    for (const float label : summary.labels) all += (all.empty() ? "" : ", ") + Text(label);
    fmt::print("labels:   {}{}\n", all, summary.several_labels ? " (several a row)" : "");
  }
  fmt::print("weights:  {}\n", summary.weights ? "yes" : "no");
  fmt::print("queries:  {}\n", summary.last_query ? fmt::format("{}", summary.queries) : "no");
  fmt::print("read:     {} bytes of text in {:.3f} s, {:.0f} MB/s\n", progress.bytes, seconds,
             static_cast<double>(progress.bytes) / 1e6 / std::max(seconds, 1e-9));
}

void TellBadRows(const BadRows& bad_rows) {
  if (bad_rows.count == 0) return;
  for (const std::string& text : bad_rows.first) fmt::print(stderr, "{}\n", text);
  fmt::print(stderr, "rabit-data: {} bad rows were skipped\n", bad_rows.count);
}

/// Appends one row as LibSVM text, each number with the fewest digits that preserve it.
void Write(const Block& block, std::size_t row, fmt::memory_buffer& out) {
  const auto to = std::back_inserter(out);
  const std::uint64_t begin = block.label_offsets.empty() ? row : block.label_offsets[row];
  const std::uint64_t end = block.label_offsets.empty() ? row + 1 : block.label_offsets[row + 1];
  for (std::uint64_t l = begin; l < end; ++l)
    fmt::format_to(to, "{}{}", l > begin ? "," : "", block.labels[l]);
  if (!block.weights.empty()) fmt::format_to(to, ":{}", block.weights[row]);
  if (!block.qids.empty()) fmt::format_to(to, " qid:{}", block.qids[row]);
  for (std::uint64_t e = block.offsets[row]; e < block.offsets[row + 1]; ++e) {
    fmt::format_to(to, " {}:{}", block.indices[e], block.values[e]);
  }
  out.push_back('\n');
}

AtomicFile Create(const std::string& path, Share share) {
  if (path == "-") return AtomicFile::StandardOutput();
  return AtomicFile(CachePath(path, share));
}

void ConvertToText(const Arguments& arguments, const DataUri& uri) {
  if (uri.options.indexing == Indexing::kDetect) {
    throw DataError("indexing_mode=-1 is only known at the end of the data; use indexing_mode=0 or 1");
  }
  Reading<WideIndex> reading(arguments, uri);
  AtomicFile file = Create(arguments.output, arguments.share);
  fmt::memory_buffer out;
  bool fields = false;
  reading.ForEach([&](const Block& block) {
    fields = fields || !block.fields.empty();
    out.clear();
    for (std::size_t row = 0; row < block.rows(); ++row) Write(block, row, out);
    file.Write({out.data(), out.size()});
  });
  file.Commit();
  if (fields) fmt::print(stderr, "rabit-data: the libfm fields were dropped; LibSVM text cannot hold them\n");
  TellBadRows(reading.bad_rows());
}

/// Makes the cache that is used when the data set is named path?options#OUTPUT.
void ConvertToCache(const Arguments& arguments, DataUri uri) {
  uri.cache = arguments.output;
  PageOptions options;
  options.reader.threads = arguments.threads;
  const Pages<std::uint32_t> pages(uri, arguments.share, options);
  TellBadRows(pages.bad_rows());
}

}  // namespace

int Inspect(const Arguments& arguments) {
  const DataUri uri = ParseDataUri(arguments.uri);
  const auto begin = std::chrono::steady_clock::now();
  Summary summary;
  Reading<WideIndex> reading(arguments, uri);
  reading.ForEach([&](const Block& block) { summary.Add(block); });
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  Print(summary, uri.options, ListInputs(uri.paths).size(), reading.progress(), seconds);
  TellBadRows(reading.bad_rows());
  return 0;
}

int Validate(const Arguments& arguments) {
  DataUri uri = ParseDataUri(arguments.uri);
  uri.options.skip_bad_rows = true;
  Reading<NarrowIndex> reading(arguments, uri);
  const auto most = static_cast<std::size_t>(arguments.most_errors);
  // Rows that can be read, but have another number of labels than the first row, or another weight than the
  // first row of their query.
  BadRows unlike;
  RowsAlike alike([&](const std::string& words) {
    ++unlike.count;
    if (unlike.first.size() < most) unlike.first.push_back(fmt::format("{}: {}", arguments.uri, words));
  });
  std::string of_all;
  try {
    reading.ForEach([&](const RowBlock<NarrowIndex>& block) { alike.Add(block.View()); });
  } catch (const DataError& error) {
    of_all = error.what();
  }
  std::vector<std::string> findings = reading.bad_rows().first;
  findings.insert(findings.end(), unlike.first.begin(), unlike.first.end());
  const std::uint64_t count = reading.bad_rows().count + unlike.count;
  const std::size_t shown = std::min(findings.size(), most);
  for (std::size_t i = 0; i < shown; ++i) fmt::print("{}\n", findings[i]);
  if (count > shown) fmt::print("and {} more\n", count - shown);
  if (!of_all.empty()) fmt::print("{}\n", of_all);
  fmt::print("{} rows, {} bad rows{}\n", reading.progress().rows, count,
             of_all.empty() ? "" : ", 1 error in the data set as a whole");
  return count > 0 || !of_all.empty() ? 1 : 0;
}

int Convert(const Arguments& arguments) {
  const DataUri uri = ParseDataUri(arguments.uri);
  if (arguments.to == "cache") {
    ConvertToCache(arguments, uri);
  } else {
    ConvertToText(arguments, uri);
  }
  return 0;
}

int WriteShards(const Arguments& arguments) {
  constexpr std::size_t kChunkBytes = std::size_t{4} << 20;
  const DataUri uri = ParseDataUri(arguments.uri);
  if (uri.options.share) throw DataError("the data set already names a part; shard needs the whole data set");
  // Listed once, because the parts may be written to a folder of the data set.
  const std::vector<Input> inputs = ListInputs(uri.paths);
  for (int part = 0; part < arguments.parts; ++part) {
    const RowRules rules = RowRulesOf(uri.options);
    ChunkSource source(inputs, rules, {{part, arguments.parts}, uri.options.seed, kChunkBytes});
    AtomicFile file(fmt::format("{}.part{}-of-{}", arguments.output, part, arguments.parts));
    Chunk chunk;
    while (source.Take(chunk)) {
      source.Load(chunk);
      const std::string_view rows = chunk.text.rows;
      file.Write(rows);
      // The last row of a file may lack its line end, and rows of another file may follow.
      const bool ended = rows.empty() || rules.row_ends.Has(rows.back());
      if (!ended) file.Write(std::string(1, rules.row_ends.Any()));
    }
    file.Commit();
  }
  if (RowRulesOf(uri.options).header)
    fmt::print(stderr, "rabit-data: the parts have no header line; read them without header=1\n");
  return 0;
}

}  // namespace warren::data
