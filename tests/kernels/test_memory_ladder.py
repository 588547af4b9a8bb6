"""The ladder for memory that runs out: whole, parts, single items, another way; and sizes that shrink."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from xcorr_app.errors import DeviceMemoryError
from xcorr_app.gpu.runtime import memory
from xcorr_app.gpu.runtime.memory import in_parts, or_on_host, with_smaller


@pytest.fixture(autouse=True)
def released(monkeypatch):
    calls = []
    monkeypatch.setattr(memory, "release_unused", lambda: calls.append(1))
    device = SimpleNamespace(Device=lambda: SimpleNamespace(mem_info=(10**9, 4 * 10**9)))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(cuda=device))
    return calls


class Room:
    """Takes so many items at a time, and tells which ranges it was asked for."""

    def __init__(self, most):
        self.most, self.asked = most, []

    def __call__(self, start, stop):
        self.asked.append((start, stop))
        if stop - start > self.most:
            raise DeviceMemoryError("none left")
        return list(range(start, stop))


@pytest.mark.parametrize("most", [1, 2, 3, 7, 10])
@pytest.mark.parametrize("at_once", [None, 1, 4, 99])
def test_every_item_is_done_once_and_in_order(most, at_once):
    parts = list(in_parts(Room(most), 10, at_once=at_once))
    assert [stop for stop, _ in parts][-1] == 10
    assert [item for _, part in parts for item in part] == list(range(10))


def test_parts_stay_small_from_where_memory_ran_out(released):
    room = Room(2)
    list(in_parts(room, 9))
    assert room.asked == [(0, 9), (0, 4), (0, 2), (2, 4), (4, 6), (6, 8), (8, 9)]
    assert len(released) == 2


def test_an_item_that_does_not_fit_is_tried_again_then_an_error(released):
    room = Room(0)
    with pytest.raises(DeviceMemoryError, match=r"one image: 1\.00 of 4\.0 GB"):
        list(in_parts(room, 2, what="one image"))
    assert room.asked == [(0, 2), (0, 1), (0, 1), (0, 1)]
    assert len(released) == 3


def test_an_item_that_does_not_fit_can_be_done_otherwise():
    assert list(in_parts(Room(0), 3, alone=lambda i: -i)) == [(1, 0), (2, -1), (3, -2)]


def test_sizes_shrink_until_one_fits(released):
    def job(size):
        if size > 3:
            raise DeviceMemoryError("none left")
        return size

    assert with_smaller(job, [9, 4, 2, 1], "nothing fits") == 2
    assert len(released) == 2
    with pytest.raises(DeviceMemoryError, match="nothing fits"):
        with_smaller(job, [9, 4], "nothing fits")


def test_the_host_takes_over(released):
    assert or_on_host(lambda: 1, lambda: 2) == 1
    assert not released
    assert or_on_host(lambda: Room(0)(0, 1), lambda: 2) == 2
    assert released
