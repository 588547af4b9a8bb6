"""Checksums of large files: of pieces, in whatever order and by however many they are read."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import xxhash

from xcorr_app.errors import DamagedFileError
from xcorr_app.io import Checksums, piece_checksum
from xcorr_app.io import checksum as checksums_of_files
from xcorr_app.io.opened import stamp
from xcorr_app.io.piece_checksum import PieceChecksum


def by_definition(content, piece):
    pieces = [content[start : start + piece] for start in range(0, len(content), piece)]
    return xxhash.xxh3_128(b"".join(xxhash.xxh3_128(one).digest() for one in pieces)).hexdigest()


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(piece_checksum, "PIECE", 1000)
    monkeypatch.setattr(checksums_of_files, "LARGE", 5000)


def told(checksum, path, content, rng, times):
    """Tell of parts of a file from several threads, each in two buffers."""
    with path.open("rb") as file:
        known = stamp(file.fileno())

        def tell(cuts):
            start, middle, stop = sorted(cuts)
            parts = [memoryview(content[start:middle]), memoryview(content[middle:stop])]
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


def test_a_file_that_changed_is_damaged(tmp_path, small_pieces):
    path, content = tmp_path / "a", b"a" * 3000
    path.write_bytes(content)
    checksum = PieceChecksum(path)
    with path.open("rb") as file:
        checksum.add(file.fileno(), stamp(file.fileno()), 0, [memoryview(content)])
    path.write_bytes(b"b" * 3001)
    with pytest.raises(DamagedFileError, match="changed"):
        checksum.hexdigest()
