// Makes a static library of fmt: Debian has no archive of it. Compiled with -fkeep-inline-functions, it
// contains all of fmt, whatever the version.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

template std::locale fmt::detail::locale_ref::get<std::locale>() const;
