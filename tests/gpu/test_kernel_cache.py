"""First uses of the kernels in processes of their own, many at once; caches that are damaged: tests/kernels."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.gpu

ROOT = Path(__file__).resolve().parents[2]
USE = """
import json, sys, time
import numpy as np
from xcorr_app import cross_correlate
from xcorr_app.gpu.runtime.device import require_cuda

require_cuda()
import cupy

real, compiled = cupy.cuda.compiler.compile_using_nvrtc, []

def timed(*arguments, **options):
    start = time.perf_counter()
    cubin = real(*arguments, **options)
    compiled.append(time.perf_counter() - start)
    return cubin

cupy.cuda.compiler.compile_using_nvrtc = timed
rng = np.random.default_rng(3)
left, right = (rng.integers(-9, 30, (4, 40, 33)).astype(np.float32) for _ in range(2))
device = cupy.asarray(left), cupy.asarray(right)
start = time.perf_counter()
window = json.loads(sys.argv[1])
plane = cross_correlate(*device, "n-to-m", window, normalization="none", engine="direct").get()
seconds = time.perf_counter() - start
expected = cross_correlate(left, right, "n-to-m", window, normalization="none", engine="definition")
np.testing.assert_array_equal(plane, expected)
print(json.dumps({"compiled": len(compiled), "seconds": seconds, "compiler": compiled}))
"""


def uses(folders, window="null"):
    """Use the kernels in one new process for each cache folder, all at once; what each reports."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CUPY")}
    started = [
        subprocess.Popen(
            [sys.executable, "-c", USE, window],
            cwd=ROOT,
            env=environment | {"CUPY_CACHE_DIR": str(folder)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for folder in folders
    ]
    reports = []
    for process in started:
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        reports.append(json.loads(output.splitlines()[-1]))
    return reports


def kernels(folder):
    return sorted(folder.glob("xcorr-*"))


@pytest.fixture(scope="module")
def primed(tmp_path_factory):
    """A cache after a first use, and what that use reported."""
    folder = tmp_path_factory.mktemp("primed")
    (report,) = uses([folder])
    return folder, report


def test_a_first_use_takes_little_time_and_a_second_none(primed):
    folder, first = primed
    before = {path: path.stat().st_mtime_ns for path in kernels(folder)}
    (second,) = uses([folder])
    print(f"first use {first['seconds']:.2f} s (compiler {first['compiler']}), second {second['seconds']:.3f} s")
    assert first["compiled"] == len(before) > 0
    assert second["compiled"] == 0
    assert {path: path.stat().st_mtime_ns for path in kernels(folder)} == before


def test_eight_first_uses_at_once(tmp_path, primed):
    reports = uses([tmp_path / "cache"] * 8)
    print("seconds of each:", *(f"{report['seconds']:.2f}" for report in reports))
    names = [path.name for path in (tmp_path / "cache").iterdir() if path.name.startswith("xcorr-")]
    assert sorted(names) == [path.name for path in kernels(primed[0])]
    assert uses([tmp_path / "cache"])[0]["compiled"] == 0
