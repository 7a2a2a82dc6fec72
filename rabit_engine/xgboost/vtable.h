// Where a library keeps the virtual functions of a class whose symbols it does not export, found by the name
// of the class's type, which the Itanium C++ ABI has in every library with run-time type information, however
// stripped (section 2.9, "Run-Time Type Information", and 2.5, "Virtual Table Layout").
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "rabit_engine/xgboost/loaded_library.h"

namespace warren::xgboost {

/// Why an XGBoost keeps its own communication.
class Refusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The first `num_functions` virtual functions of the class of this mangled type name ("N3foo3BarE"), from
/// the address that its objects point to. Reads the image and nothing else. Throws Refusal unless there is
/// exactly one table, and so many of its functions lie in the image's code. (Whether it has more cannot be
/// told: what lies behind a table may look the same.)
std::span<void* const> FindVtable(const LibraryImage& image, std::string_view type_name,
                                  std::size_t num_functions);

}  // namespace warren::xgboost
