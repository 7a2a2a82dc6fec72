#include "tls/openssl_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace warren::tls {
namespace {

constexpr char kFile[] = "libssl.so.3";

struct Loaded {
  OpenSsl functions;
  std::string trouble;  ///< empty if everything was found
};

Loaded Load() {
  Loaded loaded;
  void* const library = dlopen(kFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    loaded.trouble = dlerror();
    return loaded;
  }
#define WARREN_FIND(name)                                                                           \
  loaded.functions.name = reinterpret_cast<decltype(loaded.functions.name)>(dlsym(library, #name)); \
  if (loaded.functions.name == nullptr) loaded.trouble = fmt::format("{} has no function {}", kFile, #name);
  WARREN_OPENSSL_FUNCTIONS(WARREN_FIND)
#undef WARREN_FIND
  return loaded;
}

}  // namespace

const OpenSsl& LoadOpenSsl() {
  static const Loaded loaded = Load();
  if (loaded.trouble.empty()) return loaded.functions;
  throw std::runtime_error(fmt::format(
      "TLS needs OpenSSL 3, which cannot be loaded: {}; install the package libssl3 (Debian, Ubuntu) or openssl-libs (Red Hat) on every host of the job",
      loaded.trouble));
}

}  // namespace warren::tls
