// Trains a small model with XGBoost alone and writes it to argv[1]; beside_xgboost.cc must give the same.
#include "tests/rabit_engine/api/train_small_model.h"

int main(int argc, char* argv[]) {
  return argc > 1 && TrainSmallModel(argv[1]) ? 0 : 1;
}
