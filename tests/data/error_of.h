// The messages of errors, for tests.
#pragma once

#include <sys/fsuid.h>
#include <unistd.h>

#include <string>

#include "data/error.h"

namespace warren::data {

/// The message of the DataError that the action throws, or "no error".
template <typename Action>
std::string ErrorOf(const Action& action) {
  try {
    action();
  } catch (const DataError& error) {
    return error.what();
  }
  return "no error";
}

/// ErrorOf, with files opened as a user without rights: root may read everything.
template <typename Action>
std::string ErrorOfNobody(const Action& action) {
  constexpr uid_t kNobody = 65534;
  const bool is_root = geteuid() == 0;
  if (is_root) setfsuid(kNobody);
  std::string error = ErrorOf(action);
  if (is_root) setfsuid(0);
  return error;
}

}  // namespace warren::data
