"""What is kept of the compilers between runs: nothing damaged passes, nothing stale is found, nothing piles up."""

from __future__ import annotations

import os
import time

import pytest

from tests.kernels import build_cache
from tests.kernels.build_cache import forget_files, headers_of, key_of, load, prune, save

KEY = key_of("a", b"b")


def test_an_entry_is_found_under_its_own_name_only(tmp_path):
    assert load(tmp_path, KEY) is None
    save(tmp_path, KEY, b"content")
    assert load(tmp_path, KEY) == b"content"
    (tmp_path / KEY).rename(tmp_path / key_of("other"))
    assert load(tmp_path, key_of("other")) is None
    assert key_of("a", "bc") != key_of("ab", "c")


@pytest.mark.parametrize("content", [b"", b"the content of a library"])
def test_no_damaged_entry_passes(tmp_path, content):
    save(tmp_path, KEY, content)
    path, whole = tmp_path / KEY, (tmp_path / KEY).read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place])
        assert load(tmp_path, KEY) is None
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert load(tmp_path, KEY) is None
    save(tmp_path, KEY, content)
    assert load(tmp_path, KEY) == content
    assert [path.name for path in tmp_path.iterdir()] == [KEY]


def test_headers_count_that_headers_include(tmp_path, monkeypatch):
    folder = tmp_path / "include"
    folder.mkdir()
    (folder / "a.cuh").write_text('#include "b.cuh"\n')
    (folder / "b.cuh").write_text("1\n")
    (folder / "c.cuh").write_text("2\n")
    monkeypatch.setattr(build_cache, "kernel_root", lambda: tmp_path)
    forget_files()
    before = headers_of(b'// a kernel\n  #  include "a.cuh"\n')
    (folder / "c.cuh").write_text("3\n")
    forget_files()
    assert headers_of(b'// a kernel\n  #  include "a.cuh"\n') == before
    (folder / "b.cuh").write_text("3\n")
    forget_files()
    assert headers_of(b'// a kernel\n  #  include "a.cuh"\n') != before
    forget_files()


def test_what_was_used_longest_ago_goes(tmp_path, monkeypatch):
    now = time.time()
    for days in (0, 1, 2, 40):
        save(tmp_path, f"{days}", bytes(100))
        os.utime(tmp_path / f"{days}", (now, now - days * 86400))
    prune(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"0", "1", "2"}
    assert load(tmp_path, "2") is not None  # and is used again
    monkeypatch.setattr(build_cache, "KEPT_BYTES", 300)
    prune(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"0", "2"}
