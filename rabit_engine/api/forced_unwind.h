// The exception with which the GNU C++ library unwinds the stack of a thread that ends early (pthread_cancel,
// pthread_exit). Handlers that catch everything must rethrow it. Other C++ libraries have no such type; with
// them, nothing throws ForcedUnwind.
#pragma once

#include <exception>

#ifdef __GLIBCXX__
#include <cxxabi.h>
#endif

namespace warren::api {

#ifdef __GLIBCXX__
using ForcedUnwind = abi::__forced_unwind;
#else
struct ForcedUnwind {};
#endif

}  // namespace warren::api
