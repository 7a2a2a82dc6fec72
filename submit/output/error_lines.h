// Recognizes the lines on standard error that begin or continue a program's account of its failure, and makes
// the accounts of two programs comparable. Pure functions of text.
#pragma once

#include <string>
#include <string_view>

namespace warren::submit {

/// `line`: a whole line, with or without its newline. Returns whether it begins a traceback or syntax error
/// of Python, a message about an uncaught C++ exception, a failed check of XGBoost and dmlc-core, an error of
/// rabit or of this engine, a report of faulthandler, of a sanitizer or of glibc, or a message of Python,
/// argparse, the loader or a shell about a program that cannot start.
bool BeginsError(std::string_view line);

/// Whether the line looks like part of the error before it, such as a stack frame. In a message of several
/// lines, some may look like any other line.
bool ContinuesError(std::string_view line);

/// The text without the parts that differ between processes that fail for the same reason: numbers (ranks,
/// pids, times, ports) and addresses.
std::string WithoutNumbers(std::string_view text);

}  // namespace warren::submit
