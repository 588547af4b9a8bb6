"""Launches of the tensor-core kernels: they fit their device, and no sum is cut off too often."""

from __future__ import annotations

import itertools

import pytest

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.tensor.hankel import hankel_launch
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
