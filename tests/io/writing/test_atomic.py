import errno
import os
import subprocess
import sys

import pytest

from xcorr_app import system
from xcorr_app.errors import DamagedFileError, OutputError
from xcorr_app.io.writing.atomic import (
    atomic_path,
    atomic_write_bytes,
    atomic_write_text,
    remove_abandoned,
    remove_partials,
)


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


def test_long_names_still_work(tmp_path):
    name = "é" * 125
    atomic_write_bytes(tmp_path / name, b"x")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_killed_process_leaves_only_what_remove_partials_removes(tmp_path):
    program = (
        "import os, signal, sys\n"
        "from xcorr_app.io.writing.atomic import atomic_path\n"
        "with atomic_path(sys.argv[1]) as partial:\n"
        "    partial.write_bytes(b'half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    (tmp_path / "deep").mkdir()
    result = subprocess.run([sys.executable, "-c", program, str(tmp_path / "deep" / "a.tif")], check=False)
    assert result.returncode == -9
    (left,) = (tmp_path / "deep").iterdir()
    assert left.name.startswith(".a.tif.xcorr-partial-")
    (tmp_path / "kept.xcorr-partial-name").write_text("not hidden, not ours")
    assert remove_partials(tmp_path) == [left]
    assert not list((tmp_path / "deep").iterdir())
    assert (tmp_path / "kept.xcorr-partial-name").exists()


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


def test_partials_that_are_being_written_are_kept(tmp_path):
    abandoned = tmp_path / ".a.tif.xcorr-partial-0123456789ab"
    abandoned.write_bytes(b"half")
    with atomic_path(tmp_path / "a.tif") as partial:
        partial.write_bytes(b"new")
        assert remove_partials(tmp_path) == [abandoned]
        assert partial.exists()
    assert (tmp_path / "a.tif").read_bytes() == b"new"


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
