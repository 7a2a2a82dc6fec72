#include "rabit_engine/mpi/mpi_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <charconv>

#include "rabit_engine/base/error.h"
#include "rabit_engine/base/library_directory.h"

namespace warren {
namespace {

constexpr MpiKind kKinds[] = {MpiKind::kOpenMpi, MpiKind::kMpich};

std::string PluginFile(MpiKind kind) {
  return kind == MpiKind::kOpenMpi ? "librabit_mpi_openmpi.so" : "librabit_mpi_mpich.so";
}

int PositiveNumber(const std::optional<std::string>& text) {
  int value = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), value);
  return value > 0 ? value : 1;
}

/// Returns the MPI that this process has loaded, if any. MPI_Get_library_version may be called before
/// MPI_Init, and has this signature in every MPI.
std::optional<MpiKind> MpiInProcess() {
  constexpr int kRoomForText = 16384;  // MPICH requires 8192 bytes, Open MPI 256
  void* symbol = dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
  if (symbol == nullptr) return std::nullopt;
  std::string text(kRoomForText, '\0');
  int length = 0;
  reinterpret_cast<int (*)(char*, int*)>(symbol)(text.data(), &length);
  return text.find("Open MPI") != std::string::npos ? MpiKind::kOpenMpi : MpiKind::kMpich;
}

const WarrenMpi* TableOf(void* library, const std::string& file, std::string& tried) {
  auto entry = reinterpret_cast<WarrenMpiEntry>(dlsym(library, kWarrenMpiSymbol));
  if (entry == nullptr) {
    tried += fmt::format("\n  {}: is not a plugin of this engine (it lacks {})", file, kWarrenMpiSymbol);
    return nullptr;
  }
  const WarrenMpi* table = entry();
  if (table->version != kWarrenMpiVersion) {
    tried += fmt::format("\n  {}: has version {} of the plugin's interface, this librabit has version {}",
                         file, table->version, kWarrenMpiVersion);
    return nullptr;
  }
  return table;
}

std::string WhyThese(const MpiClues& clues) {
  if (!clues.library.empty()) return fmt::format("{} requires it", clues.library_reason);
  if (clues.in_process) return fmt::format("this program has {} loaded", Name(*clues.in_process));
  if (clues.launcher)
    return fmt::format("{} is set, so {} started this process", clues.launcher_reason, Name(*clues.launcher));
  return "no MPI launcher started this process, so any MPI will do";
}

const WarrenMpi& Load(const MpiClues& clues) {
  std::string tried;
  for (const std::string& file : PluginCandidates(clues, LibraryDirectories())) {
    // RTLD_GLOBAL is needed because Open MPI's own plugins, depending on how Open MPI was built, may not be
    // linked with its libraries, but look up its symbols in the process. The library is never closed, because
    // an MPI cannot be unloaded.
    void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
      tried += fmt::format("\n  {}", dlerror());
      continue;
    }
    if (const WarrenMpi* table = TableOf(library, file, tried)) return *table;
  }
  throw EngineError(fmt::format(
      "this process needs a plugin for MPI to find its peers ({}), and none could be loaded:{}\nStart the job with dmlc-submit --cluster mpi, which needs no plugin; "
      "or build Warren with libopenmpi-dev or libmpich-dev installed, put the plugin next to librabit, or name it in WARREN_MPI_LIBRARY. "
      "Set WARREN_BOOTSTRAP=none if the launcher's processes are separate programs.",
      WhyThese(clues), tried));
}

}  // namespace

std::string_view Name(MpiKind kind) {
  return kind == MpiKind::kOpenMpi ? "Open MPI" : "MPICH";
}

MpiClues ReadMpiClues(const wire::LookUp& look_up) {
  MpiClues clues;
  if (auto asked = wire::FindVariable("WARREN_MPI_LIBRARY", look_up)) {
    clues.library = std::move(asked->value);
    clues.library_reason = asked->name;
  }
  const auto launched_by = [&clues](MpiKind kind, const char* variable,
                                    const std::optional<std::string>& size) {
    clues.launcher = kind;
    clues.launcher_reason = variable;
    clues.launched_processes = PositiveNumber(size);
  };
  if (look_up("OMPI_COMM_WORLD_SIZE")) {
    launched_by(MpiKind::kOpenMpi, "OMPI_COMM_WORLD_SIZE", look_up("OMPI_COMM_WORLD_SIZE"));
  } else if (look_up("PMI_RANK")) {
    launched_by(MpiKind::kMpich, "PMI_RANK", look_up("PMI_SIZE"));
  } else if (look_up("PMIX_RANK")) {
    launched_by(MpiKind::kOpenMpi, "PMIX_RANK", look_up("SLURM_STEP_NUM_TASKS"));
  } else if (look_up("SLURM_STEP_ID")) {
    clues.launched_processes = PositiveNumber(look_up("SLURM_STEP_NUM_TASKS"));
  }
  return clues;
}

std::vector<std::string> PluginCandidates(const MpiClues& clues, std::span<const std::string> folders) {
  if (!clues.library.empty()) return {clues.library};
  const std::optional<MpiKind> wanted = clues.in_process ? clues.in_process : clues.launcher;
  std::vector<std::string> files;
  for (const MpiKind kind : kKinds) {
    if (wanted && *wanted != kind) continue;
    for (const std::string& folder : folders) files.push_back(folder + "/" + PluginFile(kind));
    files.push_back(PluginFile(kind));
  }
  return files;
}

const WarrenMpi& LoadMpi(const MpiClues& clues) {
  static const WarrenMpi& loaded = Load(clues);
  return loaded;
}

MpiClues MpiCluesOfThisProcess() {
  MpiClues clues = ReadMpiClues(&wire::FromEnvironment);
  clues.in_process = MpiInProcess();
  return clues;
}

}  // namespace warren
