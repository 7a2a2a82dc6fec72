// Failures that are this process's own: it, or its host, has no descriptor, memory, port, thread or
// permission left for what a call needs. posix/shortage.h says which errors these are.
#pragma once

#include <string>
#include <string_view>

#include "rabit_engine/base/error.h"

namespace warren {

/// Throws LocalShortage: "<doing>: <call> failed on <this host>: <the error's text>. <advice>". `doing` says
/// who wanted what: "rank 1 cannot link with rank 2".
[[noreturn]] void ThrowShortage(const std::string& doing, std::string_view call, int error);

/// Throws it if the error is one of a shortage, else nothing.
void ThrowIfShortage(const std::string& doing, std::string_view call, int error);

/// "for want of something on its host (Too many open files)": why another rank gave up, in messages.
std::string DescribeShortage(int error);

}  // namespace warren
