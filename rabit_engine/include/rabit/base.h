// Shared by rabit's C++ headers: the export attribute, and the macros that record a call's site.
//
// The functions and classes of namespace rabit are in inline namespaces `warren_v1`. Source code still uses
// the name rabit::Allreduce, but the symbols differ from those of libxgboost, which contains its own rabit,
// so a program can link both.
#ifndef RABIT_BASE_H_
#define RABIT_BASE_H_

#if defined(__GNUC__)
#define RABIT_EXPORT __attribute__((visibility("default")))
#else
#define RABIT_EXPORT
#endif

// The call site, for error messages: the default values of the trailing arguments of the functions in
// rabit.h. rabit 0.1 has these macros, and wrappers around its calls use them.
#ifndef RABIT_API_CALLER_SIGNATURE
#define RABIT_API_CALLER_SIGNATURE
#endif
#ifndef _FILE
#if defined(__clang__)
#if __has_builtin(__builtin_FILE) && __has_builtin(__builtin_LINE) && __has_builtin(__builtin_FUNCTION)
#define RABIT_KNOWS_CALLER_ 1
#endif
#elif defined(__GNUC__)
#define RABIT_KNOWS_CALLER_ 1
#endif

// NOLINTBEGIN(bugprone-reserved-identifier): rabit's names
#ifdef RABIT_KNOWS_CALLER_
#define _FILE __builtin_FILE()
#define _LINE __builtin_LINE()
#define _CALLER __builtin_FUNCTION()
#else
#define _FILE "N/A"
#define _LINE -1
#define _CALLER "N/A"
#endif
// NOLINTEND(bugprone-reserved-identifier)
#endif  // _FILE

#endif  // RABIT_BASE_H_
