// Reads text into a DMatrix through data/, and computes a digest of the rows.
#include "examples/xgboost/xgb_train/dataset.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string_view>

#include "data/agreement.h"
#include "data/cache/pages.h"
#include "data/progress_bar.h"
#include "data/reader.h"
#include "data/xgboost/dmatrix.h"
#include "data/xgboost/dmatrix_pages.h"
#include "examples/xgboost/xgb_train/digest.h"
#include "examples/xgboost/xgb_train/page_folder.h"
#include "examples/xgboost/xgb_train/reading_report.h"

namespace warren::xgb_train {
namespace {

using Block = data::RowBlock<uint32_t>;
using View = data::RowView<uint32_t>;

/// Sums the digests of the rows, so that neither their order nor their split over workers matters.
uint64_t DigestOf(const View& rows) {
  uint64_t sum = 0;
  for (size_t row = 0; row < rows.rows(); ++row) {
    Digest digest;
    const uint64_t label = rows.label_offsets.empty() ? row : rows.label_offsets[row];
    const uint64_t label_end = rows.label_offsets.empty() ? row + 1 : rows.label_offsets[row + 1];
    for (uint64_t i = label; i < label_end; ++i) digest.Add(std::bit_cast<uint32_t>(rows.labels[i]));
    if (!rows.weights.empty()) digest.Add(std::bit_cast<uint32_t>(rows.weights[row]));
    if (!rows.qids.empty()) digest.Add(rows.qids[row]);
    for (uint64_t e = rows.offsets[row]; e < rows.offsets[row + 1]; ++e) {
      digest.Add(uint64_t{rows.indices[e]} << 32 | std::bit_cast<uint32_t>(rows.values[e]));
    }
    sum += digest.value();
  }
  return sum;
}

data::AllreduceMax MaxOf(Communicator& job) {
  return [&job](uint64_t* values, size_t count) {
    for (size_t i = 0; i < count; ++i) values[i] = job.Max(values[i]);
  };
}

/// The number of threads for reading, the same as XGBoost's default: OMP_NUM_THREADS, or 0 (one per core).
int Threads() {
  const char* const text = std::getenv("OMP_NUM_THREADS");
  return text == nullptr ? 0 : std::max(std::atoi(text), 0);
}

/// Whether this version of XGBoost forgets the number of labels per row of a matrix without rows, so that its
/// worker makes other collective calls than the rest.
bool ForgetsLabelsWithoutRows(std::string_view version) {
  return version.starts_with("1.") || version.starts_with("2.") || version.starts_with("3.0.") ||
         version.starts_with("3.1.");
}

/// Pages and the matrix that XGBoost made from them. Each member depends on the members declared before it.
struct PagedMatrix {
  PagedMatrix(const std::string& cache, data::Share own) : folder(cache, own.index, own.count) {}

  PageFolder folder;
  std::unique_ptr<data::Pages<uint32_t>> pages;
  std::unique_ptr<data::DMatrixPages> matrix;
};

class Loader {
 public:
  Loader(const std::string& uri, Communicator& job, int verbosity)
      : text_(uri),
        uri_(data::ParseDataUri(uri)),
        job_(job),
        verbosity_(verbosity),
        bar_("reading " + uri),
        report_(uri) {
    options_.threads = Threads();
    options_.on_progress = [this](const data::Progress& progress) {
      bar_.Show(progress);
      report_.Show(progress);
    };
  }

