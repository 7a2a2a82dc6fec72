#include "examples/histgbt/dataset.h"

#include <fmt/format.h>
#include <rabit/rabit.h>

#include <chrono>
#include <stdexcept>
#include <utility>

#include "data/agreement.h"
#include "data/reader.h"
#include "data/uri.h"

namespace warren::histgbt {
namespace {

/// Maximum number of columns: the sketches of all features, even empty ones, must fit into memory.
constexpr std::uint64_t kMostColumns = std::uint64_t{1} << 24;

void RefuseWhatWouldNotBeLearned(const data::DataUri& parsed, const std::string& uri) {
  if (parsed.options.format == data::Format::kCsv && parsed.options.csv.label_column < 0) {
    throw std::runtime_error(fmt::format("{}: add label_column=0, or whichever column has the labels", uri));
  }
  if (parsed.options.share && rabit::GetWorldSize() > 1) {
    throw std::runtime_error(fmt::format("{}: with part and n, all {} workers would read the same rows", uri,
                                         rabit::GetWorldSize()));
  }
}

}  // namespace

DatasetLoader::DatasetLoader(Agreed& agreed, int max_bin, int verbosity, Threads& threads)
    : agreed_(agreed),
      is_known_(!agreed.words.empty()),
      max_bin_(max_bin),
      verbosity_(verbosity),
      threads_(threads) {}

/// Replaces each value with its maximum over all workers, which a restarted worker takes from the checkpoint.
void DatasetLoader::Exchange(std::uint64_t* values, std::size_t count) {
  for (std::size_t i = 0; is_known_ && i < count; ++i) values[i] = agreed_.words.at(next_word_++);
  if (is_known_) return;
  rabit::Allreduce<rabit::op::Max>(values, count);
  agreed_.words.insert(agreed_.words.end(), values, values + count);
}

data::RowBlock<std::uint32_t> DatasetLoader::ReadRows(const std::string& uri) {
  data::DataUri parsed = data::ParseDataUri(uri);
  RefuseWhatWouldNotBeLearned(parsed, uri);
  // Data sets with indexing_mode=-1 use the indexing of the first set, once it is known.
  if (parsed.options.indexing == data::Indexing::kDetect) parsed.options.indexing = indexing_;
  data::ReaderOptions options;
  options.threads = threads_.count();
  data::BadRows bad_rows;
  std::uint64_t inputs = 0;
  auto block = data::ReadAll<std::uint32_t>(parsed, {rabit::GetRank(), rabit::GetWorldSize()}, options,
                                            &bad_rows, nullptr, &inputs);
  if (bad_rows.count > 0 && verbosity_ >= 1) {
    fmt::print(stderr, "histgbt: {} bad rows of {} were left out, such as {}\n", bad_rows.count, uri,
               bad_rows.first.empty() ? "one" : bad_rows.first.front());
  }
  const data::Shape shape = data::Agree(
      block, parsed.options.indexing,
      [this](std::uint64_t* values, std::size_t count) { Exchange(values, count); }, inputs);
  if (indexing_ == data::Indexing::kDetect) {
    const bool from_one = shape.counted_from_one || parsed.options.indexing == data::Indexing::kOne;
    indexing_ = from_one ? data::Indexing::kOne : data::Indexing::kZero;
  }
  if (block.columns > kMostColumns) {
    throw std::runtime_error(fmt::format("{}: a row has feature index {}, but histgbt accepts at most {}",
                                         uri, block.columns - 1, kMostColumns - 1));
  }
  if (!block.qids.empty() && verbosity_ >= 1) fmt::print(stderr, "histgbt: {}: query ids are ignored\n", uri);
  std::uint64_t any_rows = block.empty() ? 0 : 1;
  Exchange(&any_rows, 1);
  if (any_rows == 0)
    throw std::runtime_error(fmt::format("{}: holds no rows, only comments or empty lines", uri));
  if (shape.labels_per_row != 1) {
    throw std::runtime_error(
        fmt::format("{}: some rows do not have exactly one label, but histgbt needs one per row", uri));
  }
  return block;
}

Dataset DatasetLoader::Load(const std::string& uri, const std::string& name) {
  data::RowBlock<std::uint32_t> block = ReadRows(uri);
  const auto begin = std::chrono::steady_clock::now();
  if (!std::exchange(has_cuts_, true) && !is_known_) {
    agreed_.cuts = MakeCuts(block.View(), static_cast<std::size_t>(max_bin_), threads_);
  }
  Dataset set;
  set.name = name;
  // A share without rows has no offsets at all.
  if (block.empty()) block.offsets.resize(1, 0);
  set.matrix = BinRows(block.View(), agreed_.cuts, threads_);
  set.seconds_to_bin = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  set.labels = std::move(block.labels);
  set.weights = std::move(block.weights);
  return set;
}

}  // namespace warren::histgbt
