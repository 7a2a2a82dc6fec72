#include "data/c_api/c_api.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include "data/agreement.h"
#include "data/error.h"
#include "data/reader.h"
#include "data/source/read_ahead.h"
#include "data/source/remote.h"
#include "data/xgboost/groups.h"

using warren::data::BadRows;
using warren::data::DataError;
using warren::data::DataUri;
using warren::data::File;
using warren::data::QueriesByFile;
using warren::data::ReaderOptions;
using warren::data::RemoteFile;
using warren::data::RemoteFiles;
using warren::data::RowBlock;
using warren::data::Shape;
using warren::data::ShapeFinder;

struct WarrenRows {
  RowBlock<std::uint32_t> block;
  Shape shape;
  std::vector<std::uint32_t> group_sizes;
  std::vector<float> group_weights;
  BadRows bad_rows;
  QueriesByFile queries;
};

namespace {

thread_local std::string last_error;

int OrFail(const std::function<void()>& action) {
  try {
    action();
    return 0;
  } catch (const std::exception& error) {
    last_error = error.what();
    return -1;
  }
}

/// The buffer for a callback's error message.
class Message {
 public:
  char* data() { return text_.data(); }
  std::size_t size() const { return text_.size(); }
  /// Returns "NAME: the callback's message", or "NAME: DOING failed without giving a reason" if there is
  /// none.
  std::string Of(const std::string& name, const std::string& doing) {
    text_.back() = '\0';
    return text_.front() != '\0' ? fmt::format("{}: {}", name, text_.data())
                                 : fmt::format("{}: {} failed without giving a reason", name, doing);
  }

 private:
  std::array<char, 2048> text_{};
};

class CallersFile final : public File {
 public:
  CallersFile(const WarrenFiles& files, const std::string& name, std::uint64_t bytes)
      : File(name, bytes), files_(files) {}

  void ReadAt(std::uint64_t offset, char* to, std::size_t bytes) const override {
    RequireWithin(offset, bytes);
    if (bytes == 0) return;
    Message message;
    if (files_.read_at(files_.context, name().c_str(), offset, to, bytes, message.data(), message.size()) ==
        0)
      return;
    throw DataError(message.Of(name(), fmt::format("reading {} bytes at byte {}", bytes, offset)));
  }

 private:
  WarrenFiles files_;
};

class CallersFiles final : public RemoteFiles {
 public:
  explicit CallersFiles(const WarrenFiles& files) : files_(files) {}

  std::vector<RemoteFile> List(const std::string& uri) const override {
    Listed listed;
    Message message;
    if (files_.list(files_.context, uri.c_str(), Add, &listed, message.data(), message.size()) != 0)
      throw DataError(message.Of(uri, "listing it"));
    // Add stores its exception, since exceptions must not propagate through the caller's frames.
    if (listed.failure) std::rethrow_exception(listed.failure);
    return listed.files;
  }
  std::unique_ptr<File> Open(const std::string& uri, std::uint64_t size) const override {
    return std::make_unique<CallersFile>(files_, uri, size);
  }

 private:
  struct Listed {
    std::vector<RemoteFile> files;
    std::exception_ptr failure;
  };

  static void Add(void* files, const char* name, std::uint64_t bytes) noexcept {
    Listed& listed = *static_cast<Listed*>(files);
    try {
      listed.files.push_back({name, bytes});
    } catch (...) {
      listed.failure = std::current_exception();
    }
  }

  WarrenFiles files_;
};

/// Returns a non-null address even for an empty array: NULL means that no row of the data set has such
/// values.
template <typename Array>
auto Address(const Array& array) -> decltype(array.data()) {
  static constexpr std::remove_cvref_t<decltype(*array.data())> kNothing{};
  return array.empty() ? &kNothing : array.data();
}

DataUri UriOf(const WarrenDataSet& set) {
  if (set.uri == nullptr)
    return warren::data::DataUriOf({set.paths, set.paths + set.path_count},
                                   set.options != nullptr ? set.options : "");
  DataUri uri = warren::data::ParseDataUri(set.uri);
  if (uri.cache.empty()) return uri;
  throw DataError(std::string(set.uri) +
                  ": a cache (#) is for data that does not fit into memory; leave it out");
}

ReaderOptions OptionsOf(const WarrenDataSet& set) {
  ReaderOptions options;
  options.threads = set.threads;
  if (set.files != nullptr)
    options.remote_files = warren::data::WithReadAhead(std::make_shared<CallersFiles>(*set.files));
  return options;
}

/// Runs `action`; prefixes the message of a DataError with the data set's URI or first path.
void About(const WarrenDataSet& set, const std::function<void()>& action) {
  try {
    action();
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", set.uri != nullptr ? set.uri : set.paths[0], error.what()));
  }
}

/// Computes the group sizes. Throws DataError if the rows of this part differ in the number of labels, or the
/// rows of a query in weight. Called before the workers agree on the shape, so that the caller can still
/// report the error to all of them.
void RequireRegular(WarrenRows& rows) {
  const auto view = rows.block.View();
  warren::data::RequireAlike(view);
  rows.group_sizes = warren::data::GroupSizes(view.qids);
}

}  // namespace

