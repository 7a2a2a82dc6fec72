// Parses LibSVM text into row blocks. The grammar of a row:
//
//     label[,label...][:weight] [qid:n] {index[:value]} [# comment]
//
// Words are separated by blanks and tabs. A row is ended by LF, CR LF or CR, or by the end of the text. Rows
// without words are skipped. Numbers are as in number.h; an index without a value has value 1; indices are
// whole numbers without a sign. Either all rows have a qid or none has; a row without a weight weighs 1.
#pragma once

#include <optional>
#include <string_view>

#include "data/error.h"
#include "data/row_block.h"
#include "data/source/row_rules.h"
#include "data/text/options.h"

namespace warren::data {

/// Appends the rows of `text`, which must be followed by kTextPadding readable bytes, to `block`. Indices,
/// which the text counts from `first`, are changed to count from 0. Allocates memory only for `block`, for
/// faults, and briefly for rows with unsorted indices. `block` takes at most 8 bytes (12 with 64-bit indices)
/// per two bytes of text, and 32 per row. Thread-safe for different blocks.
///
/// `has_queries`: whether rows have a qid; if nullopt, the first row of the block decides.
template <typename Index>
void ParseLibSvm(std::string_view text, FirstIndex first, RowBlock<Index>& block,
                 const FaultHandler& on_fault, std::optional<bool> has_queries = std::nullopt);

/// Like ParseLibSvm, with the plain parser only, row by row. The plain parser is the reference for the fast
/// kernels, and parses the rows that they do not handle. Needs no padding.
template <typename Index>
void ParseLibSvmPlainly(std::string_view text, FirstIndex first, RowBlock<Index>& block,
                        const FaultHandler& on_fault, std::optional<bool> has_queries = std::nullopt);

}  // namespace warren::data
