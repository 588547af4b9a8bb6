"""Sums over many rows keep the digits of float64."""

import numpy as np

from xcorr_app.correlation.overlap import _sums_of_rows


def test_sums_of_many_rows_of_float32(xp, rng):
    """One after the other in float32 they would be off by a hundred thousandth."""
    values = rng.uniform(60_000, 65_535, (16 * 4096 + 5, 3)).astype(np.float32)
    exact = values.astype(np.float64)
    sums, squares = (found.get() if xp is not np else found for found in _sums_of_rows(xp.asarray(values)))
    np.testing.assert_allclose(sums, exact.sum(axis=0), rtol=2e-7)
    np.testing.assert_allclose(squares, (exact**2).sum(axis=0), rtol=2e-7)
