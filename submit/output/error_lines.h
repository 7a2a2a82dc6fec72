// Recognizes the lines on standard error that begin or continue an error message, and makes the error
// messages of two programs comparable. Pure functions of text.
#pragma once

#include <string>
#include <string_view>

namespace warren::submit {

/// `line`: a whole line, with or without its newline. Returns whether it begins a traceback or syntax error
/// of Python, a message about an uncaught C++ exception, a failed check of XGBoost or dmlc-core, an error of
/// rabit, of this engine or of Julia, a report of faulthandler, of a sanitizer or of glibc, or a message of
/// Python, argparse, the loader or a shell about a program that cannot start.
bool BeginsError(std::string_view line);

/// Whether the line looks like part of the error message before it, such as a stack frame. Not all lines of a
/// message can be recognized.
bool ContinuesError(std::string_view line);

/// The text with numbers (ranks, pids, times, ports) and addresses replaced by #, since they differ between
/// processes that fail for the same reason.
std::string WithoutNumbers(std::string_view text);

}  // namespace warren::submit
