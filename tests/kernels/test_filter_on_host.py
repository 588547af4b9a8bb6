"""The filter kernels' own source, run on the host, against scipy.ndimage in float64; outputs poisoned and guarded."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from tests.kernels.filter_definition import TYPES, assert_filtered, random_images, random_taps
from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from xcorr_app.gpu.stencil.problem import BOUNDARIES, FilterProblem, taps_argument
from xcorr_app.gpu.stencil.reuse import filter_launch

SHAPES = {"reuse": (3, 5), "reuse_wide": (6, 9), "exchange": (4, 8)}
"""A filter for every kernel."""

NO_COUNT = SimpleNamespace(ctypes=SimpleNamespace(data=None))
"""Null pointer."""


def filtered(
    folder,
    images,
    taps,
    boundary="reflect",
    *,
    kernel="auto",
    outside=0.0,
    origin=(0, 0),
    result_type=None,
    guard=True,
    clipped=NO_COUNT,
    double_sums=False,
    clips=True,
    **options,
):
    """What `filtered_on_device` does, without a device."""
    problem = FilterProblem(images.shape[-2:], taps.shape, len(images), boundary, origin)
    types = {"image_type": images.dtype.name, "result_type": result_type or images.dtype.name}
    launch = filter_launch(problem, kernel, **types, double_sums=double_sums, clips=clips, **options)
    poison = np.nan if np.dtype(types["result_type"]).kind == "f" else 99
    results = guarded(np.full((len(images), *problem.result_shape), poison, types["result_type"]))
    inputs = guarded(images) if guard else images
    values = taps_argument(taps, outside, images.dtype.name, double_sums=double_sums)
    run_kernel(folder, launch, (inputs, results, clipped, values), launch.extra)
    assert guards_are_whole(results)
    return results


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("kernel", SHAPES)
def test_every_boundary(host_builds, kernel, boundary):
    taps = random_taps(SHAPES[kernel])
    for shape in ((2, 21, 132), (1, 9, 133)):
        images = random_images(shape, "float32")
        result = filtered(host_builds, images, taps, boundary, kernel=kernel, outside=0.75)
        assert_filtered(result, images, taps, boundary, 0.75)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("same", [True, False])
@pytest.mark.parametrize("kernel", ["reuse", "reuse_wide"])
def test_every_type(host_builds, kernel, dtype, same):
    """A constant that no integer can hold is used as it is."""
    images, taps = random_images((2, 10, 136), dtype), random_taps((4, 7))
    options = {"kernel": kernel, "outside": 17.3, "result_type": dtype if same else "float32"}
    assert_filtered(filtered(host_builds, images, taps, "constant", **options), images, taps, "constant", 17.3)


@pytest.mark.parametrize("kernel", SHAPES)
def test_nan_and_infinity_stay_within_their_footprint(host_builds, kernel):
    rows, columns = SHAPES[kernel]
    images, taps = random_images((1, 30, 150), "float32"), np.ones(SHAPES[kernel], "float32")
    images[0, 12, 70], images[0, 25, 127] = np.nan, np.inf
    result = filtered(host_builds, images, taps, kernel=kernel)
    reached = np.zeros((30, 150), bool)
    for y, x in ((12, 70), (25, 127)):
        reached[y - rows + 1 + rows // 2 : y + rows // 2 + 1, x - columns + 1 + columns // 2 : x + columns // 2 + 1] = 1
    np.testing.assert_array_equal(~np.isfinite(result[0]), reached)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
@pytest.mark.parametrize("kernel", SHAPES)
def test_integers_are_rounded_half_to_even_and_clipped(host_builds, kernel, dtype):
    limits = np.iinfo(dtype)
    images = np.array([limits.min, limits.max, 1, 2, 3, 5, 254], dtype).reshape(1, 1, 7)
    for gain in (0.5, 1.5, -1.0, 3e9):
        taps = np.zeros(SHAPES[kernel], "float32")
        taps[taps.shape[0] // 2, taps.shape[1] // 2] = gain
        exact = np.rint(images * np.float64(gain))
        expected, clipped = np.clip(exact, limits.min, limits.max), guarded(np.array([1000], np.uint64))
        result = filtered(host_builds, images, taps, kernel=kernel, clipped=clipped)
        np.testing.assert_array_equal(result, expected)
        assert clipped[0] == 1000 + np.count_nonzero(exact != expected)
        assert guards_are_whole(clipped)
