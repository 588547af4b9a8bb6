"""What tells one state of a file from another."""

import os
import time

from xcorr_app.io.opened import opened, stamp


def _stamp(path):
    with opened(path) as descriptor:
        return stamp(descriptor)


def test_a_file_of_the_same_size_and_time_is_another_one(tmp_path):
    """The time of its last change can be set back; when the system saw that cannot."""
    path = tmp_path / "a"
    path.write_bytes(b"before")
    old, times = _stamp(path), path.stat()
    assert _stamp(path) == old
    time.sleep(0.05)
    path.write_bytes(b"behind")
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    new = _stamp(path)
    assert new[:2] == old[:2]
    assert new != old
