"""Calls into librabit: where it is, its C functions, and the objects that warren.collectives is made of."""
