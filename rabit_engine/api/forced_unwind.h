// The exception that unwinds a cancelled thread (pthread_cancel) in GNU's C++ library. Handlers that catch
// everything must let it pass. Other libraries have no such type; there, nothing throws ForcedUnwind.
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
