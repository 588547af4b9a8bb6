"""Launches of the tensor-core kernels: they fit their device, and no sum is cut off too often."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from xcorr_app.correlation.engines import tensor
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES, DeviceLimits
from xcorr_app.gpu.tensor.hankel import hankel_launch
from xcorr_app.gpu.tensor.hankel_frames import frames_launch
from xcorr_app.gpu.tensor.hankel_pieces import pieces_launch


@pytest.mark.parametrize("split", [1, 2])
@pytest.mark.parametrize("rights", [1, 8])
def test_blocks_fit_the_least_shared_memory(split, rights):
    for height, width in itertools.product((5, 15, 33, 49, 63, 64, 103, 127, 129), repeat=2):
        problem = Problem((512, 512), (512, 512), (0, 0), (height, width), rights=rights, rights_per_left=rights)
        for device in (DeviceLimits(), DeviceLimits(132, 227 * 1024)):
            launch = hankel_launch(problem, split=split, device=device).launch
            assert launch.shared_bytes <= device.shared_bytes
            if split == 1 and device.shared_bytes > 200 * 1024:
                launch = hankel_launch(problem, warpgroup=True, device=device).launch
                assert launch.shared_bytes <= device.shared_bytes


def test_pieces_fit_the_least_shared_memory_and_cover_the_matrix():
    for rows, columns in itertools.product((1, 16, 33, 64, 129), repeat=2):
        for height, width in ((1024, 1024), (300, 2000), (65, 65)):
            problem = Problem((height, width), (height, width), (0, 0), (rows, columns))
            chosen = pieces_launch(problem)
            if chosen is None:  # too many tiles of the window
                assert rows * columns > 33 * 33
                continue
            launch = chosen.launch
            assert launch.shared_bytes <= DeviceLimits().shared_bytes
            tiles_y, tiles_x, pieces, panels = launch.extra
            assert launch.blocks == tiles_y * tiles_x * pieces
            assert launch.defines["PIECE_ROWS"] * (pieces // panels) >= height
            assert launch.defines["PANEL"] * panels >= width


def test_large_matrices_are_cut_so_that_few_products_add_to_one_sum():
    def segments(size, pairs):
        problem = Problem((size, size), (size, size), (-16, -16), (33, 33), lefts=pairs, rights=pairs)
        return hankel_launch(problem).launch.segments

    assert segments(512, 10000) == 1
    assert segments(2048, 10000) >= 8


H200 = KNOWN_DEVICES["h200"]


@pytest.mark.parametrize("side", [1, 8, 15, 16, 17, 32, 33, 41, 48, 64, 96, 129])
@pytest.mark.parametrize("size", [(64, 64), (500, 333), (2048, 2048)])
def test_frames_together_fit_a_block_and_are_covered(size, side):
    problem = Problem(size, size, (0, 0), (side, 2 * side - 1), rights=70, rights_per_left=70)
    chosen = frames_launch(problem, device=H200)
    launch, macros = chosen.products, chosen.products.defines
    tiles_y, tiles_x, panels, segments, segment_rows = launch.extra
    assert tiles_y * macros["N_TILES"] >= side
    assert tiles_x * 8 * macros["EX_TILES"] >= 2 * side - 1
    assert panels * macros["PANEL"] >= size[1]
    assert segments * segment_rows >= size[0]
    assert launch.shared_bytes <= H200.shared_bytes
    assert launch.threads <= 1024
    assert launch.blocks == 2 * tiles_y * tiles_x * panels * segments
    assert chosen.workspace == launch.blocks * 64 * macros["N_TILES"] * 8 * macros["EX_TILES"]
    assert segment_rows * macros["PANEL"] // 16 <= 2048  # products that add to one sum
    assert chosen.sums.extra == (tiles_y, tiles_x, panels * segments)


@pytest.mark.parametrize("kind", ["crop", "transposed"])
def test_matrices_reach_the_kernels_dense(monkeypatch, kind):
    class Tables:
        cells = (4, 4)

        def __init__(self, window):
            pass

    def sums(problem, lefts, rights, window, kernel, *, split, out):
        assert split == 2
        assert lefts.flags.c_contiguous
        assert rights.flags.c_contiguous
        out[...] = lefts.sum() + rights.sum()

    monkeypatch.setattr(tensor, "tables_for", Tables)
    monkeypatch.setattr(tensor, "plain_sums", sums)
    monkeypatch.setattr(tensor, "_limits", lambda: H200)
    big = np.arange(3 * 40 * 50, dtype=np.float32).reshape(3, 1, 40, 50)
    stack = big[..., 3:35, 5:37] if kind == "crop" else big[..., :32, :32].swapaxes(-1, -2)
    correlator = tensor.TensorEngine().bind((32, 32), (32, 32), ShiftWindow(-2, 2, -2, 2), np)
    planes = correlator.sums(correlator.left(stack), correlator.right(stack))
    assert planes.shape == (3, 1, 5, 5)
    np.testing.assert_array_equal(planes, np.float32(2 * stack.sum()))
