// Trains a small model with XGBoost alone and writes it to argv[1], for comparison with the models of
// beside_xgboost.cc.
#include "tests/rabit_engine/api/train_small_model.h"

int main(int argc, char* argv[]) {
  return argc > 1 && TrainSmallModel(argv[1]) ? 0 : 1;
}
