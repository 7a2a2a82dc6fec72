// A data set in memory: this worker's rows, binned.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "data/row_block.h"
#include "data/uri.h"
#include "examples/histgbt/binned_matrix.h"
#include "examples/histgbt/cuts.h"
#include "examples/histgbt/threads.h"

namespace warren::histgbt {

/// The results that the workers exchanged while loading the data. A restarted worker takes them from the
/// checkpoint, since the other workers do not repeat the exchanges.
struct Agreed {
  Cuts cuts;
  std::vector<std::uint64_t> words;  ///< results of the small exchanges, in order
};

struct Dataset {
  std::string name;  ///< for messages
  data::Array<float> labels;
  data::Array<float> weights;  ///< empty: all are 1
  BinnedMatrix matrix;
  double seconds_to_bin = 0;  ///< duration of making the cuts and binning, without reading

  std::size_t rows() const { return labels.size(); }
};

/// Loads data sets one after the other, the training data first; the others use its features and cuts.
class DatasetLoader {
 public:
  /// An empty `agreed` is filled; loading is then a collective call. Otherwise `agreed` must be the result of
  /// an earlier loader in a run with the same data, and loading is local to this worker. `agreed` must
  /// outlive the loader.
  DatasetLoader(Agreed& agreed, int max_bin, int verbosity, Threads& threads);

  /// `uri` is described in docs/how-to/data-text.md. Throws data::DataError or std::runtime_error.
  Dataset Load(const std::string& uri, const std::string& name);

 private:
  void Exchange(std::uint64_t* values, std::size_t count);
  data::RowBlock<std::uint32_t> ReadRows(const std::string& uri);

  Agreed& agreed_;
  bool is_known_;
  std::size_t next_word_ = 0;
  bool has_cuts_ = false;
  /// The indexing of the first set; kDetect until that set is loaded.
  data::Indexing indexing_ = data::Indexing::kDetect;
  int max_bin_;
  int verbosity_;
  Threads& threads_;
};

}  // namespace warren::histgbt
