"""Shadows scikit-learn if it is installed: XGBoost then does without, and is imported in a quarter of the time."""
raise ImportError("scikit-learn is hidden from tests that do not use it")
