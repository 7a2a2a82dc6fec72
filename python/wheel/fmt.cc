// fmt as an archive, which Debian does not have: with -fkeep-inline-functions, all of it, whatever the
// version.
#define FMT_HEADER_ONLY
#include <fmt/format.h>

template std::locale fmt::detail::locale_ref::get<std::locale>() const;
