#include "rabit_engine/base/library_directory.h"

#include <dlfcn.h>

#include <filesystem>
#include <system_error>

namespace warren {

std::vector<std::string> LibraryDirectories() {
  Dl_info info{};
  if (dladdr(reinterpret_cast<const void*>(&LibraryDirectories), &info) == 0 || info.dli_fname == nullptr)
    return {};
  // For the program itself, the loader reports argv[0], which has no folder if the shell found it in PATH.
  const std::string seen = info.dli_fname;
  const bool has_folder = seen.find('/') != std::string::npos;
  std::error_code error;
  // The library may be a symbolic link in another folder; the plugins are next to its target.
  const std::string found = std::filesystem::canonical(has_folder ? seen : "/proc/self/exe", error).string();
  if (error && !has_folder) return {};  // never the current folder: anyone may be able to write there
  const std::string file = error ? seen : found;
  const std::string folder = file.substr(0, file.rfind('/'));
  return {folder, folder + "/warren", folder + "/../lib", folder + "/../lib/warren"};
}

}  // namespace warren
