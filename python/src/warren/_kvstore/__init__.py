"""The parts of warren.kvstore."""
