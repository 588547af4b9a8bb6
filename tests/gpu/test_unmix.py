"""Unmixing on the device: the answer of the CPU for arrays of any kind, without waiting, and where memory runs out."""

from __future__ import annotations

import numpy as np
import pytest

from tests.batch.movies import record, xcorr
from tests.gpu.test_memory import Allocator
from tests.io.samples import noise, write_ome
from tests.kernels.pointwise_definition import random_matrix, random_stack
from xcorr_app import read_stack, unmix
from xcorr_app.errors import DeviceMemoryError
from xcorr_app.filtering.unmix import unmix_counted
from xcorr_app.pipeline.planes import NOTE

pytestmark = pytest.mark.gpu


def same(found, expected):
    assert (found.shape, found.dtype) == (expected.shape, expected.dtype)
    if found.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=0, atol=4e-6 * max(1, np.abs(expected).max()))
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "float32", "float64"])
@pytest.mark.parametrize("options", [{}, {"clip": True}, {"from_log": True}, {"dtype": "float32"}], ids=str)
@pytest.mark.parametrize(("shape", "axis"), [((2, 4, 33, 64), -3), ((33, 35, 4), -1)])
def test_the_answer_is_that_of_the_cpu(cupy, dtype, options, shape, axis):
    """Up to eight channels exactly: sums that are rounded are float64 in both."""
    stack, matrix = random_stack(shape, dtype), random_matrix(3, 4)
    expected, number = unmix_counted(stack, matrix, channel_axis=axis, **options)
    found, counted = unmix_counted(cupy.asarray(stack), matrix, channel_axis=axis, **options)
    assert isinstance(found, cupy.ndarray)
    same(found.get(), expected)
    assert counted == number
    same(unmix(cupy.asarray(stack), matrix, channel_axis=axis, **options).get(), expected)


def test_views(cupy):
    stack, matrix = random_stack((6, 40, 60), "uint16"), random_matrix(2, 3)
    there = cupy.asarray(stack)
    for cut in (np.s_[::2, ::-1, 1::3], np.s_[:3], np.s_[3:, 1:, 3:]):
        same(unmix(there[cut], matrix).get(), unmix(stack[cut], matrix))
    moved = unmix(cupy.moveaxis(there[..., :3], -1, 0), matrix)
    same(moved.get(), unmix(np.moveaxis(stack[..., :3], -1, 0), matrix))


def test_where_the_nth_allocation_fails(cupy):
    stack, matrix = cupy.asarray(random_stack((3, 64, 64), "uint16")), random_matrix(3, 3)
    expected = unmix(stack, matrix).get()
    with cupy.cuda.using_allocator(Allocator(cupy, lambda call: call == 1)):
        same(unmix(stack, matrix).get(), expected)
    with (
        cupy.cuda.using_allocator(Allocator(cupy, lambda call: True)),
        pytest.raises(DeviceMemoryError, match=r"GB of device memory are free"),
    ):
        unmix(stack, matrix)


def test_the_command_gives_the_file_of_the_cpu_even_where_memory_runs_out(cupy, tmp_path):
    write_ome(tmp_path / "in.ome.tif", noise((3, 4, 50, 60), "uint16"), "TCYX")
    np.save(tmp_path / "m.npy", random_matrix(3, 4))
    options = ("--matrix", tmp_path / "m.npy")
    for name, device in (("cpu", "cpu"), ("gpu", "cuda")):
        words = (tmp_path / "in.ome.tif", "-o", tmp_path / name, *options, "--device", device)
        explained = xcorr("unmix", *words, "--explain")
        assert (explained.code, explained.stderr) == (0, "")
        assert "Plan of dynamic blocking" in explained.stdout
        run = xcorr("unmix", *words)
        assert (run.code, run.stderr) == (0, "")

    def small_only(size):
        """Room for the check that the device works, not for an image."""
        if size > 4096:
            raise cupy.cuda.memory.OutOfMemoryError(size, 0, 0)
        return cupy.get_default_memory_pool().malloc(size)

    with cupy.cuda.using_allocator(small_only):
        run = xcorr("unmix", tmp_path / "in.ome.tif", "-o", tmp_path / "full", *options, "--device", "cuda")
    assert run.code == 0
    assert record(tmp_path / "full")["stacks"]["in"]["notes"] == [NOTE.format("mixed", 0)]
    expected = read_stack(tmp_path / "cpu" / "in" / "in_unmixed.tif").data
    for name in ("gpu", "full"):
        np.testing.assert_array_equal(read_stack(tmp_path / name / "in" / "in_unmixed.tif").data, expected)
