// Names and descriptions of saved models.
#include "examples/xgboost/xgb_train/saved_models.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <functional>
#include <map>
#include <string_view>

#include "examples/xgboost/xgb_train/digest.h"

namespace warren::xgb_train {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".model";
constexpr size_t kLeastDigits = 4;

std::optional<int> RoundOf(std::string_view name) {
  if (!name.ends_with(kSuffix)) return std::nullopt;
  name.remove_suffix(kSuffix.size());
  int round = 0;
  const auto [stop, error] = std::from_chars(name.data(), name.data() + name.size(), round);
  const bool whole = error == std::errc() && stop == name.data() + name.size();
  return whole && name.size() >= kLeastDigits && round > 0 ? std::optional(round) : std::nullopt;
}

bool DecidesTrees(const std::string& key) {
  constexpr std::array<std::string_view, 4> kDisplayOnly{"eval_metric", "disable_default_eval_metric",
                                                         "nthread", "n_jobs"};
  return std::find(kDisplayOnly.begin(), kDisplayOnly.end(), key) == kDisplayOnly.end();
}

uint64_t DigestOf(std::string_view bytes) {
  Digest digest;
  digest.Add(bytes);
  return digest.value();
}

}  // namespace

std::string SavedModelPath(const std::string& folder, int round) {
  return (fs::path(folder) / fmt::format("{:04}{}", round, kSuffix)).string();
}

bool IsSavedModelName(const std::string& name) {
  return RoundOf(name).has_value();
}

std::vector<int> SavedRounds(const std::string& folder) {
  std::vector<int> rounds;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (const auto round = RoundOf(entry.path().filename().string())) rounds.push_back(*round);
  }
  std::sort(rounds.begin(), rounds.end(), std::greater<>());
  return rounds;
}

bool StartsAfreshWhenSaved(const Parameters& parameters) {
  return std::any_of(parameters.booster.begin(), parameters.booster.end(), [](const Setting& setting) {
    return setting.key == "subsample" || setting.key.starts_with("colsample_by") ||
           setting.key == "feature_selector";
  });
}

std::string DescribeRun(const Parameters& parameters, uint64_t data_digest, const std::string& model_in_bytes,
                        const std::string& xgboost_version) {
  std::map<std::string, std::string> sorted;
  for (const Setting& setting : parameters.booster) {
    if (DecidesTrees(setting.key)) sorted[setting.key] = setting.value;
  }
  std::string text = fmt::format("xgboost={}\ndata={:016x}\nmodel_in={:016x}\n", xgboost_version, data_digest,
                                 DigestOf(model_in_bytes));
  if (StartsAfreshWhenSaved(parameters)) text += fmt::format("save_period={}\n", parameters.save_period);
  for (const auto& [key, value] : sorted) text += fmt::format("{}={}\n", key, value);
  return text;
}

}  // namespace warren::xgb_train
