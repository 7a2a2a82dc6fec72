// Parses tables of comma-separated numbers into row blocks.
//
// A row is a line, ended by LF, CR LF or CR, or by the end of the text; blank lines are skipped. Its cells
// are separated by single delimiters. Blanks and tabs around a cell are ignored, unless they are the
// delimiter. A cell may be in double quotes; inside them, the delimiter is an ordinary character and "" is
// one quote. No cell, quoted or not, may contain a line end: rows must be found from any position in a file.
//
// An empty cell of a feature, quoted or not, is a missing value and makes no entry. Every other cell must be
// a number as in number.h; nan is an ordinary value of a feature. A row whose only cell is empty must be
// written as "", since empty lines are skipped.
#pragma once

#include <cstdint>
#include <string_view>

#include "data/error.h"
#include "data/row_block.h"

namespace warren::data {

/// The layout of a table. Columns are zero-based and include all columns of the text; -1 means that there is
/// no such column. The remaining columns are the features, numbered 0, 1, 2... in order.
struct CsvOptions {
  int label_column = -1;   ///< without it, every label is 0
  int weight_column = -1;  ///< without it, rows have no weights
  int qid_column = -1;     ///< whole numbers; without it, rows have no query ids
  char delimiter = ',';
  /// Number of cells in every row; -1: as many as in the first row of the block.
  std::int64_t cells = -1;
};

/// Throws DataError if a column is below -1, if two columns are the same, or if the delimiter may occur in
/// numbers, is a quote or ends lines.
void RequireValid(const CsvOptions& options);

/// Appends the rows of `text` to `block`, which must be empty or have rows read with the same options.
/// block.columns is the number of features, including those that are always missing. Among other faults, a
/// row is bad if it lacks a label, weight or query id for which there is a column, or has a wrong number of
/// cells. Faults name columns of the text, counted from 1.
///
/// Header lines would be parsed as rows; the caller must leave them out.
///
/// Allocates memory only for `block` and for faults. Needs no padding after the text. Thread-safe for
/// different blocks. Throws like RequireValid.
template <typename Index>
void ParseCsv(std::string_view text, const CsvOptions& options, RowBlock<Index>& block,
              const FaultHandler& on_fault);

/// Returns a cell of a row, without surrounding blanks and, if it is quoted, without the quotes; empty if
/// there is no such column.
std::string_view CellOf(std::string_view row, int column, char delimiter);
/// Returns the number of cells of a row; 0 for a blank line.
std::int64_t CountCells(std::string_view row, char delimiter);

}  // namespace warren::data
