"""Checksums of large files: of pieces, in whatever order and by however many they are read."""

import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import xxhash

from tests.io.samples import noise, write_plain
from xcorr_app.errors import DamagedFileError
from xcorr_app.io import Checksums, Limits, piece_checksum
from xcorr_app.io import checksum as checksums_of_files
from xcorr_app.io.cached_planes import HeldSource, MemoryBudget
from xcorr_app.io.checksum import FileChecksum, checksum_of
from xcorr_app.io.finding.discover import series_of_file
from xcorr_app.io.opened import stamp
from xcorr_app.io.piece_checksum import PieceChecksum


def by_definition(content, piece):
    pieces = [content[start : start + piece] for start in range(0, len(content), piece)]
    return xxhash.xxh3_128(b"".join(xxhash.xxh3_128(one).digest() for one in pieces)).hexdigest()


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(piece_checksum, "PIECE", 1000)
    monkeypatch.setattr(checksums_of_files, "LARGE", 5000)


@pytest.fixture
def read_again(monkeypatch):
    """Bytes that are read where a checksum is asked for."""
    sizes, read = [], os.pread

    def counted(descriptor, size, offset):
        sizes.append(size)
        return read(descriptor, size, offset)

    monkeypatch.setattr(os, "pread", counted)
    return sizes


def told(checksum, path, content, rng, times):
    """Tell of parts of a file from several threads, each in two buffers."""
    with path.open("rb") as file:
        known = stamp(file.fileno())

        def tell(cuts):
            start, middle, stop = sorted(cuts)
            parts = [memoryview(content[start:middle]), memoryview(content[middle:stop])]
            with checksum.reading(start):
                checksum.add(file.fileno(), known, start, parts)

        with ThreadPoolExecutor(3) as pool:
            list(pool.map(tell, rng.integers(0, len(content) + 1, (times, 3)).tolist()))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("size", [0, 1, 999, 1000, 1001, 34_567])
def test_parts_in_any_order(tmp_path, small_pieces, seed, size):
    rng = np.random.default_rng(seed)
    path, content = tmp_path / "a", rng.bytes(size)
    path.write_bytes(content)
    checksum = PieceChecksum(path)
    told(checksum, path, content, rng, 12)
    assert checksum.hexdigest() == by_definition(content, 1000)


@pytest.mark.parametrize("reverse", [False, True])
def test_parts_that_follow_each_other_are_not_read_again(tmp_path, small_pieces, read_again, reverse):
    path, content = tmp_path / "a", np.random.default_rng(0).bytes(34_567)
    path.write_bytes(content)
    checksum = PieceChecksum(path)
    with path.open("rb") as file:
        starts = range(0, len(content), 777)
        for start in reversed(starts) if reverse else starts:
            part = memoryview(content[start : start + 777])
            checksum.add(file.fileno(), stamp(file.fileno()), start, [part])
    assert checksum.hexdigest() == by_definition(content, 1000)
    assert read_again == []


def test_parts_whose_rest_never_comes_do_not_fill_the_memory(tmp_path, small_pieces):
    path, content = tmp_path / "a", np.random.default_rng(0).bytes(200_000)
    path.write_bytes(content)
    checksum = PieceChecksum(path)
    with path.open("rb") as file:
        for start in range(0, len(content), 1000):
            checksum.add(file.fileno(), stamp(file.fileno()), start, [memoryview(content[start : start + 500])])
    assert len(checksum._begun) <= piece_checksum._MOST_BEGUN
    assert checksum.hexdigest() == by_definition(content, 1000)


def test_what_others_have_read_is_not_read_again(tmp_path, small_pieces, read_again):
    path, content = tmp_path / "a", np.random.default_rng(1).bytes(34_567)
    path.write_bytes(content)
    whole = Checksums([path])
    with path.open("rb") as file:
        for start, stop in ((0, 12_345), (12_345, 30_000)):
            part = Checksums.of_parts([path])
            part.of(path).add(file.fileno(), stamp(file.fileno()), start, [memoryview(content[start:stop])])
            whole.learn(part.news())
            assert part.news() == ()
    assert whole.finished() == {str(path): by_definition(content, 1000)}
    # The piece that they share, and what nobody read.
    assert sum(read_again) == 1000 + 4567


def test_what_others_read_of_another_state_of_the_file_does_not_count(tmp_path, small_pieces):
    path, content = tmp_path / "a", np.random.default_rng(1).bytes(8000)
    path.write_bytes(content)
    part = Checksums.of_parts([path])
    with path.open("rb") as file:
        part.of(path).add(file.fileno(), stamp(file.fileno()), 0, [memoryview(content)])
    path.write_bytes(content[::-1])
    os.utime(path, ns=(0, 0))
    whole = Checksums([path])
    whole.learn(part.news())
    assert whole.finished() == {str(path): by_definition(content[::-1], 1000)}


def test_small_files_that_others_have_read_whole(tmp_path, read_again):
    paths = [tmp_path / name for name in "ab"]
    for path in paths:
        path.write_bytes(path.name.encode() * 3000)
    part, whole = Checksums.of_parts(paths), Checksums(paths)
    with paths[0].open("rb") as file:
        part.of(paths[0]).add(file.fileno(), stamp(file.fileno()), 0, [memoryview(b"a" * 3000)])
    whole.learn(part.news())
    expected = {str(path): xxhash.xxh3_128(path.read_bytes()).hexdigest() for path in paths}
    del read_again[:]
    assert whole.finished() == expected
    assert part.news() == ()
    assert read_again[0] == 3000
    assert len(read_again) <= 2  # of the other one


def test_a_single_small_file_is_left_to_who_completes_the_stack(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"a" * 3000)
    assert Checksums.of_parts([path]).of(path) is None


