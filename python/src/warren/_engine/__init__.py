"""Calls into librabit: its location, its C functions, and the building blocks of warren.collectives."""
