"""The kernel behind standard errors, on the host, against the array operations that define it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.host_device import guarded
from tests.kernels.in_the_place_of_cupy import run_on_host
from xcorr_app.correlation.subpixel import quadratic_terms
from xcorr_app.gpu.peaks import tile_scatter
from xcorr_app.registration.standard_error.reference_slopes import ReferenceSlopes
from xcorr_app.registration.standard_error.uncertainty import AT_EDGES, peak_shapes

NEAR = np.array([[0.5, 0.7, 0.5], [0.7, 1.0, 0.7], [0.5, 0.7, 0.5]])


def of_edges(shape, near):
    """What is added to the scatter afterwards."""
    d, e, f = quadratic_terms(near)[:, 3:].T
    hessian = np.stack([2 * d, e, e, 2 * f], axis=1).reshape(-1, 2, 2)
    return hessian @ np.diag(AT_EDGES / np.array(shape)) ** 2 @ hessian


@pytest.mark.parametrize("shape", [(61, 97), (233, 50)])
@pytest.mark.parametrize("dtype", ["float32", "uint16"])
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_scatter_among_tiles(host_builds, monkeypatch, rng, shape, dtype, each, weighted):
    peaks = np.array([(0, 0), (-5, 13), (9, -2), (shape[0], 0), (30, -40)])
    kernel = None
    if weighted:
        kernel = np.outer(*(2 * [np.exp(-(np.arange(-12.0, 13) ** 2) / 9)]))
    frames = 1000 + 90 * rng.normal(size=(len(peaks), *shape))
    frames = (np.rint(frames) if dtype == "uint16" else frames - 1000).astype(dtype)
    count = len(peaks) if each else 1
    images = rng.normal(size=(count, *shape)).astype(np.float32)
    references = ReferenceSlopes(images, kernel, rng.uniform(0.3, 0.9, count))
    shifts = peaks + rng.uniform(-0.5, 0.5, peaks.shape)
    near = np.tile(NEAR, (len(peaks), 1, 1))
    widening = references.widening()[:, None, None]
    expected = peak_shapes(references, frames, peaks, shifts, near).scatter / widening - of_edges(shape, near)
    inside = references.tiles.inside(peaks, shape).sum(axis=(1, 2))

    run_on_host(monkeypatch, host_builds, tile_scatter)
    of_reference = tuple(guarded(np.asarray(each)) for each in (references.factors, references.sums, references.noise))
    grid = references.tiles.grid
    scatter = tile_scatter.tile_scatter(guarded(frames), of_reference, grid, peaks, shifts - peaks)
    known = inside >= 6
    assert known.sum() >= 3
    np.testing.assert_allclose(scatter[known], expected[known], rtol=2e-3, atol=2e-4 * np.abs(expected[0]).max())
    assert np.isinf(scatter[inside == 0]).all()
