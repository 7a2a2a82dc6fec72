#include "rabit_engine/base/library_directory.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

namespace warren {

std::vector<std::string> LibraryDirectories() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&LibraryDirectories), &info) == 0 || info.dli_fname == nullptr)
    return {};
  std::error_code error;
  // The library may be a symbolic link in another folder; the plugins are next to its target.
  const std::string found = std::filesystem::canonical(info.dli_fname, error).string();
  const std::string file = error ? info.dli_fname : found;
  const std::size_t slash = file.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : file.substr(0, slash);
  return {folder, folder + "/warren", folder + "/../lib", folder + "/../lib/warren"};
}

}  // namespace warren
