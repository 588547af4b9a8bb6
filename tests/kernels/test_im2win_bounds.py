"""The Im2win kernels touch nothing outside their arrays, even what they would not use: pages there end the process."""

from __future__ import annotations

import ctypes
import mmap
import multiprocessing
from dataclasses import replace

import numpy as np
import pytest

from tests.kernels.host_device import run_kernel
from tests.kernels.im2win_definition import convolution_by_definition, integers
from xcorr_app.gpu.im2win.launches import basic_launch, convolve_launch, semaphore_count, transform_launch
from xcorr_app.gpu.im2win.problem import Im2winProblem, stored_filters
from xcorr_app.gpu.im2win.tiles import TILES
from xcorr_app.gpu.pointwise.tiles import add_segments_launch

# No size is a multiple of a tile's; the window tensor is whole vectors, whose stores need an aligned end.
PROBLEM = Im2winProblem(2, 3, 9, 12, 37, 3, 3)
ONE_FILTER = replace(PROBLEM, filters=1)
TALL = {**TILES[0].defines(), "TILE_K": 16}


def serial(launch, bank):
    """The same launch without a workspace, and with stored filters or the bank."""
    defines = {**launch.defines, "SERIAL_SPLIT_K": 1, "BANK": bank}
    return replace(launch, defines=defines, shared_bytes=launch.shared_bytes + 1024 * bank)


LAUNCHES = {
    "tiled": (PROBLEM, convolve_launch(PROBLEM, segments=1)),
    "implicit": (PROBLEM, convolve_launch(PROBLEM, implicit=True, segments=2)),
    "implicit, in turns": (PROBLEM, serial(convolve_launch(PROBLEM, implicit=True, segments=2), 0)),
    "implicit, bank": (PROBLEM, serial(convolve_launch(PROBLEM, implicit=True, segments=2, tuning=TALL), 1)),
    "basic": (PROBLEM, basic_launch(PROBLEM, 4)),
    "implicit, one filter": (ONE_FILTER, convolve_launch(ONE_FILTER, implicit=True, segments=1, tuning=TALL)),
}


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
    problem, launch = LAUNCHES[form]
    images, filters = integers(problem)
    taps = filters if launch.defines.get("BANK") else stored_filters(filters)
    image, taps = fenced(images, side), fenced(taps, side)
    window = fenced(np.full(problem.window_shape, np.nan, np.float32), side)
    output = fenced(np.full(problem.out_shape, np.nan, np.float32), side)
    for vector in (1, 4):
        run_kernel(folder, transform_launch(problem, vector=vector), (image, window), problem.arguments())
    arrays = [image if launch.defines.get("IMPLICIT") else window, taps, output]
    further, number = launch.segments - 1, 0 if form == "basic" else semaphore_count(launch)
    workspace = fenced(np.full((1 if number else further or 1, *problem.out_shape), np.nan, np.float32), side)
    if form != "basic":
        arrays += [workspace, fenced(np.zeros(number or 1, np.int32), side)]
    run_kernel(folder, launch, arrays, (*problem.arguments(), *launch.extra))
    if further and not number:
        add = add_segments_launch(problem.filters * problem.columns, launch.segments)
        run_kernel(folder, add, (output, workspace), add.extra)
    np.testing.assert_array_equal(output, convolution_by_definition(images, filters, problem))
    if outside:
        ctypes.c_float.from_address(output.ctypes.data + 4 * outside).value  # noqa: B018 - the reading is the point


def exit_code(*arguments):
    """Of `compute` in a process of its own, forked from one that has imported this module and nothing else."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    process = context.Process(target=compute, args=arguments)
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
