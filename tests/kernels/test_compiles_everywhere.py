"""Every instantiation that ships, compiled without a device: no stack frame, no spills, on each architecture."""

from __future__ import annotations

import re
import shutil
import subprocess

import pytest

from xcorr_app.gpu.compile import kernel_root
from xcorr_app.gpu.correlation_launch import VARIANTS, launch_of
from xcorr_app.gpu.correlation_problem import INPUT_TYPES, Problem

ARCHITECTURES = ("75", "80", "90", "120")


def window(size, most, **batch):
    return Problem((size, size), (size, size), (-most, -most), (2 * most + 1, 2 * most + 1), **batch)


def full(size, **batch):
    return Problem.full_plane((size, size), (size, size), **batch)


SHAPED = {
    "combined": [
        full(16),
        full(32),
        full(64),
        full(256),
        window(512, 8),
        window(64, 16),
        window(512, 32),
        window(512, 3),
    ],
    "row-product": [full(size, lefts=99, rights=99) for size in (16, 20, 24, 28, 32, 256)],
}
"""Problems that make the variants whose tile depends on the shape take each of their tiles."""


def instantiations():
    """(name, launch) of every variant with its table's tunables, for float and for 16-bit input, and in double."""
    found = {}
    for variant in VARIANTS:
        for problem in SHAPED.get(variant, [full(256)]):
            for input_type, sum_type in (("float32", "float"), ("uint16", "float"), ("float32", "double")):
                assert input_type in INPUT_TYPES
                launch = launch_of(variant, problem, input_type=input_type, sum_type=sum_type)
                key = (launch.kernel, tuple(sorted(launch.defines.items())))
                found[key] = (f"{variant}-{input_type}-{sum_type}-{problem.plane_shape[0]}", launch)
    return list(found.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "launch"), instantiations(), ids=lambda value: value if isinstance(value, str) else ""
)
def test_stays_in_registers(name, launch, tmp_path):
    compiler = shutil.which("nvcc")
    if compiler is None:
        pytest.skip("nvcc is not installed")
    command = [compiler, "-std=c++17", "-fatbin", "-Xptxas", "-v", "--threads", "2", f"-I{kernel_root() / 'include'}"]
    command += [f"-gencode=arch=compute_{sm},code=sm_{sm}" for sm in ARCHITECTURES]
    command += [f"-D{macro}={value}" for macro, value in launch.defines.items()]
    command += [str(kernel_root() / f"{launch.kernel}.cu"), "-o", str(tmp_path / "kernel.fatbin")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    frames = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", done.stderr)
    assert frames == [("0", "0", "0")] * len(ARCHITECTURES), f"{name}: {frames}"
    assert "warning" not in done.stderr, done.stderr
