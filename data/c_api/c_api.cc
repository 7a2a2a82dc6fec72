#include "data/c_api/c_api.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/agreement.h"
#include "data/error.h"
#include "data/reader.h"
#include "data/source/read_ahead.h"
#include "data/source/remote.h"
#include "data/xgboost/groups.h"

using warren::data::BadRows;
using warren::data::DataError;
using warren::data::File;
using warren::data::RemoteFile;
using warren::data::RemoteFiles;
using warren::data::RowBlock;

struct WarrenRows {
  RowBlock<std::uint32_t> block;
  std::vector<std::uint32_t> group_sizes;
  std::vector<float> group_weights;
  BadRows bad_rows;
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

/// What a callback says of its failure.
class Message {
 public:
  char* data() { return text_.data(); }
  std::size_t size() const { return text_.size(); }
  /// "NAME: the callback's words", or "NAME: DOING failed" where it has none.
  std::string Of(const std::string& name, const std::string& doing) {
    text_.back() = '\0';
    return text_.front() != '\0' ? fmt::format("{}: {}", name, text_.data())
                                 : fmt::format("{}: {} failed, without a reason given", name, doing);
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
    // Through the caller's frames no exception may go.
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

template <typename Array>
auto PointerOrNull(const Array& array) -> decltype(array.data()) {
  return array.empty() ? nullptr : array.data();
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
  return OrFail([&] {
    const warren::data::DataUri data = warren::data::ParseDataUri(uri);
    if (!data.cache.empty()) {
      throw DataError(std::string(uri) +
                      ": a cache (#) is for data that does not fit into memory; leave it out");
    }
    auto result = std::make_unique<WarrenRows>();
    warren::data::ReaderOptions options;
    options.threads = threads;
    if (files != nullptr)
      options.remote_files = warren::data::WithReadAhead(std::make_shared<CallersFiles>(*files));
    result->block = warren::data::ReadAll<std::uint32_t>(data, {part, parts}, options, &result->bad_rows);
    const auto agree = [&](std::uint64_t* values, std::size_t count) {
      if (allreduce_max != nullptr && allreduce_max(context, values, count) != 0) {
        throw DataError(std::string(uri) +
                        ": the workers could not agree on the columns, see the error before");
      }
    };
    warren::data::Agree(result->block, data.options.indexing, agree);
    *rows = result.release();
  });
}

int warren_data_arrays(WarrenRows* rows, WarrenArrays* arrays) {
  return OrFail([&] {
    const RowBlock<std::uint32_t>& block = rows->block;
    static constexpr std::uint64_t kNoRows[] = {0};
    WarrenArrays all{};
    all.rows = block.rows();
    all.entries = block.entries();
    all.columns = block.columns;
    all.offsets = block.offsets.empty() ? kNoRows : block.offsets.data();
    all.indices = PointerOrNull(block.indices);
    all.values = PointerOrNull(block.values);
    all.labels = PointerOrNull(block.labels);
    all.labels_of_a_row = block.empty() ? 1 : warren::data::LabelsOfEachRow(block.View());
    all.weights = PointerOrNull(block.weights);
    if (!block.qids.empty()) {
      rows->group_sizes = warren::data::GroupSizes(block.View().qids);
      all.group_sizes = rows->group_sizes.data();
      all.groups = rows->group_sizes.size();
      if (!block.weights.empty()) {
        rows->group_weights = warren::data::GroupWeights(block.View().weights, rows->group_sizes);
        all.weights = rows->group_weights.data();
      }
    }
    all.bad_rows = rows->bad_rows.count;
    all.first_bad_row = rows->bad_rows.first.empty() ? nullptr : rows->bad_rows.first.front().c_str();
    *arrays = all;
  });
}

void warren_data_free(WarrenRows* rows) {
  delete rows;
}
