// Messages for the user on stderr. Write errors are ignored.
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <utility>

namespace warren {

template <typename... Arguments>
void Say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  std::fputs((fmt::format(format, std::forward<Arguments>(arguments)...) + "\n").c_str(), stderr);
}

}  // namespace warren
