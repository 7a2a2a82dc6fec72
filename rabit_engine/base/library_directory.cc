#include "rabit_engine/base/library_directory.h"

#include <dlfcn.h>

namespace warren {

std::vector<std::string> LibraryDirectories() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&LibraryDirectories), &info) == 0 || info.dli_fname == nullptr)
    return {};
  const std::string file = info.dli_fname;
  const std::size_t slash = file.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : file.substr(0, slash);
  return {folder, folder + "/../lib"};
}

}  // namespace warren
