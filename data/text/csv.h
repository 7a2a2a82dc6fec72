// Tables of numbers as comma-separated values to row blocks.
//
// A row is a line, ended by LF, CR LF or CR, or by the end of the text; lines with nothing but blanks are
// passed over. Its cells are separated by one delimiter each. Blanks and tabs around a cell do not count,
// unless they are the delimiter. A cell may stand in double quotes; in there the delimiter is a plain
// character and "" is one quote. No cell, quoted or not, has a line end in it: rows must be found from any
// place in a file.
//
// An empty cell, quoted or not, is missing and makes no entry. Every other cell is a number as in number.h;
// nan is a value like others. A row with a single cell that is missing is written as "", for an empty line is
// none.
#pragma once

#include <cstdint>
#include <string_view>

#include "data/error.h"
#include "data/row_block.h"

namespace warren::data {

/// How to read a table. Columns count from 0, all of those in the text; -1: there is no such column. The
/// columns that remain are the features, numbered 0, 1, 2... in their order.
struct CsvOptions {
  int label_column = -1;   ///< without one every label is 0
  int weight_column = -1;  ///< without one no row has a weight
  int qid_column = -1;     ///< whole numbers; without one no row has a query id
  char delimiter = ',';
  /// How many every row has; -1: as many as the first row of the block.
  std::int64_t cells = -1;
};

/// Throws DataError when a column is below -1, when two are the same, or when the delimiter could be a part
/// of a number, is a quote or ends lines.
void RequireValid(const CsvOptions& options);

/// Adds the rows of `text` to `block`, which has none yet or others read with the same options. block.columns
/// is the number of features, even of those that are always missing. A row without a label, weight or query
/// id is a fault when there is a column for it; so is one that has not as many cells as it should.
/// Faults name columns of the text, counted from 1.
///
/// Lines that name the columns are rows for it: who knows where files begin leaves them out.
///
/// As long as `text` is well formed nothing but `block` takes memory. Needs no padding behind the text.
/// Thread safe for different blocks. Throws what RequireValid throws.
template <typename Index>
void ParseCsv(std::string_view text, const CsvOptions& options, RowBlock<Index>& block,
              const FaultHandler& on_fault);

/// The contents of a cell of a row: without blanks around it and without quotes. Empty when there is no such
/// column or the quotes are wrong.
std::string_view CellOf(std::string_view row, int column, char delimiter);
/// How many cells a row has; 0 for a line of nothing but blanks.
std::int64_t CountCells(std::string_view row, char delimiter);

}  // namespace warren::data
