// Configures boosters from parameters.
#include "examples/xgboost/xgb_train/booster_setup.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>

namespace warren::xgb_train {
namespace {

bool IsWordChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool MentionsWord(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    const bool starts = at == 0 || !IsWordChar(text[at - 1]);
    const bool ends = end == text.size() || !IsWordChar(text[end]);
    if (starts && ends) return true;
  }
  return false;
}

bool MentionsQuoted(std::string_view text, const std::string& value) {
  return text.find("`" + value + "`") != text.npos || text.find("'" + value + "'") != text.npos;
}

// Whether `text` quotes the end of `value`: XGBoost rejects "fast" as a number with a message about 'ast',
// because it takes the f for a suffix.
bool QuotesEndOf(std::string_view text, std::string_view value) {
  const size_t begin = text.find('\'') + 1;
  const size_t end = text.find('\'', begin);
  return begin != 0 && end != text.npos && end > begin && value.ends_with(text.substr(begin, end - begin));
}

// Returns the setting that an XGBoost message is about, or nullptr. XGBoost names the parameter or its value,
// but not the place where the user set it.
const Setting* FindCulprit(std::string_view message, const std::vector<Setting>& settings) {
  for (const Setting& setting : settings) {
    if (MentionsWord(message, setting.key)) return &setting;
  }
  for (const Setting& setting : settings) {
    if (MentionsQuoted(message, setting.value) || MentionsQuoted(message, setting.key)) return &setting;
  }
  for (const Setting& setting : settings) {
    if (QuotesEndOf(message, setting.value)) return &setting;
  }
  return nullptr;
}

void ConfigureOrBlame(Booster& booster, const std::vector<Setting>& settings) {
  try {
    booster.Configure();
  } catch (const std::runtime_error& error) {
    const Setting* culprit = FindCulprit(error.what(), settings);
    if (culprit == nullptr) throw;
    throw ConfigError(
        fmt::format("{}: found {} = {}; {}", culprit->origin, culprit->key, culprit->value, error.what()));
  }
}

// XGBoost 1.7 reads past the end of a truncated UBJSON model, so such a model must not reach it. JSON and
// UBJSON models are a single object; the old binary format has no such end mark.
bool IsCutOff(std::string_view model) {
  const size_t last = model.find_last_not_of(" \t\r\n");
  return model.front() == '{' && model[last] != '}';
}

// XGBoost seeds its generator for models that start empty, but not for loaded ones. Configuring an empty
// model first gives every booster the same generator state.
void SeedRandomNumbers(const std::vector<Setting>& settings) {
  Booster empty;
  empty.SetParam("num_feature", "1");  // XGBoost cannot configure a model without features
  for (const Setting& setting : settings) {
    if (setting.key == "seed" || setting.key == "random_state") empty.SetParam(setting.key, setting.value);
  }
  ConfigureOrBlame(empty, settings);
}

}  // namespace

Booster MakeBooster(const Parameters& parameters, const std::string& model,
                    const std::vector<const DMatrix*>& cached) {
  SeedRandomNumbers(parameters.booster);
  Booster booster(cached);
  if (!model.empty()) booster.LoadModel(model);
  booster.SetParam("validate_parameters", "1");  // warn about unused parameters, which are usually typos
  booster.SetParam("verbosity", std::to_string(parameters.verbosity));
  // Random choices depend on seed and round only, so a resumed run makes the same ones.
  booster.SetParam("seed_per_iteration", "1");
  for (const Setting& setting : parameters.booster) booster.SetParam(setting.key, setting.value);
  ConfigureOrBlame(booster, parameters.booster);
  return booster;
}

std::string ReadModel(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw std::runtime_error(fmt::format("{}: is a folder, expected a model file", path));
  }
  std::ifstream file(path, std::ios::binary);
  if (!file)
    throw std::runtime_error(fmt::format("{}: cannot read the model: {}", path, std::strerror(errno)));
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.empty()) throw std::runtime_error(fmt::format("{}: is empty, expected a model", path));
  if (IsCutOff(bytes))
    throw std::runtime_error(fmt::format("{}: is truncated, expected a whole model", path));
  return bytes;
}

std::string ReadModelForAll(const std::string& path, Communicator& job) {
  std::string bytes;
  if (job.IsRoot() && !path.empty()) bytes = ReadModel(path);
  job.Broadcast(bytes);
  return bytes;
}

}  // namespace warren::xgb_train
