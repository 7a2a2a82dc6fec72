// Trains a small model with XGBoost, without rabit's API, and writes it to argv[1]. beside_xgboost_test.py
// compares the model with those of beside_xgboost.cc. xgboost_seam_test.py runs this program linked with
// librabit_xgboost.
#include "tests/rabit_engine/api/train_small_model.h"

int main(int argc, char* argv[]) {
  return argc > 1 && TrainSmallModel(argv[1]) ? 0 : 1;
}
