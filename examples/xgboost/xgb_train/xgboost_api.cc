// Calls of XGBoost's C API.
#include "examples/xgboost/xgb_train/xgboost_api.h"

#include <fmt/format.h>
#include <xgboost/c_api.h>

#include <algorithm>
#include <cstdio>
#include <stdexcept>

namespace warren::xgb_train {
namespace {

// Returns XGBoost's message without the stack trace at its end, which does not help users.
std::string LastError() {
  std::string message = XGBGetLastError();
  message.resize(std::min(message.find("Stack trace:"), message.size()));
  message.resize(message.find_last_not_of(" \n") + 1);
  return message;
}

void Check(int return_code) {
  CheckXgboost(return_code, "XGBoost");
}

bool show_chatter = false;

void Log(const char* message) {
  const std::string_view text = message;
  const bool warning = text.find("WARNING:") != text.npos || text.find("ERROR:") != text.npos;
  if (show_chatter || warning) fmt::print(stderr, "{}\n", text);
}

std::vector<DMatrixHandle> Handles(const std::vector<const DMatrix*>& matrices) {
  std::vector<DMatrixHandle> handles;
  handles.reserve(matrices.size());
  for (const DMatrix* matrix : matrices) handles.push_back(matrix->Handle());
  return handles;
}

}  // namespace

DMatrix::DMatrix(void* handle) : handle_(handle, [](void* owned) { XGDMatrixFree(owned); }) {}

DMatrix::DMatrix(void* handle, std::function<void()> owner)
    : handle_(handle, [owner = std::move(owner)](void* /*owned*/) {}) {}

void Booster::Free::operator()(void* handle) const {
  XGBoosterFree(handle);
}

Booster::Booster(const std::vector<const DMatrix*>& cached) {
  const std::vector<DMatrixHandle> handles = Handles(cached);
  BoosterHandle handle = nullptr;
  Check(XGBoosterCreate(handles.data(), handles.size(), &handle));
  handle_.reset(handle);
}

void Booster::SetParam(const std::string& key, const std::string& value) {
  Check(XGBoosterSetParam(handle_.get(), key.c_str(), value.c_str()));
}

void Booster::Configure() {
  bst_ulong length = 0;
  const char* config = nullptr;
  Check(XGBoosterSaveJsonConfig(handle_.get(), &length, &config));  // configures the booster first
}

void Booster::UpdateOneRound(int round, const DMatrix& train) {
  Check(XGBoosterUpdateOneIter(handle_.get(), round, train.Handle()));
}

std::string Booster::Evaluate(int round, const std::vector<const DMatrix*>& sets,
                              const std::vector<std::string>& names) {
  std::vector<DMatrixHandle> handles = Handles(sets);
  std::vector<const char*> name_pointers;
  name_pointers.reserve(names.size());
  for (const std::string& name : names) name_pointers.push_back(name.c_str());
  const char* line = nullptr;
  Check(XGBoosterEvalOneIter(handle_.get(), round, handles.data(), name_pointers.data(), handles.size(),
                             &line));
  return line;
}

std::vector<float> Booster::Predict(const DMatrix& data, const PredictOptions& options) {
  const float* values = nullptr;
  bst_ulong count = 0;
  if (options.ntree_limit != 0) {
    Check(XGBoosterPredict(handle_.get(), data.Handle(), options.margin ? 1 : 0,
                           static_cast<unsigned>(options.ntree_limit), 0, &count, &values));
    return {values, values + count};
  }
  const std::string config = fmt::format(
      R"({{"type": {}, "training": false, "iteration_begin": {}, "iteration_end": {}, "strict_shape": false}})",
      options.margin ? 1 : 0, options.iteration_begin, options.iteration_end);
  const bst_ulong* shape = nullptr;
  bst_ulong dimensions = 0;
  Check(XGBoosterPredictFromDMatrix(handle_.get(), data.Handle(), config.c_str(), &shape, &dimensions,
                                    &values));
  count = 1;
  for (bst_ulong i = 0; i < dimensions; ++i) count *= shape[i];
  return {values, values + count};
}

std::vector<std::string> Booster::Dump(const std::string& feature_map, bool stats,
                                       const std::string& format) {
  bst_ulong count = 0;
  const char** trees = nullptr;
  Check(XGBoosterDumpModelEx(handle_.get(), feature_map.c_str(), stats ? 1 : 0, format.c_str(), &count,
                             &trees));
  return {trees, trees + count};
}

void Booster::LoadModel(std::string_view bytes) {
  Check(XGBoosterLoadModelFromBuffer(handle_.get(), bytes.data(), bytes.size()));
}

std::string Booster::SaveModel(ModelFormat format) {
  const char* const config = format == ModelFormat::kJson ? R"({"format": "json"})" : R"({"format": "ubj"})";
  bst_ulong length = 0;
  const char* bytes = nullptr;
  Check(XGBoosterSaveModelToBuffer(handle_.get(), config, &length, &bytes));
  return {bytes, length};
}

std::string Booster::Attribute(const std::string& name) const {
  const char* value = nullptr;
  int found = 0;
  Check(XGBoosterGetAttr(handle_.get(), name.c_str(), &value, &found));
  return found ? value : "";
}

void Booster::SetAttribute(const std::string& name, const std::string& value) {
  Check(XGBoosterSetAttr(handle_.get(), name.c_str(), value.c_str()));
}

void Booster::RemoveAttribute(const std::string& name) {
  Check(XGBoosterSetAttr(handle_.get(), name.c_str(), nullptr));
}

void CheckXgboost(int return_code, std::string_view doing) {
  if (return_code != 0) throw std::runtime_error(fmt::format("{}: {}", doing, LastError()));
}

std::string XgboostVersion() {
  int major = 0;
  int minor = 0;
  int patch = 0;
  XGBoostVersion(&major, &minor, &patch);
  return fmt::format("{}.{}.{}", major, minor, patch);
}

void ConfigureLog(int verbosity) {
  show_chatter = verbosity >= 2;
  Check(XGBRegisterLogCallback(Log));
  Check(XGBSetGlobalConfig(fmt::format(R"({{"verbosity": {}}})", verbosity).c_str()));
}

}  // namespace warren::xgb_train
