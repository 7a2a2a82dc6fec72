// Loading through XGBoost's reader, behind our own check.
#include "examples/xgboost/xgb_train/dataset.h"

#include <fmt/format.h>

#include <boost/interprocess/file_mapping.hpp>
#include <boost/interprocess/mapped_region.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "examples/xgboost/xgb_train/libsvm_check.h"

namespace warren::xgb_train {
namespace {

namespace fs = std::filesystem;
namespace ipc = boost::interprocess;

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (size_t end = 0; end != std::string_view::npos;) {
    end = text.find(separator);
    if (!text.substr(0, end).empty()) parts.emplace_back(text.substr(0, end));
    if (end != std::string_view::npos) text.remove_prefix(end + 1);
  }
  return parts;
}

struct Uri {
  std::vector<std::string> paths;
  LineFormat format = LineFormat::kLibsvm;
};

Uri ParseUri(std::string_view text) {
  const std::string_view before_cache = text.substr(0, text.find('#'));
  const size_t question = before_cache.find('?');
  Uri uri;
  uri.paths = Split(before_cache.substr(0, question), ';');
  if (question == std::string_view::npos) return uri;
  bool libsvm = true;
  bool from_one = false;
  for (const std::string& argument : Split(before_cache.substr(question + 1), '&')) {
    if (argument.starts_with("format=")) libsvm = argument == "format=libsvm";
    if (argument.starts_with("indexing_mode=")) from_one = argument == "indexing_mode=1";
  }
  uri.format = !libsvm    ? LineFormat::kOtherLines
               : from_one ? LineFormat::kLibsvmFromOne
                          : LineFormat::kLibsvm;
  return uri;
}

std::string LocalPath(const std::string& path) {
  constexpr std::string_view kFileScheme = "file://";
  if (path.starts_with(kFileScheme)) return path.substr(kFileScheme.size());
  if (path.find("://") != std::string::npos) {
    throw std::runtime_error(fmt::format("{}: expected a local file", path));
  }
  return path;
}

void RequireReadableFile(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) throw std::runtime_error(fmt::format("{}: no such data file", path));
  if (fs::is_directory(status))
    throw std::runtime_error(fmt::format("{}: is a folder, expected a data file", path));
  if (!fs::is_regular_file(status)) {
    throw std::runtime_error(
        fmt::format("{}: is no regular file; data is read in shares, not as a stream", path));
  }
  if (!std::ifstream(path))
    throw std::runtime_error(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  if (fs::file_size(path) == 0)
    throw std::runtime_error(fmt::format("{}: is empty, expected rows of data", path));
}

LibsvmSummary CheckFile(const std::string& path, LineFormat format, Share share) {
  RequireReadableFile(path);
  const ipc::file_mapping file(path.c_str(), ipc::read_only);
  ipc::mapped_region region(file, ipc::read_only);
  region.advise(ipc::mapped_region::advice_sequential);
  return CheckLibsvm({static_cast<const char*>(region.get_address()), region.get_size()}, path, share,
                     format);
}

LibsvmSummary CheckShare(const std::string& uri_text, Share share) {
  const Uri uri = ParseUri(uri_text);
  if (uri.paths.empty()) throw std::runtime_error(fmt::format("'{}': names no data file", uri_text));
  LibsvmSummary sum;
  for (const std::string& path : uri.paths) {
    const LibsvmSummary one = CheckFile(LocalPath(path), uri.format, share);
    sum.rows += one.rows;
    sum.digest += one.digest;
  }
  return sum;
}

}  // namespace

Dataset LoadDataset(const std::string& uri, Communicator& job, bool silent) {
  const LibsvmSummary checked = CheckShare(uri, {job.Rank(), job.Size()});
  const uint64_t rows = job.Sum(checked.rows);
  const uint64_t digest = job.Sum(checked.digest);
  if (rows == 0)
    throw std::runtime_error(fmt::format("{}: holds no rows, only comments or empty lines", uri));
  DMatrix matrix = DMatrix::Load(uri, silent);
  if (const uint64_t loaded = job.Sum(matrix.Rows());
      loaded != rows && ParseUri(uri).format != LineFormat::kOtherLines) {
    throw std::runtime_error(fmt::format(
        "{}: XGBoost read {} rows where the check saw {}; did the file change?", uri, loaded, rows));
  }
  return {std::move(matrix), rows, digest};
}

}  // namespace warren::xgb_train
