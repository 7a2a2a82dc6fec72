// libfm text to row blocks.
//
// A row, as this reader takes it:
//
//     label[:weight] {field:index[:value]} [# comment]
//
// words separated by blanks and tabs, the row ended by LF, CR LF or CR, or by the end of the text. Rows
// without a word are passed over. Numbers as in number.h; field:index without a value has the value 1; fields
// and indices are whole numbers without a sign. A row without a weight weighs 1.
#pragma once

#include <string_view>

#include "data/error.h"
#include "data/row_block.h"
#include "data/text/options.h"

namespace warren::data {

/// Adds the rows of `text` to `block`, which has none yet or others from libfm. Fields and indices are made
/// to count from 0, both of them from `first`. As long as `text` is well formed nothing but `block` takes
/// memory. Needs no padding behind the text. Thread safe for different blocks.
template <typename Index>
void ParseLibFm(std::string_view text, FirstIndex first, RowBlock<Index>& block,
                const FaultHandler& on_fault);

}  // namespace warren::data
