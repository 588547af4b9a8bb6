"""What a run lends to its stacks."""

import os
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from tests.batch.movies import align, write_movie
from xcorr_app.batch.align.frames import SourceFrames
from xcorr_app.cli.values import SIZE
from xcorr_app.gpu.runtime.memory import limit_pool
from xcorr_app.io import Checksums, MemoryBudget
from xcorr_app.io.finding.discover import series_of_file
from xcorr_app.io.limits import Limits
from xcorr_app.pipeline import resources
from xcorr_app.pipeline.prefetch import Prefetch
from xcorr_app.pipeline.resources import Resources, StackResources, default_memory


def test_default_memory_is_a_part_of_what_there_is():
    assert 0 < default_memory().limit <= min(1 << 30, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 8)


@pytest.mark.parametrize(
    ("text", "size"), [("500MB", 500_000_000), ("2GB", 2_000_000_000), ("1.5g", 1_500_000_000), ("7", 7), ("0MB", 0)]
)
def test_sizes(text, size):
    assert SIZE.convert(text, None, None) == size


def test_what_is_needed_once_is_kept_only_where_it_is_small(tmp_path):
    path = write_movie(tmp_path / "a.tif")
    size = 4 * 40 * 48 * 2
    for limit, once, expected in ((size, False, True), (size, True, False), (4 * size, True, True)):
        lent = StackResources(Resources(MemoryBudget(limit)), Checksums([path]))
        with lent.open(series_of_file(path, Limits()).open(), once=once) as source:
            assert source.is_held == expected


def test_of_a_stack_that_others_read_too_none_is_kept_or_waits_on_a_device(tmp_path, monkeypatch):
    path = write_movie(tmp_path / "a.tif")
    made = []
    monkeypatch.setattr(resources, "StackUpload", lambda *_, **__: made.append("stack") or nullcontext())
    monkeypatch.setattr(resources, "DeviceFrames", lambda *_, **__: made.append("frames") or nullcontext())
    monkeypatch.setattr(StackResources, "fits_on_device", lambda *_: True)
    monkeypatch.setattr(Prefetch, "made", lambda _: (SimpleNamespace(notes=()), None))
    for is_shared in (False, True):
        lent = StackResources(Resources(MemoryBudget(1 << 20)), Checksums([path]))
        lent.is_shared = is_shared
        with lent.open(series_of_file(path, Limits()).open()) as source:
            assert source.is_held != is_shared
            lent.on_device(SourceFrames(source, "T", 0, None), None)
        lent.close()
    assert made == ["stack", "frames"]


def test_device_memory_is_limited_where_there_is_a_device(monkeypatch):
    limits = []
    pool = SimpleNamespace(set_limit=lambda size: limits.append(size))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(get_default_memory_pool=lambda: pool))
    limit_pool(5)
    monkeypatch.delitem(sys.modules, "cupy")
    limit_pool(6)
    assert limits == [5]


@pytest.mark.parametrize(("limit", "room"), [(0, 25), (60, 12), (1000, 25), (5, 0)])
def test_a_quarter_of_the_device_memory_that_is_left_holds_frames(monkeypatch, limit, room):
    pool = SimpleNamespace(get_limit=lambda: limit, used_bytes=lambda: 10, free_bytes=lambda: 20)
    device = SimpleNamespace(Device=lambda: SimpleNamespace(mem_info=(80, 200)))
    monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(get_default_memory_pool=lambda: pool, cuda=device))
    assert StackResources.fits_on_device(room)
    assert not StackResources.fits_on_device(room + 1)


def test_the_system_is_told_of_the_next_stack(tmp_path, monkeypatch):
    for number, name in enumerate("abc"):
        write_movie(tmp_path / "in" / f"{name}.tif", seed=number)
    told = []
    monkeypatch.setattr("xcorr_app.pipeline.run.announce", lambda path, size: told.append((path.name, size > 0)))
    assert align(tmp_path / "in", "-o", tmp_path / "out", "--report", "none").code == 0
    assert told == [("b.tif", True), ("c.tif", True)]