  Dataset Load(Use use) {
    const data::Share share{job_.Rank(), job_.Size()};
    if (uri_.options.share && job_.Size() > 1) {
      throw std::runtime_error(
          fmt::format("{}: with part and n, all {} workers would read the same rows; leave part and n out",
                      text_, job_.Size()));
    }
    if (use != Use::kPredicting && uri_.options.format == data::Format::kCsv &&
        uri_.options.csv.label_column < 0) {
      throw std::runtime_error(fmt::format(
          "{}: names no column with labels; add label_column=0, or whichever column has them", text_));
    }
    if (!uri_.cache.empty()) RemovePageFoldersOfDeadProcesses(uri_.cache);
    const bool can_be_paged = use != Use::kTraining || !job_.InJob();
    if (!uri_.cache.empty() && !can_be_paged && job_.IsRoot() && verbosity_ >= 1) {
      fmt::print(
          stderr,
          "xgb-train: {}: XGBoost cannot train on pages in a job; each worker reads its share into memory, without the cache\n",
          text_);
    }
    Dataset set = uri_.cache.empty() || !can_be_paged ? IntoMemory(share) : OntoDisk(share);
    set.workers_without_rows = job_.Sum(set.rows == 0 ? 1 : 0);
    set.rows = job_.Sum(set.rows);
    set.digest = job_.Sum(set.digest);
    if (set.rows == 0)
      throw std::runtime_error(fmt::format("{}: holds no rows, only comments or empty lines", text_));
    if (use == Use::kTraining && set.workers_without_rows > 0 && labels_per_row_ > 1 &&
        ForgetsLabelsWithoutRows(XgboostVersion())) {
      throw std::runtime_error(fmt::format(
          "{}: {} of {} workers have no rows, and XGBoost {} cannot train with {} labels per row in that case; start fewer workers",
          text_, set.workers_without_rows, job_.Size(), XgboostVersion(), labels_per_row_));
    }
    if (set.workers_without_rows > 0 && job_.IsRoot() && verbosity_ >= 1) {
      fmt::print(stderr, "xgb-train: {} of {} workers have no rows of {}\n", set.workers_without_rows,
                 job_.Size(), text_);
    }
    return set;
  }

 private:
  Dataset IntoMemory(data::Share share) {
    data::BadRows bad_rows;
    uint64_t inputs = 0;
    Block block = data::ReadAll<uint32_t>(uri_, share, options_, &bad_rows, nullptr, &inputs);
    TellOf(bad_rows);
    labels_per_row_ = data::Agree(block, uri_.options.indexing, MaxOf(job_), inputs).labels_per_row;
    return {DMatrix(data::MakeDMatrix(block.View(), 0, labels_per_row_)), block.rows(),
            DigestOf(block.View())};
  }

  Dataset OntoDisk(data::Share share) {
    data::PageOptions options;
    options.reader = options_;
    options.on_stale_cache = [this](const std::string& why) {
      if (verbosity_ >= 2) fmt::print(stderr, "xgb-train: {}; the cache will be rebuilt\n", why);
    };
    const data::Share own = uri_.options.share.value_or(share);
    const auto paged = std::make_shared<PagedMatrix>(uri_.cache, own);
    paged->pages = std::make_unique<data::Pages<uint32_t>>(uri_, share, options, MaxOf(job_));
    data::Pages<uint32_t>& pages = *paged->pages;
    TellOf(pages.bad_rows());
    Dataset set;
    for (View page; pages.Next(page);) set.digest += DigestOf(page);
    set.rows = pages.rows();
    paged->matrix = std::make_unique<data::DMatrixPages>(pages, paged->folder.path() + "/pages");
    set.matrix = DMatrix(paged->matrix->handle(), [paged] {});
    return set;
  }

  void TellOf(const data::BadRows& bad_rows) const {
    if (verbosity_ < 1 || bad_rows.count == 0) return;
    fmt::print(stderr, "xgb-train: {} bad rows of {} were left out, such as {}\n", bad_rows.count, text_,
               bad_rows.first.empty() ? "one" : bad_rows.first.front());
  }

  std::string text_;
  data::DataUri uri_;
  Communicator& job_;
  int verbosity_;
  data::ProgressBar bar_;
  ReadingReport report_;
  data::ReaderOptions options_;
  uint64_t labels_per_row_ = 1;  ///< in the whole data set
};

}  // namespace

Dataset LoadDataset(const std::string& uri, Use use, Communicator& job, int verbosity) {
  return Loader(uri, job, verbosity).Load(use);
}

}  // namespace warren::xgb_train
