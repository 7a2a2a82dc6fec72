// Finds the virtual functions of a class whose symbols a library does not export, by the name of the class's
// type. The Itanium C++ ABI keeps that name in every library with run-time type information, however stripped
// (section 2.9, "Run-Time Type Information", and 2.5, "Virtual Table Layout").
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <string_view>

#include "rabit_engine/xgboost/loaded_library.h"

namespace warren::xgboost {

/// Thrown if an XGBoost must keep its own communication; the message is the reason.
class Refusal : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Returns the first `num_functions` virtual functions of the class with this mangled type name
/// ("N3foo3BarE"), starting at the address that its objects point to. The table may have more functions: its
/// length is not known. Only reads the image. Throws Refusal unless there is exactly one table, and all these
/// functions lie in the image's code.
std::span<void* const> FindVtable(const LibraryImage& image, std::string_view type_name,
                                  std::size_t num_functions);

}  // namespace warren::xgboost
