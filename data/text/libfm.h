// Parses libfm text into row blocks. The grammar of a row:
//
//     label[:weight] {field:index[:value]} [# comment]
//
// Words are separated by blanks and tabs. A row is ended by LF, CR LF or CR, or by the end of the text. Rows
// without words are skipped. Numbers are as in number.h; field:index without a value has value 1; fields and
// indices are whole numbers without a sign. A row without a weight weighs 1.
#pragma once

#include <string_view>

#include "data/error.h"
#include "data/row_block.h"
#include "data/text/options.h"

namespace warren::data {

/// Appends the rows of `text` to `block`, which must be empty or have rows of libfm text. Fields and indices,
/// which the text counts from `first`, are changed to count from 0. Allocates memory only for `block`, for
/// faults, and briefly for rows with unsorted indices. Needs no padding after the text. Thread-safe for
/// different blocks.
template <typename Index>
void ParseLibFm(std::string_view text, FirstIndex first, RowBlock<Index>& block,
                const FaultHandler& on_fault);

}  // namespace warren::data
