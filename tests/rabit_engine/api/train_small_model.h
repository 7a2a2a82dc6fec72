// Trains a small model with XGBoost's C API and writes it to a file. If this fails, prints XGBoost's error
// and returns false.
#pragma once

#include <xgboost/c_api.h>

#include <cstdio>
#include <string>
#include <vector>

inline bool TrainSmallModel(const std::string& path) {
  constexpr int kRows = 500;
  constexpr int kColumns = 5;
  std::vector<float> values;
  std::vector<float> labels;
  unsigned state = 1;
  for (int i = 0; i < kRows; ++i) {
    float label = 0;
    for (int k = 0; k < kColumns; ++k) {
      state = state * 1664525u + 1013904223u;
      values.push_back(static_cast<float>(state >> 24));
      label += values.back() * static_cast<float>(k);
    }
    labels.push_back(label > 1275 ? 1.0f : 0.0f);
  }
  DMatrixHandle data = nullptr;
  BoosterHandle booster = nullptr;
  bool good = XGDMatrixCreateFromMat(values.data(), kRows, kColumns, -1, &data) == 0 &&
              XGDMatrixSetFloatInfo(data, "label", labels.data(), kRows) == 0 &&
              XGBoosterCreate(&data, 1, &booster) == 0 &&
              XGBoosterSetParam(booster, "objective", "binary:logistic") == 0 &&
              XGBoosterSetParam(booster, "tree_method", "hist") == 0 &&
              XGBoosterSetParam(booster, "nthread", "1") == 0;
  for (int round = 0; good && round < 5; ++round) good = XGBoosterUpdateOneIter(booster, round, data) == 0;
  good = good && XGBoosterSaveModel(booster, path.c_str()) == 0;
  if (!good) std::fprintf(stderr, "XGBoost: %s\n", XGBGetLastError());
  XGBoosterFree(booster);
  XGDMatrixFree(data);
  return good;
}
