"""kill -9 in the middle of ``xcorr correlate``: nothing under the final name, and the next run tidies up."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tests.batch.movies import write_movie
from tests.cli.planes import correlate
from tests.conftest import ROOT
from xcorr_app.io import atomic_path

_KILLED_AFTER_THE_FIRST_BLOCK = """
import os, signal, sys
from xcorr_app.batch.correlate import plan as correlation_plan
from xcorr_app.batch.correlate import run as correlate
from xcorr_app.cli import main
correlation_plan._ELEMENTS_AT_ONCE = 1
correlate._numbers = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
main(sys.argv[1:])
"""


@pytest.mark.parametrize("ending", ["npy", "tif"])
def test_the_next_run_removes_what_a_killed_one_left(tmp_path, ending):
    stack, out = write_movie(tmp_path / "m.tif"), tmp_path / "out" / f"p.{ending}"
    out.parent.mkdir()
    options = ("--form", "n-to-m", "--max-shift", "5")
    words = ["correlate", "--device", "cpu", stack, stack, "-o", out, *options]
    command = [sys.executable, "-c", _KILLED_AFTER_THE_FIRST_BLOCK, *map(str, words)]
    killed = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    (left,) = out.parent.iterdir()
    assert left.name.startswith(f".{out.name}.xcorr-partial-")

    of_another = left.with_name(left.name.replace("p.", "other."))
    of_another.write_bytes(b"not of this output")
    with atomic_path(out) as being_written:
        being_written.write_bytes(b"of a run that goes on")
        assert correlate(stack, stack, out, *options).code == 0
        assert set(out.parent.iterdir()) == {out, of_another, being_written}
    assert set(out.parent.iterdir()) == {out, of_another}
