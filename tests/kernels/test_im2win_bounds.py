"""The Im2win kernels touch nothing outside their arrays, even what they would not use: pages there end the process."""

from __future__ import annotations

import ctypes
import mmap
import multiprocessing

import numpy as np
import pytest

from tests.kernels.host_device import run_kernel
from tests.kernels.im2win_definition import convolution_by_definition, integers
from xcorr_app.gpu.im2win_launch import basic_launch, convolve_launch, transform_launch
from xcorr_app.gpu.im2win_problem import Im2winProblem

# No size is a multiple of a tile's; the window tensor is whole vectors, whose stores need an aligned end.
PROBLEM = Im2winProblem(2, 3, 9, 12, 37, 3, 3)
LAUNCHES = {"tiled": convolve_launch(PROBLEM), "basic": basic_launch(PROBLEM, 4)}


def fenced(array, side):
    """Copy of `array` that ends where a page that nobody may touch begins, or begins where one ends."""
    page = mmap.PAGESIZE
    pages = -(-array.nbytes // page)
    memory = mmap.mmap(-1, (pages + 2) * page)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for fence in (0, pages + 1):
        assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(address + fence * page), ctypes.c_size_t(page), 0) == 0
    start = page if side == "before" else (pages + 1) * page - array.nbytes
    copy = np.frombuffer(memory, array.dtype, array.size, start).reshape(array.shape)
    copy[...] = array
    return copy


def compute(folder, form, side, outside=0):
    """Transform and convolve between fences, and compare; `outside`: an element that is read after that."""
    images, filters = integers(PROBLEM)
    image, stored = fenced(images, side), fenced(np.ascontiguousarray(filters.transpose(0, 1, 3, 2)), side)
    window = fenced(np.full(PROBLEM.window_shape, np.nan, np.float32), side)
    output = fenced(np.full(PROBLEM.out_shape, np.nan, np.float32), side)
    for vector in (1, 4):
        run_kernel(folder, transform_launch(PROBLEM, vector=vector), (image, window), PROBLEM.arguments())
    run_kernel(folder, LAUNCHES[form], (window, stored, output), PROBLEM.arguments())
    np.testing.assert_array_equal(output, convolution_by_definition(images, filters, PROBLEM))
    if outside:
        ctypes.c_float.from_address(output.ctypes.data + 4 * outside).value  # noqa: B018 - the reading is the point


def exit_code(*arguments):
    """Of `compute` in a process of its own."""
    process = multiprocessing.get_context("spawn").Process(target=compute, args=arguments)
    process.start()
    process.join()
    return process.exitcode


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("form", LAUNCHES)
def test_nothing_outside_is_touched(host_builds, form, side):
    assert exit_code(host_builds, form, side) == 0


@pytest.mark.parametrize(("side", "outside"), [("before", -1), ("after", PROBLEM.filters * PROBLEM.columns)])
def test_a_fence_ends_the_process(host_builds, side, outside):
    assert exit_code(host_builds, "basic", side, outside) < 0
