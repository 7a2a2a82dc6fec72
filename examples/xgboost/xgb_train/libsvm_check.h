// Checks LibSVM text before XGBoost reads it.
//
// XGBoost 1.7's reader skips what it does not understand: letters vanish, "1:nan" takes its value from
// the next feature, an index wraps around at 2^32, and a feature without a value crashes it. This check
// accepts a line exactly when that reader takes it at its word, and says what is wrong with any other.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace warren::xgb_train {

/// A line that is no LibSVM; the message is `file:line:column: found X, expected Y`.
class DataError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Which share of the text to check: part `index` of `count` parts of about equal bytes.
struct Share {
  int index = 0;
  int count = 1;
};

enum class LineFormat { kLibsvm, kLibsvmFromOne, kOtherLines };

struct LibsvmSummary {
  uint64_t rows = 0;
  /// The sum (mod 2^64) of one hash a row. Shares add up to the same digest however the text is split,
  /// so it names the contents of a data set independently of the number of workers.
  uint64_t digest = 0;
};

/// Checks the lines that begin in the given share of `text`. A row is
///
///     label[:weight] [qid:n] index:value index:value ...   # comment
///
/// separated by blanks and tabs, ended by LF, CR LF or CR; empty lines and comment lines are skipped, a
/// UTF-8 byte order mark is allowed. All rows of a share have a weight or none has, same for qid.
/// Indices are 0 to 2^32 - 2, or 1 to 2^32 - 1 for kLibsvmFromOne; numbers are decimal and finite.
/// kOtherLines takes any line for a row: nothing is checked, only counted and hashed.
///
/// Throws DataError for the first bad line; `name` is what messages call the text. Line and column count
/// from 1, the column in bytes.
LibsvmSummary CheckLibsvm(std::string_view text, std::string_view name, Share share = {},
                          LineFormat format = LineFormat::kLibsvm);

}  // namespace warren::xgb_train
