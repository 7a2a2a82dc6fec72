// The worlds in which random programs run: ranks on one host, on several, or with TCP only.
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "rabit_engine/base/settings.h"

namespace warren::testing {

/// The placement of ranks on hosts.
enum class Places {
  kOneHost,
  kTcp,
  kHosts,      ///< hosts of 3 ranks and of 1, alternating
  kScattered,  ///< even ranks on one host, odd ranks on another
};
inline const char* NameOf(Places places) {
  constexpr std::array kNames{"OneHost", "Tcp", "Hosts", "Scattered"};
  return kNames[static_cast<std::size_t>(places)];
}

inline std::function<Settings(int)> SettingsOf(Places places) {
  return [places](int rank) {
    Settings settings;
    if (places == Places::kTcp) settings.shared_memory = SharedMemory::kOff;
    if (places == Places::kHosts)
      settings.host_group = std::to_string(rank / 4 * 2 + (rank % 4 == 3 ? 1 : 0));
    if (places == Places::kScattered) settings.host_group = std::to_string(rank % 2);
    return settings;
  };
}

struct WorldCase {
  Places places;
  int size;
};
inline std::vector<WorldCase> EveryWorld() {
  std::vector<WorldCase> cases;
  for (int size = 1; size <= 9; ++size) cases.push_back({Places::kOneHost, size});
  for (const int size : {2, 3, 5, 8}) cases.push_back({Places::kTcp, size});
  for (const int size : {4, 7, 9}) cases.push_back({Places::kHosts, size});
  for (const int size : {4, 7}) cases.push_back({Places::kScattered, size});
  return cases;
}
inline std::string NameOfCase(const ::testing::TestParamInfo<WorldCase>& info) {
  return NameOf(info.param.places) + std::to_string(info.param.size);
}

}  // namespace warren::testing
