"""Launches of the tensor-core kernels: they fit their device, and no sum is cut off too often."""

from __future__ import annotations

import itertools

import pytest

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.tensor.hankel import hankel_launch


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


def test_large_matrices_are_cut_so_that_few_products_add_to_one_sum():
    def segments(size, pairs):
        problem = Problem((size, size), (size, size), (-16, -16), (33, 33), lefts=pairs, rights=pairs)
        return hankel_launch(problem).launch.segments

    assert segments(512, 10000) == 1
    assert segments(2048, 10000) >= 8
