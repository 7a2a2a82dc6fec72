#include "submit/output/error_lines.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace warren::submit {
namespace {

bool IsDigit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}
bool IsHexDigit(char c) {
  return std::isxdigit(static_cast<unsigned char>(c)) != 0;
}
bool IsNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
}

std::string_view WithoutLineEnd(std::string_view line) {
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.remove_suffix(1);
  return line;
}

/// Texts at the beginning of a line that begins an error message.
constexpr std::array<std::string_view, 14> kFirstWords = {
    "terminate called ",  // libstdc++: "after throwing an instance of", "without an active exception"
    "libc++abi: terminating",
    "Fatal Python error: ",
    "Traceback (most recent call first):",  // from some versions of faulthandler
    "double free or corruption",
    "free(): invalid",
    "malloc(): ",
    "munmap_chunk(): ",
    "corrupted size vs. prev_size",
    "*** stack smashing detected ***",
    "AssertError:",        // from rabit
    "SyntaxError: ",       // without a line of the file, for a wrong encoding
    "usage: ",             // from argparse, before the actual error
    "ERROR: LoadError: ",  // from Julia
};
/// Texts anywhere in a line that begins an error message: they may follow an unfinished progress bar or a
/// "==4242==".
constexpr std::array<std::string_view, 10> kTracebacks = {
    "Traceback (most recent call last):",
    "ERROR: AddressSanitizer",
    "ERROR: LeakSanitizer",
    "WARNING: ThreadSanitizer",
    ": runtime error: ",
    "WARNING: MemorySanitizer",
    ": Assertion `",
    ": can't open file '",  // the script does not exist
    ": error while loading shared libraries: ",
    ": command not found",
};

/// Whether the line is like "[12:00:00] /path/file.cc:123: Check failed: ...", possibly after "rabit: " or
/// "what(): ".
bool IsFailedCheck(std::string_view line) {
  const std::size_t check = line.find(": Check failed: ");
  return check != std::string_view::npos && check > 0 && IsDigit(line[check - 1]) && line.find('[') < check;
}

/// Whether the line is an error of this engine as C and C++ programs print it: "rank 3: RabitAllreduce: rank
/// 1 ... has ended", "rank 0 on host lost rank 1 at ..."; not "rank 3: 1000 rows".
bool IsErrorOfEngine(std::string_view line) {
  if (!line.starts_with("rank ") && !line.starts_with("task ")) return false;
  line.remove_prefix(std::string_view("rank ").size());
  const std::size_t end = line.find_first_not_of("0123456789");
  if (end == 0 || end == std::string_view::npos) return false;
  line.remove_prefix(end);
  if (line.starts_with(" on ")) return line.find(" lost rank ") != std::string_view::npos;
  return line.starts_with(": Rabit") || line.starts_with(": Warren");
}

/// Whether the line is like "/usr/bin/python3.11: No module named train", which Python itself prints; not a
/// similar line of a log.
bool IsMissingModule(std::string_view line) {
  const std::size_t found = line.find(": No module named ");
  if (found == std::string_view::npos) return false;
  const std::string_view program = line.substr(0, found);
  const std::size_t name = program.rfind("python");
  return name != std::string_view::npos &&
         program.find_first_not_of("0123456789.", name + 6) == std::string_view::npos;
}

/// Whether the line is like `  File "train.py", line 3`: Python could not compile the file, and no traceback
/// precedes this line. A stack frame has more text after the number.
bool IsPlaceOfSyntaxError(std::string_view line) {
  if (!line.starts_with("  File \"")) return false;
  constexpr std::string_view kLine = "\", line ";
  const std::size_t found = line.rfind(kLine);
  if (found == std::string_view::npos) return false;
  line.remove_prefix(found + kLine.size());
  return !line.empty() && std::all_of(line.begin(), line.end(), IsDigit);
}

constexpr std::array<std::string_view, 6> kExceptionEndings = {"Error", "Exception", "Interrupt",
                                                               "Exit",  "Warning",   "Group"};

/// Whether the line begins with the name of an exception: "ValueError: no such column", "KeyboardInterrupt";
/// not "INFO: all is well".
bool IsNameOfException(std::string_view line) {
  const auto end =
      static_cast<std::size_t>(std::find_if_not(line.begin(), line.end(), IsNameCharacter) - line.begin());
  if (end < line.size() && line[end] != ':') return false;
  const auto ends = [&](std::string_view ending) { return line.substr(0, end).ends_with(ending); };
  return std::any_of(kExceptionEndings.begin(), kExceptionEndings.end(), ends);
}

constexpr std::array<std::string_view, 12> kContinuing = {
    "During handling of the above exception",
    "The above exception was the direct cause",
    "Exception ignored in",
    "Exception in thread",
    "Stack trace",
    "Thread 0x",
    "Current thread 0x",
    "Extension modules:",
    "Aborted",
    "Segmentation fault",
    "==",
    "[bt]",
};

}  // namespace

bool BeginsError(std::string_view line) {
  line = WithoutLineEnd(line);
  const auto begins = [&](std::string_view words) { return line.starts_with(words); };
  const auto has = [&](std::string_view words) { return line.find(words) != std::string_view::npos; };
  return std::any_of(kFirstWords.begin(), kFirstWords.end(), begins) ||
         std::any_of(kTracebacks.begin(), kTracebacks.end(), has) || IsFailedCheck(line) ||
         IsErrorOfEngine(line) || IsMissingModule(line) || IsPlaceOfSyntaxError(line);
}

bool ContinuesError(std::string_view line) {
  line = WithoutLineEnd(line);
  if (line.empty() || line.front() == ' ' || line.front() == '\t') return true;
  const auto begins = [&](std::string_view words) { return line.starts_with(words); };
  return std::any_of(kContinuing.begin(), kContinuing.end(), begins) || IsNameOfException(line) ||
         BeginsError(line);
}

std::string WithoutNumbers(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    if (!IsDigit(text[i])) {
      result += text[i++];
      continue;
    }
    const bool is_address = text.substr(i).starts_with("0x");
    if (is_address) i += 2;
    while (i < text.size() && (is_address ? IsHexDigit(text[i]) : IsDigit(text[i]))) ++i;
    result += '#';
  }
  return result;
}

}  // namespace warren::submit
