"""Batches that device memory does not hold: halves of halves, each plane in its place; no device needed."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

from tests.device import OutOfMemoryError
from xcorr_app.correlation.batches import planes_in_batches
from xcorr_app.correlation.engines.definition import correlate_by_definition
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.errors import DeviceMemoryError

WINDOW = ShiftWindow.symmetric(1, 2)
FORMS = {
    "one-to-one": (1, 1, 1),
    "one-to-many": (1, 1, 7),
    "n-to-m": (5, 1, 3),
    "n-to-mn": (4, 4, 6),
    "many": (6, 6, 1),
}
"""Lefts, sets of rights, rights of a set."""


@pytest.fixture(autouse=True)
def released(monkeypatch):
    calls = []
    pool = SimpleNamespace(free_all_blocks=lambda: calls.append("blocks"))
    cuda = SimpleNamespace(Device=lambda: SimpleNamespace(mem_info=(10**9, 4 * 10**9)))
    fft = SimpleNamespace(config=SimpleNamespace(clear_plan_cache=lambda: calls.append("plans")))
    fake = SimpleNamespace(get_default_memory_pool=lambda: pool, fft=fft, cuda=cuda)
    monkeypatch.setitem(sys.modules, "cupy", fake)
    return calls


def operands(form):
    lefts, sets, rights = FORMS[form]
    rng = np.random.default_rng(1)
    return rng.normal(size=(lefts, 1, 4, 5)), rng.normal(size=(sets, rights, 3, 6))


def plane_by_plane(lefts, rights):
    shape = (max(lefts.shape[0], rights.shape[0]), rights.shape[1])
    planes = np.empty((*shape, *WINDOW.shape))
    for n, m in np.ndindex(shape):
        left, right = lefts[n % lefts.shape[0], 0], rights[n % rights.shape[0], m]
        planes[n, m] = correlate_by_definition(left, right, WINDOW)
    return planes


class LittleMemory:
    """Computes at most so many pairs at a time, and counts."""

    def __init__(self, most):
        self.most, self.tried = most, []

    def __call__(self, lefts, rights):
        pairs = max(lefts.shape[0], rights.shape[0]) * rights.shape[1]
        self.tried.append(pairs)
        if pairs > self.most:
            raise OutOfMemoryError(f"allocating {pairs} bytes")
        return plane_by_plane(lefts, rights)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("most", [1, 2, 3, 5, 24])
def test_planes_do_not_depend_on_the_memory(form, most):
    lefts, rights = operands(form)
    planes_of = LittleMemory(most)
    planes = planes_in_batches(planes_of, lefts, rights, WINDOW.shape, np.dtype(float))
    np.testing.assert_array_equal(planes, plane_by_plane(lefts, rights))
    pairs = planes.shape[0] * planes.shape[1]
    assert sum(tried for tried in planes_of.tried if tried <= most) == pairs


def test_one_pair_that_does_not_fit_is_an_error_with_numbers():
    with pytest.raises(DeviceMemoryError, match=r"4 x 5 with 3 x 6.*max_shift: 1\.00 of 4\.0 GB.*--device cpu"):
        planes_in_batches(LittleMemory(0), *operands("n-to-m"), WINDOW.shape, np.dtype(float))
