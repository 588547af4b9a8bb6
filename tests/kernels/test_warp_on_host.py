"""The kernel that warps frames, its own source run on the host, against SciPy in float64 and the answer of the CPU."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from tests.registration.moving.moving_definition import random_frame
from xcorr_app.gpu.resample.problem import PIXEL_TYPES
from xcorr_app.registration.warping.device_warp import spline_coefficients, splines_of, warped
from xcorr_app.registration.warping.grid import pixel_bases

ORDERS = {0: "nearest", 1: "linear", 3: "cubic"}


def random_matrices(rng, count):
    matrices = np.tile(np.eye(3), (count, 1, 1))
    matrices[:, :2, :2] += rng.normal(size=(count, 2, 2)) * 0.15
    matrices[:, :2, 2] = rng.uniform(-4, 4, (count, 2))
    return matrices


def random_fields(rng, count, shape, grid):
    nodes = []
    for n, size in zip(grid, shape, strict=True):
        even = np.linspace(0, size - 1.0, n) if n > 1 else np.array([size / 2.0])
        even[1:-1] += rng.uniform(-0.2, 0.2, max(n - 2, 0)) * size / n
        nodes.append(even)
    return rng.normal(size=(count, *grid, 2)) * 2, tuple(nodes)


def seen_at(frame, places, order, outside):
    """The frame (float64) at places (2, Y, X) by SciPy; places beyond the edge are the edge's, or `outside`."""
    limit = np.array(frame.shape)[:, None, None] - 1
    held = np.clip(places, 0, limit)
    frame = frame.astype(np.float64)
    if order == 3:
        values = ndimage.map_coordinates(frame, held, order=3, mode="mirror")
    else:
        values = ndimage.map_coordinates(frame, held, order=order, mode="nearest")
    if outside is not None:
        inside = ((places >= -1e-3) & (places <= limit + 1e-3)).all(axis=0)
        values = np.where(inside, values, outside)
    return values


def check(found, frames, places, order, outside, away=None):
    """Compare with the definition where rounding decides nothing: not next to an edge, or half way between pixels."""
    dtype = frames.dtype
    for image, frame, place in zip(found, frames, places, strict=True):
        expected = seen_at(frame, place, order, outside)
        limit = np.array(frame.shape)[:, None, None] - 1
        near_edge = (np.minimum(abs(place + 1e-3), abs(place - limit - 1e-3)) < 1e-4).any(axis=0)
        tie = (abs(place % 1 - 0.5) < 1e-4).any(axis=0) if order == 0 else np.zeros(frame.shape, bool)
        sure = ~near_edge & ~tie
        assert sure.mean() > 0.8
        if dtype.kind == "f":
            tolerance = {2: 2e-3, 4: 4e-5, 8: 4e-5 if away else 1e-11}[dtype.itemsize]
            scale = np.abs(frame.astype(float)).max()
            np.testing.assert_allclose(image.astype(float)[sure], expected[sure], rtol=0, atol=tolerance * scale)
        else:
            limits = np.iinfo(dtype)
            held = np.clip(expected, limits.min, limits.max)
            precision = (4e-5 if away or dtype.itemsize < 4 else 1e-9) * float(limits.max)
            assert np.abs(image - held)[sure].max() <= 0.5 + precision


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", PIXEL_TYPES)
@pytest.mark.parametrize("outside", [None, 7])
def test_matrices(device, outside, dtype, order):
    rng = np.random.default_rng(order)
    for shape in ((19, 45), (33, 31), (1, 1)):
        frames = np.stack([random_frame(shape, dtype, seed) for seed in range(3)])
        matrices = random_matrices(rng, 3)
        found = warped(frames, matrices, order, outside)
        assert found.dtype == frames.dtype
        if shape == (1, 1) and outside is not None:
            continue  # hardly a place is inside
        y, x = np.mgrid[: shape[0], : shape[1]]
        places = np.einsum("tij,jyx->tiyx", matrices[:, :2], np.stack([y, x, np.ones(shape)]))
        check(found, frames, places, order, outside)
    assert set(device) <= {"warp_frames", "spline_frames"}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int32", "float16", "float32", "float64"])
@pytest.mark.parametrize("outside", [None, 7])
def test_fields(device, outside, dtype, order):
    rng = np.random.default_rng(order + 5)
    for shape, grid in (((19, 45), (5, 7)), ((41, 22), (2, 3)), ((30, 17), (1, 4))):
        frames = np.stack([random_frame(shape, dtype, seed) for seed in range(2)])
        fields, nodes = random_fields(rng, 2, shape, grid)
        found = warped(frames, splines_of(fields, nodes, shape), order, outside)
        rows, columns = pixel_bases(*nodes, shape)
        places = np.stack(np.mgrid[: shape[0], : shape[1]]) - np.einsum("yi,tijc,xj->tcyx", rows, fields, columns)
        check(found, frames, places, order, outside, away=True)


@pytest.mark.parametrize("shape", [(45, 130), (5, 70), (40, 1), (13, 12)])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_coefficients_are_those_of_the_splines(device, dtype, shape):
    frames = (np.random.default_rng(3).random((2, *shape)) * 100).astype(dtype)
    expected = frames.astype(np.float64)
    for axis in (1, 2):
        expected = ndimage.spline_filter1d(expected, order=3, axis=axis, mode="mirror")
    np.testing.assert_allclose(spline_coefficients(frames), expected, atol=2e-4)
