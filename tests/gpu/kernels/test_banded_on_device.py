"""Separable taps on tensor cores, on the device against scipy.ndimage in float64; outputs poisoned, every boundary."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import ndimage

from tests.device import NEEDS_DEVICE
from tests.kernels.filter_definition import random_images
from tests.kernels.separable_definition import assert_separable, gaussian, random_terms, separable_by_definition
from xcorr_app.gpu.stencil.problem import BOUNDARIES
from xcorr_app.gpu.stencil.separable_run import separable_on_device

pytestmark = NEEDS_DEVICE


@pytest.fixture(scope="module")
def cupy():
    found = pytest.importorskip("cupy")
    if int(found.cuda.Device().compute_capability) < 80:
        pytest.skip("tensor cores of compute capability 8.0 are needed")
    return found


def check(cupy, images, terms, boundary="reflect", outside=0.0, origin=(0, 0), **options):
    expected = separable_by_definition(images, terms, boundary, outside, origin)
    out = cupy.full(expected.shape, cupy.nan, "float32")
    options |= {"boundary": boundary, "outside": outside, "origin": origin, "out": out, "kernel": "banded"}
    separable_on_device(cupy.asarray(images), terms, **options)
    assert_separable(out.get(), images, terms, boundary, outside, origin)


@pytest.mark.parametrize("boundary", BOUNDARIES)
@pytest.mark.parametrize("taps", [(5, 8), (17, 33), (40, 12), (65, 65)])
def test_every_boundary(cupy, taps, boundary):
    for shape in ((2, 131, 260), (1, 107, 1029)):
        check(cupy, random_images(shape, "float32"), random_terms(taps), boundary, 0.5)


@pytest.mark.parametrize("rows", range(2, 66, 7))
def test_lengths_of_taps(cupy, rows):
    images = random_images((1, 170, 500), "float32")
    check(cupy, images, random_terms((rows, 67 - rows)))
    check(cupy, images, [(random_terms((rows, 1))[0][0],) * 2], "wrap")


@pytest.mark.parametrize("sigma", [0.75, 2, 4, 8])
def test_gaussians(cupy, sigma):
    images = random_images((2, 512, 640), "float32")
    result = separable_on_device(cupy.asarray(images), gaussian(sigma), kernel="banded").get()
    expected = ndimage.gaussian_filter(images.astype(np.float64), sigma, axes=(1, 2))
    np.testing.assert_allclose(result, expected, rtol=0, atol=2e-6 * np.abs(images).max())
    for scale in (1e30, 1e-30, 3e38, 1e-32):  # results below 1.2e-38 are zero on a device
        check(cupy, images * np.float32(scale), gaussian(sigma))
    check(cupy, np.abs(images) + np.float32(100), gaussian(sigma))


@pytest.mark.parametrize(
    "tuning",
    [
        {"WARPS": 8, "BLOCKS": 1},
        {"WARPS": 2, "BLOCKS": 4},
        {"WARP_COLUMNS": 16},
        {"BLOCK_ROWS": 17},
        {"BLOCK_ROWS": 256},
    ],
)
def test_every_tuning_gives_the_same_results(cupy, tuning):
    check(cupy, random_images((3, 300, 515), "float32"), gaussian(4), tuning=tuning)


def test_nan_and_infinity_stay_within_their_footprint(cupy):
    images, terms = random_images((3, 130, 300), "float32"), gaussian(1)
    images[1, 12, 70], images[1, 125, 127] = np.nan, np.inf
    result = separable_on_device(cupy.asarray(images), terms, kernel="banded").get()
    reached = np.zeros((130, 300), bool)
    for y, x in ((12, 70), (125, 127)):
        reached[y - 4 : y + 5, x - 4 : x + 5] = True
    np.testing.assert_array_equal(~np.isfinite(result[1]), reached)
    for image in (0, 2):
        assert_separable(result[image], images[image], terms)
    images[1, reached] = 0  # far from them nothing is lost
    far = ndimage.binary_dilation(reached, iterations=8)
    expected = separable_by_definition(images, terms)[1]
    np.testing.assert_allclose(result[1][~far], expected[~far], rtol=0, atol=2e-6)


def test_a_hot_pixel_outshines_its_neighbourhood_alone(cupy):
    images, terms = random_images((1, 400, 300), "float32") * np.float32(1e-30), gaussian(2)
    hot = images.copy()
    hot[0, 60, 40] = 1e30
    result = separable_on_device(cupy.asarray(hot), terms, kernel="banded").get()
    assert np.abs(result - separable_by_definition(hot, terms)).max() < 2e-6 * 1e30
    alone = separable_by_definition(images, terms)
    for part in (np.s_[:, 120:], np.s_[:, :, 160:]):
        assert np.abs(result[part] - alone[part]).max() < 2e-6 * 1e-30


@pytest.mark.parametrize("sigma", [4, 8])
def test_auto_takes_large_stacks_and_a_graph_can_hold_it(cupy, sigma):
    if cupy.cuda.Device().compute_capability != "90":
        pytest.skip("auto takes it where it was measured")
    images, terms = cupy.asarray(random_images((8, 1024, 1024), "float32")), gaussian(sigma)
    out, expected = cupy.empty_like(images), separable_on_device(images, terms, kernel="banded")
    np.testing.assert_array_equal(separable_on_device(images, terms).get(), expected.get())
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        separable_on_device(images, terms, out=out)
        stream.begin_capture()
        separable_on_device(images, terms, out=out)
        graph = stream.end_capture()
        out.fill(cupy.nan)
        graph.launch(stream)
        stream.synchronize()
    np.testing.assert_array_equal(out.get(), expected.get())
