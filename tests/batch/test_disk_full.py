"""The disk fills up: whatever write it happens at, there is one clear line and nothing half-written."""

import errno
import os
from threading import Lock

import pytest

from tests.batch.movies import align, files, write_movie
from xcorr_app.io.writing import atomic, write

pytestmark = pytest.mark.usefixtures("short_report")


class Disk:
    """Counts writes and refuses the n-th, and with `lasting` all that follow."""

    def __init__(self, monkeypatch, fails_at, *, lasting):
        self.writes, self._fails_at, self._lasting, self._lock = 0, fails_at, lasting, Lock()
        real_write, real_sync, real_replace = write.write_at, atomic.system.sync, atomic.Path.replace
        real_mkdir = atomic.Path.mkdir
        disk = self

        def guarded(real):
            def call(*args, **options):
                disk.use()
                return real(*args, **options)

            return call

        monkeypatch.setattr(write, "write_at", guarded(real_write))
        monkeypatch.setattr(atomic.system, "sync", guarded(real_sync))
        monkeypatch.setattr(atomic.Path, "replace", guarded(real_replace))
        monkeypatch.setattr(atomic.Path, "write_bytes", guarded(atomic.Path.write_bytes))
        monkeypatch.setattr(atomic.Path, "mkdir", guarded(real_mkdir))

    def use(self):
        with self._lock:
            self.writes += 1
            refused = self.writes == self._fails_at or (self._lasting and self.writes > self._fails_at > 0)
        if refused:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("disk") / "in"
    for number, name in enumerate("ab"):
        write_movie(folder / f"{name}.tif", shape=(12, 12), drift=((0, 0), (1, 0)), seed=number)
    return folder


def writes_of_a_run(tmp_path, folder):
    with pytest.MonkeyPatch.context() as patch:
        disk = Disk(patch, 0, lasting=False)
        assert align(folder, "-o", tmp_path / "counted", "--verify", "none").code in (0, 1)
    return disk.writes


@pytest.mark.parametrize("lasting", [False, True])
def test_any_write_may_fail(tmp_path, folder, lasting):
    total = writes_of_a_run(tmp_path, folder)
    whole = files(tmp_path / "counted")
    assert total > 30
    # A dozen places from the first to the last; one after the other they take many seconds.
    for n in sorted({1, 2, total, *range(1 + 3 * lasting, total, total // 9)}):
        out = tmp_path / f"out{n}"
        with pytest.MonkeyPatch.context() as patch:
            Disk(patch, n, lasting=lasting)
            run = align(folder, "-o", out, "--verify", "none")
        # Nothing has begun before the folder is made and locked.
        assert run.code == (2 if n <= 2 else 1), (n, run)
        assert len(run.lines_of_error) <= 1
        assert "No space left on device" in run.stdout + run.stderr, (n, run)
        left = {path.name for path in out.rglob("*") if path.is_file()}
        assert not [name for name in left if "partial" in name], (n, left)
        # What has a final name is whole: the same bytes as in the run that nothing happened to.
        for name in files(out) - {"run.json", "report.html"} if out.exists() else ():
            assert (out / name).read_bytes() == (tmp_path / "counted" / name).read_bytes(), (n, name)
        if not lasting and "report.html" in left:
            assert any((out / name / "shifts.csv").exists() for name in "ab"), n
        if n in (2, total):
            assert align(folder, "-o", out, "--verify", "none", "--resume").code in (0, 1)
            assert files(out) == whole


def test_content_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    """What a crash of the machine leaves is not what a killed process leaves: only fsync makes it last."""
    done = []
    real_sync, real_replace = os.fsync, atomic.Path.replace

    def sync(descriptor):
        done.append(os.fstat(descriptor).st_ino)
        real_sync(descriptor)

    def replace(path, target):
        done.append("renamed")
        return real_replace(path, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(atomic.Path, "replace", replace)
    with atomic.atomic_path(tmp_path / "final") as partial:
        partial.write_bytes(b"content")
    assert done == [(tmp_path / "final").stat().st_ino, "renamed", tmp_path.stat().st_ino]
