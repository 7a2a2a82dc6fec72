// Generates learnable rows of LibSVM text; each row is a pure function of the options and the row number.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace warren::make_libsvm {

enum class Task { kBinary, kRegression, kRanking, kMulticlass };

struct Options {
  Task task = Task::kBinary;
  uint64_t rows = 1000;
  /// Number of the first row. A different range with otherwise the same options gives new rows.
  uint64_t first_row = 0;
  uint32_t features = 20;        ///< indices 1 to features
  double density = 1.0;          ///< fraction of the features present in a row, in (0, 1]
  bool binary_features = false;  ///< every value is 1, as in one-hot coded categories
  double noise = 0.1;            ///< standard deviation of the noise, divided by the signal's
  uint32_t query_size = 10;      ///< rows per query (ranking)
  uint32_t classes = 3;          ///< number of classes (multiclass)
  uint64_t seed = 1;
};

/// Throws std::runtime_error naming the option, what was found and what was expected.
void Validate(const Options& options);

/// Appends rows to text. The same options give the same bytes on every machine: the arithmetic uses whole
/// numbers wherever the C++ standard leaves results to the library, as it does for distributions and for the
/// last bits of sin and log.
///
/// The feature indices are divided into as many equal stretches as a row has entries, and one index is drawn
/// from each, so with binary_features a stretch is a category and its indices are the category's values.
/// Labels come from a hidden score: a weighted sum of the values, in which a few features have large weights
/// and most have small ones, plus interactions of neighboring features that only a tree or a product feature
/// can find, plus noise.
class Generator {
 public:
  explicit Generator(const Options& options);
  void AppendRow(uint64_t row, std::string& text);
  /// Appends the same row as numbers: the label, then the value of each feature, NaN for features that are
  /// not in the row. Queries are left out.
  void AppendNumbers(uint64_t row, std::vector<float>& numbers);

 private:
  struct Entry {
    uint32_t feature;  ///< zero-based
    int32_t value;     ///< in ten-thousandths
  };
  void DrawEntries(uint64_t row);
  int64_t Score(uint32_t output) const;
  int64_t NoisyScore(uint64_t row, uint32_t output) const;
  int64_t Label(uint64_t row) const;  ///< in ten-thousandths
  uint32_t BestClass(uint64_t row) const;

  Options options_;
  uint32_t entries_per_row_;
  int64_t scale_;  ///< approximate standard deviation of the signal
  int64_t noise_scale_;
  std::vector<Entry> entries_;
};

}  // namespace warren::make_libsvm
