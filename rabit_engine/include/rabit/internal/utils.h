// Small helpers for programs written for rabit: checks that throw, printing, addresses of container data.
#ifndef RABIT_INTERNAL_UTILS_H_
#define RABIT_INTERNAL_UTILS_H_

#include <dmlc/logging.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "rabit/base.h"

namespace rabit {
namespace utils {

// A program that defines RABIT_CUSTOMIZE_MSG_ must define these three functions. The first two must not
// return.
#ifdef RABIT_CUSTOMIZE_MSG_
void HandleAssertError(const char* msg);
void HandleCheckError(const char* msg);
void HandlePrint(const char* msg);
#endif

inline namespace warren_v1 {

/// The length in bytes at which rabit truncated messages. Here, messages have any length.
const int kPrintBuffer = 1 << 12;

#ifndef RABIT_CUSTOMIZE_MSG_
/// Called by Assert if its condition is false: throws dmlc::Error.
inline void HandleAssertError(const char* msg) {
  throw dmlc::Error(msg);
}
/// Called by Check and Error: throws dmlc::Error.
inline void HandleCheckError(const char* msg) {
  throw dmlc::Error(msg);
}
/// Called by Printf: writes to standard output.
inline void HandlePrint(const char* msg) {
  std::fputs(msg, stdout);
}
#endif

/// The text that printf would print, of any length.
inline std::string FormatV(const char* fmt, va_list args) {
  va_list again;
  va_copy(again, args);
  const int length = std::vsnprintf(nullptr, 0, fmt, again);
  va_end(again);
  if (length < 0) return fmt;
  std::string text(static_cast<std::size_t>(length) + 1, '\0');
  std::vsnprintf(&text[0], text.size(), fmt, args);
  text.resize(static_cast<std::size_t>(length));
  return text;
}

/// Like strcasecmp: returns 0 if the strings differ at most in case.
inline int CompareStringsCaseInsensitive(const char* s1, const char* s2) {
  return strcasecmp(s1, s2);
}

/// Returns true for "true" in any case and for text that begins with an integer other than 0.
inline bool StringToBool(const char* s) {
  return CompareStringsCaseInsensitive(s, "true") == 0 || std::atoi(s) != 0;
}

/// Formats like printf and prints the text with HandlePrint.
inline void Printf(const char* fmt, ...) {
  va_list args;
  va_start(args, fmt);
  const std::string text = FormatV(fmt, args);
  va_end(args);
  HandlePrint(text.c_str());
}

/// Like snprintf.
inline int SPrintf(char* buf, std::size_t size, const char* fmt, ...) {
  va_list args;
  va_start(args, fmt);
  const int length = std::vsnprintf(buf, size, fmt, args);
  va_end(args);
  return length;
}

/// Throws dmlc::Error with the formatted message unless `exp` holds. For errors that only a bug can cause.
inline void Assert(bool exp, const char* fmt, ...) {
  if (exp) return;
  va_list args;
  va_start(args, fmt);
  const std::string text = FormatV(fmt, args);
  va_end(args);
  HandleAssertError(text.c_str());
}

/// Throws dmlc::Error with the formatted message unless `exp` holds. For errors that a user can cause.
inline void Check(bool exp, const char* fmt, ...) {
  if (exp) return;
  va_list args;
  va_start(args, fmt);
  const std::string text = FormatV(fmt, args);
  va_end(args);
  HandleCheckError(text.c_str());
}

/// Throws dmlc::Error with the formatted message.
inline void Error(const char* fmt, ...) {
  va_list args;
  va_start(args, fmt);
  const std::string text = FormatV(fmt, args);
  va_end(args);
  HandleCheckError(text.c_str());
}

/// Like fopen, but throws dmlc::Error if the file cannot be opened. Never returns null.
inline std::FILE* FopenCheck(const char* fname, const char* flag) {
  std::FILE* file = std::fopen(fname, flag);
  Check(file != nullptr, "cannot open file \"%s\"", fname);
  return file;
}

}  // namespace warren_v1
}  // namespace utils

inline namespace warren_v1 {

/// The smaller and the larger of two values; not affected by the macros of <windows.h>.
template <typename T>
inline T Min(const T& l, const T& r) {
  return l < r ? l : r;
}
template <typename T>
inline T Max(const T& l, const T& r) {
  return l > r ? l : r;
}

/// The address of the first element, or null if the container is empty.
template <typename T>
inline T* BeginPtr(std::vector<T>& vec) {  // NOLINT(runtime/references): rabit has it so
  return vec.empty() ? nullptr : &vec[0];
}
template <typename T>
inline const T* BeginPtr(const std::vector<T>& vec) {
  return vec.empty() ? nullptr : &vec[0];
}
inline char* BeginPtr(std::string& str) {  // NOLINT(runtime/references): rabit has it so
  return str.empty() ? nullptr : &str[0];
}
inline const char* BeginPtr(const std::string& str) {
  return str.empty() ? nullptr : &str[0];
}

}  // namespace warren_v1
}  // namespace rabit
#endif  // RABIT_INTERNAL_UTILS_H_
