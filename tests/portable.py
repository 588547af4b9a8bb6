"""``python -m tests.portable``: the tests that rounding might decide, as on processors of other kinds.

OpenBLAS chooses its sums by the processor, NumPy and OpenCV their loops, and BLAS divides them among threads. What this
processor or this NumPy does not know is left out.
"""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

_AVX512 = ("X86_V4", "AVX512_ICL", "AVX512_SPR", "AVX512F", "AVX512_SKX", "AVX512CD", "AVX512_CLX", "AVX512_CNL")
_AVX2 = ("X86_V3", "AVX2", "FMA3")
_SETTINGS = {
    "Nehalem": (1, (*_AVX512, *_AVX2)),
    "Sandybridge": (2, (*_AVX512, *_AVX2)),
    "Haswell": (1, _AVX512),
    "Zen": (2, _AVX512),
    "SkylakeX": (1, ()),
}
"""Of each kind the threads of BLAS, and what NumPy does without."""
_TESTS = (
    "tests/golden",
    "tests/registration/patches/test_motion_patches.py::test_the_answer_does_not_depend_on_threads",
    "tests/batch/test_motion_patches.py::test_a_field_is_applied_to_other_channels",
)

_MEASURED = "not (folder or align or apply or filter or unmix)"
"""Of the records those of calls: commands find the same."""


def known(kind: str) -> bool:
    """Whether this processor can do what OpenBLAS does on such a one."""
    try:
        has = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    except OSError:
        return False
    needs = {"Nehalem": "sse4_2", "Sandybridge": "avx", "SkylakeX": "avx512f"}
    return needs.get(kind, "avx2") in has


def run(kind: str) -> tuple[int, str]:
    """The tests in a process that takes this processor for one of that kind."""
    threads, without = _SETTINGS[kind]
    off = [name for name in without if name in __cpu_dispatch__ and __cpu_features__.get(name)]
    environment = os.environ | {
        "OPENBLAS_CORETYPE": kind,
        "OPENBLAS_NUM_THREADS": str(threads),
        "NPY_DISABLE_CPU_FEATURES": " ".join(off),
        "OPENCV_CPU_DISABLE": "AVX512_SKX,AVX2" if set(_AVX2) & set(without) else "",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", _MEASURED, *_TESTS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, f"== {kind}, {threads} threads of BLAS, without {off}\n{done.stdout}{done.stderr}"


def main() -> int:
    """Run them all, two at a time; 1 where one failed."""
    failed = 0
    with ThreadPoolExecutor(2) as pool:
        for code, said in pool.map(run, filter(known, _SETTINGS)):
            lines = said.splitlines()
            print(said if code else f"{lines[0]}: {lines[-1]}", flush=True)
            failed |= bool(code)
    return failed


if __name__ == "__main__":
    sys.exit(main())
