"""Checks with exact fractions the grid to which warren.xgboost rounds gradients, and the bits that their sums need."""
import fractions
import math

import numpy as np

from warren._xgboost.same_model.exact import Grid, bits_of_sums
from warren.data import _peers


def test_of_sums(random):
    """Sums of rounded values are exact, and thus the same in any order; rounding changes a value by at most half a unit."""
    rows = int(random.choice([1, 2, 100, 5000]))
    values = (random.randn(rows) * np.exp(random.choice([0, 5, 20, 60]) * random.randn(rows)))
    values = np.clip(values, -3e38, 3e38).astype("float32")
    rounded, _ = Grid({}, lambda margins, _: (values, np.ones(rows)), rows, _peers.Alone())(None, None)
    true = sum(map(fractions.Fraction, rounded.tolist()))
    for _ in range(3):
        order = random.permutation(rows)
        total = 0.0
        for value in rounded[order].tolist():
            total += value
        assert fractions.Fraction(total) == true, (rows, total)
    unit = math.ldexp(1.0, math.frexp(float(np.abs(values).max()) * rows)[1] - 52)
    assert (np.abs(rounded.astype("float64") - values) <= unit / 2).all()
    exponent, size = bits_of_sums(rounded)
    assert size == 0 or math.log2(size) < 53 + exponent


def test_of_bits(random):
    """bits_of_sums returns the exponent of the greatest power of two that divides all values, and the sum of their magnitudes. If all are
    0, it returns (1024, 0)."""
    values = (random.randint(-50, 50, 20) * 2.0 ** random.randint(-149, 60, 20)).astype("float32")
    values[random.rand(20) < .2] = random.choice([0, 1e-45, -0.0, 1.17549435e-38])
    exponent, size = bits_of_sums(values)
    others = [fractions.Fraction(value) for value in values.tolist() if value]
    if not others:
        assert (exponent, size) == (1024, 0)
        return
    unit = fractions.Fraction(2) ** exponent
    assert all((value / unit).denominator == 1 for value in others) and any((value / unit / 2).denominator > 1 for value in others)
    assert abs(size - float(sum(map(abs, others)))) <= 1e-12 * size


for seed in range(300):
    test_of_sums(np.random.RandomState(seed))
    test_of_bits(np.random.RandomState(seed))
