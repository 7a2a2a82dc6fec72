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

/// What all workers found out together when they loaded the data. A worker that is started again has it from
/// the checkpoint, as the others do not find it out a second time.
struct Agreed {
  Cuts cuts;
  std::vector<std::uint64_t> words;  ///< results of the small exchanges, in their order
};

struct Dataset {
  std::string name;  ///< in messages
  data::Array<float> labels;
  data::Array<float> weights;  ///< empty: all are 1
  BinnedMatrix matrix;
  double seconds_to_bin = 0;  ///< cuts included, reading not

  std::size_t rows() const { return labels.size(); }
};

/// Loads data sets one after the other: the training data first, whose features and cuts the others take.
class DatasetLoader {
 public:
  /// `agreed` is filled when it is empty: a collective call then. Else it is what an earlier loader, of a run
  /// with the same data, filled, and nobody else takes part. It has to live as long as the loader.
  DatasetLoader(Agreed& agreed, int max_bin, int verbosity, Threads& threads);

  /// `uri` as in docs/how-to/data-text.md. Throws data::DataError or std::runtime_error.
  Dataset Load(const std::string& uri, const std::string& name);

 private:
  void Exchange(std::uint64_t* values, std::size_t count);
  data::RowBlock<std::uint32_t> ReadRows(const std::string& uri);

  Agreed& agreed_;
  bool is_known_;
  std::size_t next_word_ = 0;
  bool has_cuts_ = false;
  data::Indexing indexing_ = data::Indexing::kDetect;  ///< of the first set; kDetect: nothing is loaded yet
  int max_bin_;
  int verbosity_;
  Threads& threads_;
};

}  // namespace warren::histgbt