def test_a_file_that_changed_is_damaged(tmp_path, small_pieces):
    path, content = tmp_path / "a", b"a" * 3000
    path.write_bytes(content)
    checksum = PieceChecksum(path)
    with path.open("rb") as file:
        checksum.add(file.fileno(), stamp(file.fileno()), 0, [memoryview(content)])
    path.write_bytes(b"b" * 3001)
    with pytest.raises(DamagedFileError, match="changed"):
        checksum.hexdigest()


@pytest.mark.parametrize("size", [3000, 9000])
def test_of_another_file_than_was_checked_there_is_none(tmp_path, small_pieces, size):
    path = tmp_path / "a"
    path.write_bytes(b"a" * size)
    with path.open("rb") as file:
        known = stamp(file.fileno())
    same, other, told_of = (Checksums([path], checked={path: known}) for _ in range(3))
    assert same.finished() == Checksums([path]).finished()
    os.utime(path, ns=(0, 0))
    with path.open("rb") as file:
        content = memoryview(b"a" * size)
        read = Checksums([path])
        read.of(path).add(file.fileno(), stamp(file.fileno()), 0, [content])
    told_of.learn(read.news())
    for found in (other, told_of):
        assert "was changed" in found.finished()[str(path)]


def test_large_files_alone_have_pieces(tmp_path, small_pieces):
    for size, kind in ((5000, FileChecksum), (5001, PieceChecksum)):
        (tmp_path / "a").write_bytes(b"a" * size)
        assert isinstance(checksum_of(tmp_path / "a"), kind)
    assert isinstance(checksum_of(tmp_path), FileChecksum)
    assert isinstance(checksum_of(tmp_path / "missing"), FileChecksum)


def test_a_file_that_became_large_before_it_was_read(tmp_path, small_pieces):
    path, content = tmp_path / "a", np.random.default_rng(2).bytes(9000)
    path.write_bytes(content[:4000])
    found = Checksums([path]), Checksums([path])
    path.write_bytes(content)
    with path.open("rb") as file:
        found[1].of(path).add(file.fileno(), stamp(file.fileno()), 0, [memoryview(content)])
    assert found[1].news() == ()
    for one in found:
        assert one.finished() == {str(path): by_definition(content, 1000)}


def test_a_large_file_that_cannot_be_looked_at_for_a_moment(tmp_path, small_pieces, monkeypatch):
    path, content = tmp_path / "a", np.random.default_rng(2).bytes(9000)
    path.write_bytes(content)

    def away(*_, **__):
        raise OSError

    with monkeypatch.context() as patch:
        patch.setattr(type(path), "stat", away)
        checksum = checksum_of(path)
    assert checksum.hexdigest() == by_definition(content, 1000)


@pytest.mark.parametrize(("before", "size"), [(4000, 9000), (9000, 4000)])
def test_what_others_read_counts_only_where_it_is_of_the_same_kind(tmp_path, small_pieces, before, size):
    path, content = tmp_path / "a", np.random.default_rng(2).bytes(9000)
    path.write_bytes(content[:before])
    whole = Checksums([path])
    path.write_bytes(content[:size])
    part = Checksums([path])
    with path.open("rb") as file:
        part.of(path).add(file.fileno(), stamp(file.fileno()), 0, [memoryview(content[:size])])
    news = part.news()
    assert news
    whole.learn(news)
    assert whole.finished() == {str(path): by_definition(content[:size], 1000)}


def test_a_process_that_ends_waits_for_few_pieces(tmp_path, small_pieces, monkeypatch):
    path, content = tmp_path / "a", np.random.default_rng(3).bytes(200_000)
    path.write_bytes(content)
    gate, asked, submit, read = threading.Event(), [], ThreadPoolExecutor.submit, os.pread

    def counted(pool, *job):
        asked.append(job)
        return submit(pool, *job)

    def held_up(*where):
        assert gate.wait(10)
        return read(*where)

    monkeypatch.setattr(ThreadPoolExecutor, "submit", counted)
    monkeypatch.setattr(os, "pread", held_up)
    found = []
    thread = threading.Thread(target=lambda: found.append(PieceChecksum(path).hexdigest()))
    thread.start()
    time.sleep(0.3)
    before = len(asked)
    gate.set()
    thread.join(30)
    assert 0 < before <= 64
    assert found == [by_definition(content, 1000)]


def test_parts_that_overlap_do_not_fill_the_memory(tmp_path, small_pieces):
    path, content = tmp_path / "a", np.random.default_rng(4).bytes(1000)
    path.write_bytes(content)
    checksum = PieceChecksum(path)
    with path.open("rb") as file:
        for start in range(1, 1000):
            checksum.add(file.fileno(), stamp(file.fileno()), start, [memoryview(content[start:])])
            assert sum(map(len, checksum._begun[0]._waiting.values())) <= 1000
    assert checksum.hexdigest() == by_definition(content, 1000)


def test_of_a_stack_that_is_read(tmp_path, small_pieces, read_again):
    """With gaps between planes, and the rest of the file."""
    path = tmp_path / "a.tif"
    write_plain(path, noise((30, 20, 24)))
    spec = series_of_file(path, Limits())
    checksums = Checksums(spec.paths)
    with HeldSource(spec.open(), MemoryBudget(0), checksums) as source:
        for start in (15, 0, 10, 5, 25, 20):
            source.planes([{"t": t, "z": 0, "c": 0} for t in range(start, start + 5)])
        del read_again[:]
    assert checksums.finished() == {str(path): by_definition(path.read_bytes(), 1000)}
    assert sum(read_again) < 0.4 * path.stat().st_size
