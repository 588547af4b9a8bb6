"""`benchmarks/ncu.sh`: what it asks of Nsight Compute, and on a device with it, what it prints."""

from __future__ import annotations

import csv
import os
import shutil
import subprocess
import sys

import pytest

from tests.device import NEEDS_DEVICE
from tests.test_house import ROOT

SCRIPT = ROOT / "benchmarks" / "ncu.sh"


def run(*words, **environment):
    paths = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    given = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": paths, **environment}
    done = subprocess.run([SCRIPT, *words], capture_output=True, text=True, env=given, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_is_asked_of_the_profiler(tmp_path):
    table = '"ID","Host Name","Kernel Name","dram__bytes.sum"\n"0","here","exchange","1,024"\n'
    (tmp_path / "ncu").write_text(f"#!/bin/sh\nprintf '{table}'\nprintf '%s\\n' \"$@\"\n")
    (tmp_path / "ncu").chmod(0o755)
    words = run("reuse", "64 images 1024^2: 3", PATH=f"{tmp_path}:{os.environ['PATH']}").splitlines()
    assert words[:2] == ['"ID","Kernel Name","dram__bytes.sum"', '"0","exchange","1,024"']
    assert words[-5:] == [sys.executable, "-m", "benchmarks.ablation.once", "reuse", "64 images 1024^2: 3"]
    metrics = words[words.index("--metrics") + 1].split(",")
    assert len(metrics) == len(set(metrics)) > 10
    assert all("__" in metric and " " not in metric for metric in metrics)


@pytest.mark.gpu
@NEEDS_DEVICE[-1]
@pytest.mark.skipif(shutil.which("ncu") is None, reason="Nsight Compute is not installed")
def test_every_way_has_a_row():
    said = run("correlation", "warps per block, warp-shuffle: 16^2").splitlines()
    assert sum(line.startswith("warps per block") for line in said) == 5
    rows = list(csv.DictReader(line for line in said if line.startswith('"')))[1:]  # the first has the units
    assert [row["Kernel Name"] for row in rows] == 5 * ["warp_shuffle"]
    assert all(float(row["smsp__inst_executed.sum"].replace(",", "")) > 0 for row in rows)
