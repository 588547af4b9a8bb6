"""Arrays in, arrays out: the caller of the filter kernels, with NumPy's arrays and the kernels' source on the host."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from tests.kernels.filter_definition import assert_filtered, filtered_by_definition, random_images, random_taps
from tests.kernels.filter_host import forget, numpy_as_device
from xcorr_app.errors import DataTypeError, ShapeError
from xcorr_app.gpu.runtime import binder
from xcorr_app.gpu.stencil import problem as filter_problem
from xcorr_app.gpu.stencil import reuse_run as filter_run


@pytest.fixture
def host(monkeypatch, host_builds):
    """A device whose arrays are NumPy's; the list of the launches that it ran."""
    yield numpy_as_device(monkeypatch, host_builds)
    forget()


@pytest.mark.parametrize("shape", [(9, 40), (3, 9, 40), (2, 3, 9, 40)])
@pytest.mark.parametrize("boundary", ["mirror", "valid", "constant"])
def test_stacks_of_any_number_of_axes(host, shape, boundary):
    images, taps = random_images(shape, "float32"), random_taps((2, 3))
    result = filter_run.filter_on_device(images, taps, boundary=boundary, outside=0.5)
    assert_filtered(result, images, taps, boundary, 0.5)
    assert len(host) == 1


def test_a_stack_in_several_launches(host, monkeypatch):
    monkeypatch.setattr(filter_problem, "_LARGEST_INDEX", 2 * 2 * 32)  # two images of two warps
    images, taps = random_images((5, 9, 40), "uint16"), random_taps((3, 3))
    assert_filtered(filter_run.filter_on_device(images, taps, dtype="float32"), images, taps)
    assert len(host) == 3


def test_clipped_results_of_all_launches_are_counted(host, monkeypatch):
    monkeypatch.setattr(filter_problem, "_LARGEST_INDEX", 2 * 2 * 32)
    images, clipped = np.full((5, 9, 40), 200, "uint8"), np.full(1, 7, np.uint64)
    filter_run.filter_on_device(images, [[2.0]], clipped=clipped)
    assert len(host) == 3
    assert clipped[0] == 7 + images.size


@pytest.mark.usefixtures("host")
def test_sums_in_double_precision():
    images, taps = random_images((2, 9, 40), "uint16"), 40 * random_taps((3, 3))
    exact = filtered_by_definition(images, taps)
    result = filter_run.filter_on_device(images, taps, double_sums=True)
    np.testing.assert_array_equal(result, np.clip(np.rint(exact), 0, 65535))


@pytest.mark.usefixtures("host")
def test_images_that_are_not_dense_and_a_given_result():
    images, taps = random_images((2, 30, 45), "float32")[:, ::2, 1::3], random_taps((2, 3))
    out = np.full(images.shape, np.nan, "float32")
    assert filter_run.filter_on_device(images, taps, origin=(0, 1), out=out) is out
    assert_filtered(out, np.ascontiguousarray(images), taps, origin=(0, 1))


def test_preparing_is_done_once_for_taps_and_sizes(host, monkeypatch):
    images, taps = random_images((9, 40), "uint16"), np.full((3, 3), 1 / 9)
    prepared = []
    real = filter_run.prepare_filter
    monkeypatch.setattr(
        filter_run, "prepare_filter", lambda *args, **options: prepared.append(1) or real(*args, **options)
    )
    for _ in range(2):
        assert_filtered(filter_run.filter_on_device(images, taps), images, taps)
    assert len(prepared) == 1
    assert_filtered(filter_run.filter_on_device(images, -taps, dtype="float32"), images, -taps)
    assert len(prepared) == 2
    assert [launch.defines["CLIPS"] for launch in host] == [0, 0, 0]
    filter_run.filter_on_device(images, -taps)
    assert host[-1].defines["CLIPS"] == 1


def test_taps_are_wrapped_where_the_library_lends_its_way(monkeypatch):
    class Wrapped:
        def __init__(self, element):
            self.element = element

    binder._struct_type.cache_clear()
    monkeypatch.setitem(sys.modules, "cupy.cuda.function", SimpleNamespace(CNumpyArray=Wrapped))
    element = np.zeros((), [("at", "f4", 9)])
    assert binder.as_struct(element).element is element
    binder._struct_type.cache_clear()
    monkeypatch.setitem(sys.modules, "cupy.cuda.function", SimpleNamespace())
    assert binder.as_struct(element) is element
    binder._struct_type.cache_clear()


@pytest.mark.usefixtures("host")
def test_what_does_not_fit_is_refused():
    images = np.zeros((2, 9, 9), "float32")
    with pytest.raises(ShapeError, match="two axes"):
        filter_run.filter_on_device(images, np.ones(3))
    with pytest.raises(ShapeError, match="dense float32 array"):
        filter_run.filter_on_device(images, np.ones((3, 3)), out=np.empty((2, 9, 8), "float32"))
    with pytest.raises(DataTypeError, match="int32"):
        filter_run.filter_on_device(images.astype("int32"), np.ones((3, 3)))
