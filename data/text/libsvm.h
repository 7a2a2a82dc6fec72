// LibSVM text to row blocks.
//
// A row, as this reader takes it:
//
//     label[,label...][:weight] [qid:n] {index[:value]} [# comment]
//
// words separated by blanks and tabs, the row ended by LF, CR LF or CR, or by the end of the text. Rows
// without a word are passed over. Numbers as in number.h; an index without a value has the value 1; indices
// are whole numbers without a sign. Either all rows have a qid or none has; a row without a weight weighs 1.
#pragma once

#include <optional>
#include <string_view>

#include "data/error.h"
#include "data/row_block.h"
#include "data/source/row_rules.h"
#include "data/text/options.h"

namespace warren::data {

/// Adds the rows of `text`, which kTextPadding bytes follow, to `block`. Indices are made to count from 0. As
/// long as `text` is well formed nothing but `block` takes memory: at most 8 bytes (16 with 64-bit indices)
/// for two bytes of text, and 32 for each row. Thread safe for different blocks.
///
/// `has_queries`: whether rows have a qid; when it is not given, the first row of the block decides.
template <typename Index>
void ParseLibSvm(std::string_view text, FirstIndex first, RowBlock<Index>& block,
                 const FaultHandler& on_fault, std::optional<bool> has_queries = std::nullopt);

/// The same by the plain parser alone, row by row: the measure for the fast paths, and what reads the rows
/// that those leave to it. Needs no padding.
template <typename Index>
void ParseLibSvmPlainly(std::string_view text, FirstIndex first, RowBlock<Index>& block,
                        const FaultHandler& on_fault, std::optional<bool> has_queries = std::nullopt);

}  // namespace warren::data
