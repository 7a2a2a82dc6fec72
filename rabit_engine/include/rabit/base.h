// What all public headers share: which function is exported, and how a call learns where it was made.
//
// Everything in namespace rabit sits in inline namespaces `warren_v1`. Source code says rabit::Allreduce as
// ever; the linker sees other names than libxgboost's, which carries a rabit of its own, so a program can
// link both.
#ifndef RABIT_BASE_H_
#define RABIT_BASE_H_

#if defined(__GNUC__)
#define RABIT_EXPORT __attribute__((visibility("default")))
#else
#define RABIT_EXPORT
#endif

// The place of a call, for error messages: what the trailing arguments of the calls in rabit.h default to.
// rabit 0.1 has these macros, and wrappers around its calls use them.
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
