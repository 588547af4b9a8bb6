"""Atomic writing, and files of planes."""

import errno
import json
import os

import numpy as np
import pytest
import tifffile

from xcorr_app import system
from xcorr_app.errors import ArgumentError, DamagedFileError, OutputError
from xcorr_app.io.writing.atomic import (
    atomic_path,
    atomic_write_bytes,
    atomic_write_text,
    remove_abandoned,
    remove_partials,
)
from xcorr_app.io.writing.plane_file import check_plane_name, plane_writer


def test_content_appears_under_the_final_name_alone(tmp_path):
    atomic_write_text(tmp_path / "a.txt", "µ\n")
    assert (tmp_path / "a.txt").read_bytes() == "µ\n".encode()
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


def test_temporary_name_is_hidden_and_beside_the_final_one(tmp_path):
    with atomic_path(tmp_path / "a.bin") as partial:
        assert partial.parent == tmp_path
        assert partial.name.startswith(".a.bin.xcorr-partial-")
        partial.write_bytes(b"1")
        assert not (tmp_path / "a.bin").exists()


def test_an_error_keeps_the_old_file(tmp_path):
    atomic_write_bytes(tmp_path / "a", b"old")
    with pytest.raises(ZeroDivisionError), atomic_path(tmp_path / "a") as partial:
        partial.write_bytes(b"new"[1 // 0 :])
    assert (tmp_path / "a").read_bytes() == b"old"
    assert len(list(tmp_path.iterdir())) == 1


def test_errors_of_the_system_name_the_file(tmp_path):
    with pytest.raises(OutputError, match="missing/a"):
        atomic_write_bytes(tmp_path / "missing" / "a", b"")
    with pytest.raises(OutputError, match="No space left"), atomic_path(tmp_path / "b"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError, match="folder"):
        atomic_write_bytes(tmp_path / "folder", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_an_input_that_fails_within_the_block_is_not_blamed_on_the_output(tmp_path):
    with pytest.raises(DamagedFileError, match="of the input"), atomic_path(tmp_path / "a"):
        raise DamagedFileError("of the input")


def test_what_is_abandoned_is_told_by_its_lock(tmp_path):
    abandoned = tmp_path / ".a.tif.xcorr-partial-0123456789ab"
    others = [tmp_path / f".{name}.xcorr-partial-0123456789ab" for name in ("b.tif", "aa.tif", "a.tif.png")]
    for path in (abandoned, *others):
        path.write_bytes(b"half")
    with atomic_path(tmp_path / "a.tif") as partial:
        partial.write_bytes(b"new")
        remove_abandoned(tmp_path / "a.tif")
        assert sorted(tmp_path.iterdir()) == sorted([partial, *others])
    assert (tmp_path / "a.tif").read_bytes() == b"new"


def test_of_partials_those_that_were_left_are_removed_and_those_that_are_being_written_kept(tmp_path):
    (tmp_path / "deep").mkdir()
    abandoned = tmp_path / "deep" / ".a.tif.xcorr-partial-0123456789ab"
    abandoned.write_bytes(b"half")
    (tmp_path / "kept.xcorr-partial-name").write_text("not hidden, not ours")
    with atomic_path(tmp_path / "a.tif") as partial:
        partial.write_bytes(b"new")
        assert remove_partials(tmp_path) == [abandoned]
        assert partial.exists()
    assert (tmp_path / "a.tif").read_bytes() == b"new"
    assert (tmp_path / "kept.xcorr-partial-name").exists()


def test_what_cannot_be_locked_is_left(tmp_path, monkeypatch):
    def unsupported(*_arguments):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(system, "lock", unsupported)
    abandoned = tmp_path / ".a.xcorr-partial-0123456789ab"
    abandoned.write_bytes(b"half")
    atomic_write_bytes(tmp_path / "a", b"1")
    remove_abandoned(tmp_path / "a")
    remove_abandoned(tmp_path / "missing" / "a")
    assert sorted(tmp_path.iterdir()) == [abandoned, tmp_path / "a"]


@pytest.mark.parametrize("name", ["é µm.tif", os.fsdecode(b"\xff\xe9.tif"), "é" * 120 + ".tif", "n" * 250, "日" * 80])
def test_any_name_the_system_takes_can_be_written(tmp_path, name):
    atomic_write_bytes(tmp_path / name, b"1")
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == b"1"


FACTS = {"dy_min": -3, "left": 'µm=\n"\\.tif', "shape": [1, 2]}


def planes_of(shape, dtype="float32"):
    planes = np.random.default_rng(0).normal(size=shape).astype(dtype)
    planes.flat[0] = np.nan
    return planes


def write_planes(path, planes, at_once=1000):
    with plane_writer(path, planes.shape, planes.dtype, FACTS) as put:
        flat = planes.reshape(-1, *planes.shape[-2:])
        for start in range(0, len(flat), at_once):
            put(flat[start : start + at_once])


SHAPES = [(4, 5), (3, 4, 5), (1, 4, 5), (2, 3, 4, 5), (2, 1, 4, 5), (1, 3, 4, 5), (3, 1, 1)]


@pytest.mark.parametrize("at_once", [1, 2, 1000])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_npy_holds_the_array(tmp_path, shape, dtype, at_once):
    planes = planes_of(shape, dtype)
    write_planes(tmp_path / "p.npy", planes, at_once)
    found = np.load(tmp_path / "p.npy")
    assert (found.dtype, found.shape) == (dtype, shape)
    np.testing.assert_array_equal(found, planes)


@pytest.mark.parametrize("name", ["p.tif", "p.TIFF"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_tiff_is_an_imagej_stack_with_the_facts(tmp_path, shape, dtype, name):
    planes = planes_of(shape, dtype)
    write_planes(tmp_path / name, planes, 2)
    with tifffile.TiffFile(tmp_path / name) as tif:
        assert tif.is_imagej
        found, axes = tif.asarray(), tif.series[0].axes
        (line,) = (line for line in tif.pages[0].description.splitlines() if line.startswith("xcorr="))
    assert json.loads(line.removeprefix("xcorr=")) == FACTS
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found.reshape(shape), planes.astype(np.float32))
    expected = "".join(axis for axis, size in zip("TZ", shape[:-2], strict=False) if size > 1) + "YX"
    assert axes == expected


def test_values_beyond_single_precision_are_refused_as_tiff(tmp_path):
    planes = np.full((2, 4, 5), 1e300)
    with pytest.raises(OutputError, match=r"values up to 1e\+300 do not fit float32; use \.npy"):
        write_planes(tmp_path / "p.tif", planes)
    assert list(tmp_path.iterdir()) == []
    write_planes(tmp_path / "p.npy", planes)
    np.testing.assert_array_equal(np.load(tmp_path / "p.npy"), planes)


@pytest.mark.parametrize("name", ["p.tif", "p.npy"])
@pytest.mark.parametrize("given", [1, 3])
def test_missing_and_surplus_planes_are_an_error(tmp_path, name, given):
    (tmp_path / name).write_bytes(b"old")
    with pytest.raises(OutputError), plane_writer(tmp_path / name, (2, 4, 5), np.dtype("f4"), {}) as put:
        put(np.zeros((given, 4, 5), np.float32))
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / name).read_bytes() == b"old"


@pytest.mark.parametrize("name", ["p.tif", "p.npy"])
def test_a_full_disk_leaves_nothing_behind(tmp_path, name, monkeypatch):
    def full(_path):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(system, "sync", full)
    with pytest.raises(OutputError, match="No space left"):
        write_planes(tmp_path / name, planes_of((2, 4, 5)))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["p", "p.png", "p.npz", "p.ome.tif", "p.OME.TIFF", "npy", "p.tif.gz"])
def test_names_that_do_not_say_the_kind(tmp_path, name):
    with pytest.raises(ArgumentError, match=r"\.tif \(not OME-TIFF\) or \.npy"):
        check_plane_name(tmp_path / name)
