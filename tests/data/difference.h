// Where two row blocks differ, bit for bit, for tests that compare parsers.
#pragma once

#include <cstring>
#include <string>

#include "data/row_block.h"

namespace warren::data {

/// The name of the first member that is not bit-identical in the two blocks, or "".
template <typename Index>
std::string Difference(const RowBlock<Index>& a, const RowBlock<Index>& b) {
  const auto same = [](const auto& one, const auto& other) {
    return one.size() == other.size() &&
           (one.empty() || std::memcmp(one.data(), other.data(), one.size() * sizeof(one[0])) == 0);
  };
  if (!same(a.offsets, b.offsets)) return "offsets";
  if (!same(a.indices, b.indices)) return "indices";
  if (!same(a.values, b.values)) return "values";
  if (!same(a.labels, b.labels)) return "labels";
  if (!same(a.label_offsets, b.label_offsets)) return "label_offsets";
  if (!same(a.weights, b.weights)) return "weights";
  if (!same(a.qids, b.qids)) return "qids";
  if (!same(a.fields, b.fields)) return "fields";
  if (a.columns != b.columns) return "columns";
  if (a.least_index != b.least_index) return "least_index";
  return "";
}

}  // namespace warren::data
