"""What a run lends to its stacks."""

import sys
from types import SimpleNamespace

import pytest

from xcorr_app.batch.values import SIZE
from xcorr_app.pipeline.resources import StackResources


@pytest.mark.parametrize(
    ("text", "size"), [("500MB", 500_000_000), ("2GB", 2_000_000_000), ("1.5g", 1_500_000_000), ("7", 7), ("0MB", 0)]
)
def test_sizes(text, size):
    assert SIZE.read(text) == size


@pytest.mark.parametrize(("limit", "room"), [(0, 25), (60, 12), (1000, 25), (5, 0)])
def test_a_quarter_of_the_device_memory_that_is_left_holds_frames(monkeypatch, limit, room):
    pool = SimpleNamespace(get_limit=lambda: limit, used_bytes=lambda: 10, free_bytes=lambda: 20)
    device = SimpleNamespace(Device=lambda: SimpleNamespace(mem_info=(80, 200)))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(get_default_memory_pool=lambda: pool, cuda=device))
    assert StackResources.fits_on_device(room)
    assert not StackResources.fits_on_device(room + 1)