const char* warren_data_last_error() {
  return last_error.c_str();
}

int warren_data_read(const char* uri, int part, int parts, int threads, WarrenAllreduceMax allreduce_max,
                     void* context, WarrenRows** rows) {
  return warren_data_read_from(nullptr, uri, part, parts, threads, allreduce_max, context, rows);
}

int warren_data_read_from(const WarrenFiles* files, const char* uri, int part, int parts, int threads,
                          WarrenAllreduceMax allreduce_max, void* context, WarrenRows** rows) {
  const WarrenDataSet set{
      .uri = uri, .paths = nullptr, .path_count = 0, .options = nullptr, .files = files, .threads = threads};
  return warren_data_read_set(&set, part, parts, allreduce_max, context, rows);
}

int warren_data_read_set(const WarrenDataSet* set, int part, int parts, WarrenAllreduceMax allreduce_max,
                         void* context, WarrenRows** rows) {
  return OrFail([&] {
    const DataUri uri = UriOf(*set);
    const ReaderOptions options = OptionsOf(*set);
    auto result = std::make_unique<WarrenRows>();
    std::uint64_t inputs = 0;
    result->block = warren::data::ReadAll<std::uint32_t>(uri, {part, parts}, options, &result->bad_rows,
                                                         &result->queries, &inputs);
    if (uri.options.share || parts == 1) inputs = 0;
    const bool others_are_asked = allreduce_max != nullptr && !uri.options.share;
    const bool is_whole = uri.options.share.value_or(warren::data::Share{part, parts}).count == 1;
    About(*set, [&] { RequireRegular(*result); });
    ShapeFinder whole;
    if (!others_are_asked && !is_whole) whole = warren::data::FindShape(uri, options);
    const auto agree = [&](std::uint64_t* values, std::size_t count) {
      std::transform(values, values + count, whole.words().begin(), values,
                     [](std::uint64_t a, std::uint64_t b) { return std::max(a, b); });
      if (allreduce_max != nullptr && allreduce_max(context, values, count) != 0)
        throw DataError("the workers could not agree on the columns; see the error above");
    };
    About(*set, [&] {
      result->shape = warren::data::Agree(result->block, uri.options.indexing, agree, inputs);
      (void)warren::data::LabelsOfEachRow(result->block.View(), result->shape.labels_per_row);
    });
    *rows = result.release();
  });
}

int warren_data_shape(const WarrenDataSet* set, uint64_t* words) {
  static_assert(WARREN_DATA_SHAPE_WORDS == ShapeFinder::kWords);
  return OrFail([&] {
    ShapeFinder finder = warren::data::FindShape(UriOf(*set), OptionsOf(*set));
    std::copy(finder.words().begin(), finder.words().end(), words);
  });
}

int warren_data_arrays(WarrenRows* rows, WarrenArrays* arrays) {
  return OrFail([&] {
    const RowBlock<std::uint32_t>& block = rows->block;
    const Shape& shape = rows->shape;
    WarrenArrays all{};
    all.rows = block.rows();
    all.entries = block.entries();
    all.columns = block.columns;
    all.offsets = Address(block.offsets);
    all.indices = Address(block.indices);
    all.values = Address(block.values);
    all.labels = Address(block.labels);
    all.labels_of_a_row = shape.labels_per_row;
    if (shape.has_weights) all.weights = Address(block.weights);
    if (shape.has_queries) {
      all.group_sizes = Address(rows->group_sizes);
      all.groups = rows->group_sizes.size();
      if (shape.has_weights) {
        rows->group_weights = warren::data::GroupWeights(block.View().weights, rows->group_sizes);
        all.weights = Address(rows->group_weights);
      }
    }
    all.bad_rows = rows->bad_rows.count;
    all.first_bad_row = rows->bad_rows.first.empty() ? nullptr : rows->bad_rows.first.front().c_str();
    *arrays = all;
  });
}

void warren_data_queries(const WarrenRows* rows, void (*take)(void*, const WarrenQueries*), void* context) {
  for (const auto& [path, queries] : rows->queries) {
    const WarrenQueries of_file{.path = path.c_str(), .queries = queries.data(), .count = queries.size()};
    take(context, &of_file);
  }
}

void warren_data_free(WarrenRows* rows) {
  delete rows;
}
