// Local failures: this process or its host lacks the descriptors, memory, ports, threads or permission that a
// call needs. posix/shortage.h lists the errors.
#pragma once

#include <string>
#include <string_view>

#include "rabit_engine/base/error.h"

namespace warren {

/// Throws LocalShortage: "<doing>: <call> failed on <this host>, its own host: <the error's text>. <advice>".
/// `doing` describes the failure: "rank 1 cannot link with rank 2".
[[noreturn]] void ThrowShortage(const std::string& doing, std::string_view call, int error);

/// Throws LocalShortage if the error is a local shortage; otherwise does nothing.
void ThrowIfShortage(const std::string& doing, std::string_view call, int error);

/// Returns the reason why another rank gave up, as part of a sentence: "for a shortage of its own (Too many
/// open files)".
std::string DescribeShortage(int error);

}  // namespace warren
