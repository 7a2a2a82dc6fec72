"""Hides an installed scikit-learn, which XGBoost does not require. Importing XGBoost then takes a quarter of the time."""
raise ImportError("scikit-learn is hidden from tests that do not use it")
