"""The parts of warren.xgboost."""
