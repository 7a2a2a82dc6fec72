#include "rabit_engine/device/device_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/library_directory.h"
#include "wire/variables.h"

namespace warren::device {
namespace {

constexpr char kFile[] = "librabit_cuda.so";

const WarrenDevices& Load() {
  std::string tried;
  const auto wanted = wire::FindVariable("WARREN_CUDA_LIBRARY", &wire::FromEnvironment);
  for (const std::string& file : LibraryCandidates(wanted ? wanted->value : "", LibraryDirectories())) {
    // The library is never closed, because CUDA cannot be unloaded.
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      tried += fmt::format("\n  {}", dlerror());
      continue;
    }
    const auto entry = reinterpret_cast<WarrenDevicesEntry>(dlsym(library, kWarrenDevicesSymbol));
    if (entry == nullptr) {
      tried += fmt::format("\n  {}: is not the CUDA part of this engine (it lacks {})", file,
                           kWarrenDevicesSymbol);
      continue;
    }
    const WarrenDevices* table = entry();
    if (table->version == kWarrenDevicesVersion) return *table;
    tried += fmt::format("\n  {}: has version {} of the interface, this librabit has version {}", file,
                         table->version, kWarrenDevicesVersion);
  }
  throw EngineError(fmt::format(
      "device collectives need librabit_cuda.so, and it could not be loaded:{}\nBuild Warren where the CUDA toolkit and NCCL's header are installed, "
      "put the library next to librabit, or name it in WARREN_CUDA_LIBRARY.",
      tried));
}

}  // namespace

std::vector<std::string> LibraryCandidates(const std::string& wanted,
                                           const std::vector<std::string>& folders) {
  if (!wanted.empty()) return {wanted};
  std::vector<std::string> files;
  files.reserve(folders.size() + 1);
  for (const std::string& folder : folders) files.push_back(folder + "/" + kFile);
  files.emplace_back(kFile);
  return files;
}

const WarrenDevices& LoadDevices() {
  static const WarrenDevices& loaded = Load();
  return loaded;
}

}  // namespace warren::device
