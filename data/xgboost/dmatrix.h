// Makes a DMatrix from row blocks with XGBoost's C API only, so that any version since 1.7 works.
#pragma once

#include <cstdint>

#include "data/row_block.h"

namespace warren::data {

/// Returns a new DMatrix of these rows, with labels, weights, and groups if the rows have query ids (the rows
/// of a query must be consecutive). XGBoost copies everything. `threads` is the number of threads for
/// copying, or 0 for XGBoost's default. The caller owns the handle (XGDMatrixFree).
///
/// With several labels, all rows must have the same number of them. With queries, XGBoost takes one weight
/// per query, so all rows of a query must have the same weight. Throws DataError otherwise, or with XGBoost's
/// message if a call fails.
///
/// In a job, the rows must first conform to the shape of the whole data set (Agree in data/agreement.h):
/// XGBoost's workers would otherwise wait for each other forever if only some of them had weights.
/// `labels_per_row` is Shape::labels_per_row. Workers without rows need it. If it is 0, because rows differ
/// in the number of labels, all workers throw DataError.
void* MakeDMatrix(const RowView<std::uint32_t>& rows, int threads = 0, std::uint64_t labels_per_row = 1);

/// Sets labels, weights and groups like MakeDMatrix, in a DMatrix that already has its rows, or in an
/// iterator's proxy DMatrix.
void SetLabelsAndSuch(void* dmatrix, const RowView<std::uint32_t>& rows, std::uint64_t labels_per_row = 1);

}  // namespace warren::data
