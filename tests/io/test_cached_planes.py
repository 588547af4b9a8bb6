"""Planes that are read once, and checksums of what passes."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import xxhash

from tests.io.samples import noise, write_imagej, write_plain, write_shaped
from xcorr_app.errors import DamagedFileError
from xcorr_app.io import Checksums, HeldSource, MemoryBudget, cached_planes, discover, scan_file
from xcorr_app.io.checksum import FileChecksum
from xcorr_app.io.source import plane_number, plane_positions


def xxh3(path):
    return xxhash.xxh3_128(path.read_bytes()).hexdigest()


WRITERS = {
    "plain": lambda path, data: write_plain(path, data),
    "big-endian": lambda path, data: write_plain(path, data, byteorder=">"),
    "together": lambda path, data: write_shaped(path, data),
    "compressed": lambda path, data: write_plain(path, data, compression="zlib"),
    "axes": lambda path, data: write_imagej(path, data.reshape(5, 4, *data.shape[1:]), "TCYX"),
}


@pytest.fixture(params=WRITERS)
def stack(request, tmp_path):
    data = noise((20, 33, 41))
    WRITERS[request.param](tmp_path / "a.tif", data)
    return tmp_path / "a.tif", data


def opened(path, budget, checksums=None):
    return HeldSource(discover(path).series[0].open(), MemoryBudget(budget), checksums)


@pytest.mark.parametrize("budget", [0, 1 << 30])
@pytest.mark.parametrize("threads", [1, 3])
def test_planes_and_checksum_are_those_of_the_file(stack, budget, threads, monkeypatch):
    monkeypatch.setattr(cached_planes, "_BYTES_AT_ONCE", 1 << 13)
    path, data = stack
    checksums = Checksums([path])
    with opened(path, budget, checksums) as source:
        source.read_ahead(threads)
        positions = plane_positions(source.metadata)
        assert [plane_number(source.metadata, **at) for at in positions] == list(range(20))
        for numbers in (range(3), range(7, 8), [11, 2, 19], range(20)):
            planes, errors = source.planes([positions[number] for number in numbers])
            np.testing.assert_array_equal(planes, data[list(numbers)])
            assert errors == {}
        np.testing.assert_array_equal(source.planes(positions[13:14])[0], data[13:14])
        assert (source._planes is not None) == (budget > 0)
    assert checksums.finished() == {str(path): xxh3(path)}


def test_a_plane_is_read_once_by_however_many_threads(tmp_path, monkeypatch):
    data = noise((40, 16, 16))
    write_plain(tmp_path / "a.tif", data)
    monkeypatch.setattr(cached_planes, "_BYTES_AT_ONCE", 1 << 11)
    with opened(tmp_path / "a.tif", 1 << 30) as source:
        read, real = [], cached_planes.read_planes

        def counted(inner, positions, *others):
            read.extend(at["t"] for at in positions)
            return real(inner, positions, *others)

        monkeypatch.setattr(cached_planes, "read_planes", counted)
        wrong = []

        def ask(seed):
            for start in np.random.default_rng(seed).integers(0, 35, 50):
                planes, _ = source.planes([{"t": int(start) + i, "z": 0, "c": 0} for i in range(5)])
                if not np.array_equal(planes, data[start : start + 5]):
                    wrong.append(start)

        with ThreadPoolExecutor(6) as pool:
            asked = pool.map(ask, range(6))
            source.read_ahead(2)
        assert not wrong + list(filter(None, asked))
    assert sorted(read) == sorted(set(read))


def test_what_is_handed_out_of_memory_cannot_be_changed(stack):
    with opened(stack[0], 1 << 30) as source:
        planes, _ = source.planes([{"t": 0, "z": 0, "c": 0}])
        with pytest.raises(ValueError, match="read-only"):
            planes[0, 0, 0] = 1


def test_the_budget_is_kept_and_given_back(tmp_path):
    write_plain(tmp_path / "a.tif", noise((4, 16, 16)))
    budget, spec = MemoryBudget(4 * 512 + 100), discover(tmp_path / "a.tif").series[0]
    first = HeldSource(spec.open(), budget)
    second = HeldSource(spec.open(), budget)
    assert [each._planes is None for each in (first, second)] == [False, True]
    first.close()
    assert HeldSource(spec.open(), budget)._planes is not None


@pytest.mark.parametrize("budget", [0, 1 << 30])
def test_a_damaged_file_of_a_series_is_named_and_zero_and_the_others_are_there(tmp_path, budget):
    data = noise((5, 8, 9))
    for number, plane in enumerate(data):
        write_plain(tmp_path / f"{number}.tif", plane)
    (tmp_path / "3.tif").write_bytes(b"no image")
    (spec,) = discover(tmp_path).series
    checksums = Checksums(spec.paths)
    with HeldSource(spec.open(), MemoryBudget(budget), checksums) as source:
        planes, errors = source.planes([{"t": t, "z": 0, "c": 0} for t in range(5)])
        assert list(errors) == [3]
        assert "3.tif" in str(errors[3])
        data[3] = 0
        np.testing.assert_array_equal(planes, data)
        with pytest.raises(DamagedFileError, match=r"3\.tif"):
            source.plane(3)
    assert checksums.finished() == {str(path): xxh3(path) for path in spec.paths}


@pytest.mark.parametrize("seed", range(5))
def test_checksum_of_parts_in_any_order(tmp_path, seed):
    path = tmp_path / "a"
    content = np.random.default_rng(seed).bytes(300_000)
    path.write_bytes(content)
    rng = np.random.default_rng(seed)
    checksum, known = FileChecksum(path), (path.stat().st_size, path.stat().st_mtime_ns)
    with path.open("rb") as file:
        for _ in range(40):
            start = int(rng.integers(0, 300_000))
            stop = start + int(rng.integers(20_000, 50_000))
            checksum.add(file.fileno(), known, start, memoryview(content[start:stop]))
    assert checksum.hexdigest() == xxh3(path)


def test_a_file_that_changed_has_no_checksum_of_two_halves(tmp_path):
    path = tmp_path / "a.tif"
    write_plain(path, noise((30, 64, 64)))
    checksum, file = FileChecksum(path), scan_file(path)
    file.read_into([0], np.empty((1, 64, 64), np.uint16), checksum)
    os.utime(path, ns=(0, 0))
    with pytest.raises(DamagedFileError, match="was changed"):
        checksum.hexdigest()
