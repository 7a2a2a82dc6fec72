"""The parts of warren.lightgbm."""
