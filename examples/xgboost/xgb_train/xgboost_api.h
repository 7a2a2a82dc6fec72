// XGBoost's C API with classes and exceptions instead of handles and return codes.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace warren::xgb_train {

/// All functions throw std::runtime_error with XGBoost's message, without its stack trace.

class DMatrix {
 public:
  DMatrix() = default;
  /// Takes ownership of the handle.
  explicit DMatrix(void* handle);
  /// Refers to a handle that is owned elsewhere and is valid while `owner` exists.
  DMatrix(void* handle, std::function<void()> owner);

  void* Handle() const { return handle_.get(); }

 private:
  std::shared_ptr<void> handle_;
};

enum class ModelFormat { kJson, kUbjson };

/// Whether to predict margins, and with which rounds; ntree_limit, if set, overrides the iteration range.
struct PredictOptions {
  bool margin = false;
  int iteration_begin = 0;
  int iteration_end = 0;
  int ntree_limit = 0;
};

class Booster {
 public:
  /// XGBoost keeps the predictions for the `cached` matrices up to date; these matrices must outlive the
  /// booster.
  explicit Booster(const std::vector<const DMatrix*>& cached = {});

  void SetParam(const std::string& key, const std::string& value);
  /// Makes XGBoost check the parameters now instead of in the first round.
  void Configure();
  void UpdateOneRound(int round, const DMatrix& train);
  /// Returns the line XGBoost's command line shows: `[round]\tname-metric:value...`.
  std::string Evaluate(int round, const std::vector<const DMatrix*>& sets,
                       const std::vector<std::string>& names);
  std::vector<float> Predict(const DMatrix& data, const PredictOptions& options);
  std::vector<std::string> Dump(const std::string& feature_map, bool stats, const std::string& format);

  /// Loads JSON, UBJSON and XGBoost's old binary models.
  void LoadModel(std::string_view bytes);
  std::string SaveModel(ModelFormat format);
  std::string Attribute(const std::string& name) const;  ///< empty if not set
  void SetAttribute(const std::string& name, const std::string& value);
  void RemoveAttribute(const std::string& name);

 private:
  struct Free {
    void operator()(void* handle) const;
  };
  std::unique_ptr<void, Free> handle_;
};

/// Throws if a C API call returned non-zero; `doing` describes the attempted operation for the message.
void CheckXgboost(int return_code, std::string_view doing);

/// Returns e.g. "1.7.4".
std::string XgboostVersion();

/// Sets XGBoost's verbosity (0 to 3) and sends its messages to standard error. Below 2, only warnings and
/// errors are shown: messages that XGBoost prints at any verbosity ("Load part of data 0 of 3 parts") do not
/// help a user and come from every worker.
void ConfigureLog(int verbosity);

}  // namespace warren::xgb_train
