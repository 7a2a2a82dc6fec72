// Which lines on standard error begin the words that a program says of its failure, which go on with them,
// and when two programs say the same. Pure functions of text.
#pragma once

#include <string>
#include <string_view>

namespace warren::submit {

/// A whole line, with or without its newline: it begins a traceback or a syntax error of Python, what C++
/// says of an exception that nobody catches, a failed check of XGBoost and dmlc-core, an error of rabit or of
/// this engine, a report of faulthandler, of a sanitizer or of glibc, or what Python, argparse, the loader or
/// a shell say of a program that cannot start.
bool BeginsError(std::string_view line);

/// A line that looks as if it belonged to the error that was begun before it: a frame of a stack, say. One
/// of a message in several lines may look like any other line.
bool ContinuesError(std::string_view line);

/// The text with everything gone that differs between processes which fail for the same reason: numbers
/// (ranks, pids, times, ports) and addresses.
std::string WithoutNumbers(std::string_view text);

}  // namespace warren::submit
