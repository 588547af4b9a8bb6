"""The kernels that fit fields, their own source run on the host, against the fit of the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.in_the_place_of_cupy import run_on_host
from tests.registration.patches.test_motion_patches import bent
from xcorr_app.gpu.field import run
from xcorr_app.registration.motion.halved_frames import halved_image
from xcorr_app.registration.motion.smoothed_frames import smoothed
from xcorr_app.registration.patches.device_fit import DeviceFit
from xcorr_app.registration.patches.field_fit import FieldReference, fitted
from xcorr_app.registration.patches.field_nodes import Nodes
from xcorr_app.registration.warping.grid import Grid, with_edges


@pytest.fixture
def device(monkeypatch, host_builds):
    run_on_host(monkeypatch, host_builds, run)


def problem(shape, patch, snr, halves, seed=3):
    """Frames and their reference at each size, nodes, and displacements and fields to begin with."""
    frames, shifts = bent(seed, snr, count=3, shape=shape, amplitude=2.0, rigid=18.0)
    images = [smoothed(frame - frame.mean(), 1.0) for frame in frames]
    grid = Grid.of(shape, patch, patch / 2)
    nodes = Nodes(with_edges(grid.rows), with_edges(grid.columns), shape, np)
    levels = [nodes, nodes.halved(np)][: 1 + halves]
    sizes = [[image, halved_image(image)][: 1 + halves] for image in images]
    rows, columns = (np.rint(at).astype(int) for at in (nodes.rows, nodes.columns))
    truth = -shifts[:, :, rows][..., columns]
    moved = truth.mean(axis=(2, 3))
    return levels, sizes, moved, truth + np.random.default_rng(seed).normal(size=truth.shape) * 0.5


@pytest.mark.parametrize(
    ("shape", "patch", "halves"), [((121, 140), 40, 1), ((97, 82), 32, 0), ((200, 90), 64, 1), ((64, 64), 64, 0)]
)
@pytest.mark.parametrize("own", [False, True])
def test_the_fit_is_that_of_the_cpu(device, shape, patch, halves, own):
    levels, sizes, moved, starts = problem(shape, patch, 2.0, halves)
    shared = [FieldReference(image, nodes) for image, nodes in zip(sizes[0], levels, strict=True)]
    references = [
        [
            FieldReference(1.1 * image, nodes, known)
            for image, nodes, known in zip(sizes[0], levels, shared, strict=True)
        ]
        if own and t
        else shared
        for t in range(3)
    ]
    expected = [fitted(*each) for each in zip(references, sizes, starts, moved, strict=True)]
    of_levels = list(zip(*references, strict=True)) if own else [[each] for each in shared]
    frames = [np.stack(each) for each in zip(*sizes, strict=True)]
    found = DeviceFit(levels, np).fitted(of_levels, frames, starts, moved)
    np.testing.assert_allclose(found.fields, [each.field for each in expected], atol=1e-3)
    np.testing.assert_allclose(found.sigma, [each.sigma for each in expected], rtol=1e-2)
    np.testing.assert_allclose(found.scores, [each.score for each in expected], atol=1e-5)
    np.testing.assert_allclose(found.expected, [each.bend for each in expected], rtol=1e-2)
    np.testing.assert_array_equal(found.settled, [each.settled for each in expected])
