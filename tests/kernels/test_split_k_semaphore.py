"""Turns of blocks that share a result, in a kernel of a few lines run on the host."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.host_device import run_kernel
from xcorr_app.gpu.runtime.launch import Launch

KERNEL = """
#include "split_k_semaphore.cuh"
extern "C" __global__ void turns(float* sum, int* passed, int count, int backwards) {
    const int turn = backwards ? count - 1 - (int)blockIdx.x : (int)blockIdx.x;
    wait_semaphore(passed, turn);
    if (threadIdx.x < 3) sum[threadIdx.x] = 2 * sum[threadIdx.x] + turn;
    release_semaphore(passed, turn + 1 < count ? turn + 1 : 0);
}
"""


def take_turns(folder, tmp_path, count, backwards):
    """Numbers that a block for each turn has gone over, and the counter."""
    source = tmp_path / "turns.cu"
    source.write_text(KERNEL)
    numbers, passed = np.zeros(3, np.float32), np.zeros(1, np.int32)
    run_kernel(folder, Launch(str(source.with_suffix("")), {}, count, 64), (numbers, passed), (count, backwards))
    return numbers, passed


@pytest.mark.parametrize("count", [1, 2, 5])
def test_every_block_has_its_turn(host_builds, tmp_path, count):
    numbers, passed = take_turns(host_builds, tmp_path, count, 0)
    expected = 0
    for turn in range(count):
        expected = 2 * expected + turn
    assert numbers.tolist() == [expected] * 3
    assert passed == 0


def test_nobody_passes_before_its_turn(host_builds, tmp_path):
    """Blocks run one after the other here: the first would wait for one that has not run."""
    with pytest.raises(AssertionError, match="a block waits"):
        take_turns(host_builds, tmp_path, 2, 1)
