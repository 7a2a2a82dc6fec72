// Row blocks into XGBoost, through its C API alone, so that any version since 1.7 does.
#pragma once

#include <cstdint>

#include "data/row_block.h"

namespace warren::data {

/// A new DMatrix of these rows, with labels, weights, and groups if the rows have query ids (rows of a query
/// have to follow each other). XGBoost copies everything. `threads`: that XGBoost copies with, 0: its own
/// choice. The handle is the caller's: XGDMatrixFree.
///
/// Several labels: all rows have to have the same number. With queries XGBoost wants one weight a query: rows
/// of a query have to have the same. Throws DataError when they do not, or with XGBoost's message.
///
/// In a job, rows have the shape of the whole data set first (Agree in data/agreement.h): XGBoost's workers
/// wait for each other where one has weights and another has none. `labels_per_row` is that of the shape, for
/// workers without rows.
void* MakeDMatrix(const RowView<std::uint32_t>& rows, int threads = 0, std::uint64_t labels_per_row = 1);

/// The same for a DMatrix that has its rows already, or a proxy DMatrix of an iterator.
void SetLabelsAndSuch(void* dmatrix, const RowView<std::uint32_t>& rows, std::uint64_t labels_per_row = 1);

}  // namespace warren::data
