// Row blocks as text, for comparisons in tests whose failures show the rows.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

#include "data/row_block.h"

namespace warren::data {

/// Returns one line per row, "label[,label...][ weight=W][ qid=Q][ [FIELD/]INDEX:VALUE...]", with floats that
/// read back with the same bits. After the rows follow "columns=N" and, if the block has entries, "least=N".
/// Throws std::logic_error if the parts of the block are inconsistent.
template <typename Index>
std::string ShowRows(const RowBlock<Index>& block) {
  const auto is_one_of = [](std::size_t size, std::size_t one, std::size_t other) {
    return size == one || size == other;
  };
  const std::size_t rows = block.rows();
  const std::size_t entries = rows == 0 ? 0 : block.offsets[rows];
  const std::size_t labels = block.label_offsets.empty() ? rows : block.label_offsets[rows];
  if (block.indices.size() != entries || block.values.size() != entries || block.labels.size() != labels ||
      !is_one_of(block.weights.size(), 0, rows) || !is_one_of(block.qids.size(), 0, rows) ||
      !is_one_of(block.fields.size(), 0, entries) || !is_one_of(block.label_offsets.size(), 0, rows + 1)) {
    throw std::logic_error("a row block's arrays do not fit one another");
  }
  std::string text;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t label = block.label_offsets.empty() ? row : block.label_offsets[row];
    const std::size_t label_end = block.label_offsets.empty() ? row + 1 : block.label_offsets[row + 1];
    for (std::size_t i = label; i < label_end; ++i)
      text += fmt::format("{}{:.9g}", i > label ? "," : "", block.labels[i]);
    if (!block.weights.empty()) text += fmt::format(" weight={:.9g}", block.weights[row]);
    if (!block.qids.empty()) text += fmt::format(" qid={}", block.qids[row]);
    for (std::size_t i = block.offsets[row]; i < block.offsets[row + 1]; ++i) {
      text += ' ';
      if (!block.fields.empty()) text += fmt::format("{}/", block.fields[i]);
      text += fmt::format("{}:{:.9g}", block.indices[i], block.values[i]);
    }
    text += '\n';
  }
  text += fmt::format("columns={}", block.columns);
  if (entries > 0) text += fmt::format(" least={}", block.least_index);
  return text;
}

}  // namespace warren::data
