// Trains a small model with XGBoost and nothing else, and writes it to argv[1]: what beside_xgboost.cc has to
// equal.
#include "tests/rabit_engine/api/train_small_model.h"

int main(int argc, char* argv[]) {
  return argc > 1 && TrainSmallModel(argv[1]) ? 0 : 1;
}
