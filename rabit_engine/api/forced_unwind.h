// What unwinds a thread that is cancelled (pthread_cancel), by the name of GNU's C++ library. Whoever catches
// all lets it pass. Other libraries have no such name, and nothing of it is thrown.
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
