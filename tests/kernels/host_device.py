"""Runs the kernels' own source on the host through the shim; what the device's launcher does, without a device."""

from __future__ import annotations

import ctypes
import hashlib
import shutil
import subprocess
from pathlib import Path

import numpy as np

from xcorr_app.gpu.direct.kernels import KERNELS
from xcorr_app.gpu.direct.tile_launches import sum_of_segments
from xcorr_app.gpu.runtime.compile import kernel_root

SHIM = Path(__file__).parent / "shim"
_OPTIONS = ("-std=c++17", "-O1", "-w", "-U_FORTIFY_SOURCE", "-fPIC")
GUARD = 512  # elements before and after every array that no kernel may read (NaN) or write


def build(folder: Path, source: Path, defines: dict[str, str | int]) -> ctypes.CDLL:
    """Compile `source` with the shim into a shared library; the same request twice gives the same library."""
    arguments = [f"-D{name}={value}" for name, value in sorted(defines.items())]
    key = hashlib.sha256(" ".join([str(source), *arguments]).encode()).hexdigest()[:16]
    library = folder / f"{key}.so"
    if not library.exists():
        compiler = shutil.which("g++")
        assert compiler, "these tests need g++"
        headers = folder / "headers.h"
        if not headers.exists():
            shutil.copy(SHIM / headers.name, headers)
            run_compiler([compiler, *_OPTIONS, "-x", "c++-header", str(headers), "-o", f"{headers}.gch"])
        command = [compiler, *_OPTIONS, "-shared", "-include", str(headers), f"-I{SHIM}"]
        run_compiler([*command, *header_folders(), *arguments, str(source), "-o", str(library)])
    return ctypes.CDLL(str(library))


def header_folders() -> list[str]:
    """Options for the headers of all families; that a kernel needs its own alone, NVRTC's tests show."""
    return [f"-I{folder}" for folder in sorted(kernel_root().iterdir()) if folder.is_dir()]


def run_compiler(command: list[str]) -> None:
    """Run a compiler; what it says is the failure."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def run_launch(folder, launch, problem, arrays):
    """Start one launch of a kernel that takes a problem on guarded arrays."""
    run_kernel(folder, launch, arrays, (*problem.arguments(), *launch.extra))


def run_kernel(folder, launch, arrays, numbers):
    """Start one launch: pointers to arrays first, then integers."""
    source = kernel_root() / f"{launch.kernel}.cu"
    defines = {**launch.defines, "KERNEL_FILE": f'"{source}"', "KERNEL_ENTRY": launch.entry}
    library = build(folder, SHIM / "launcher.cpp", defines)
    library.shim_run.restype = ctypes.c_char_p
    library.shim_run.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p]
    pointers = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
    numbers = np.array(numbers, dtype=np.int32)
    failure = library.shim_run(launch.blocks, launch.threads, launch.shared_bytes, pointers, numbers.ctypes.data)
    assert failure is None, failure.decode()


def guarded(array: np.ndarray) -> np.ndarray:
    """Copy of `array` inside a larger buffer: NaN around it, or 77 for integers."""
    outside = np.nan if array.dtype.kind == "f" else 77
    buffer = np.full(array.size + 2 * GUARD, outside, array.dtype)
    buffer[GUARD : GUARD + array.size] = array.ravel()
    return buffer[GUARD : GUARD + array.size].reshape(array.shape)


def guards_are_whole(array: np.ndarray) -> bool:
    """Whether nothing was written around an output that `guarded` made."""
    buffer = array.base
    while buffer.base is not None:
        buffer = buffer.base
    rims = np.concatenate([buffer[:GUARD], buffer[-GUARD:]])
    return bool((np.isnan(rims) if rims.dtype.kind == "f" else rims == 77).all())


def correlate_on_host(folder, lefts, rights, problem, variant, *, sum_type="float", tuning=None, device=None):
    """Planes of a batch, computed by the kernel's source on the host; outputs are poisoned beforehand."""
    options = {"sum_type": sum_type, "tuning": tuning, "device": device}
    launch = KERNELS[variant].launch(problem, left_type=str(lefts.dtype), right_type=str(rights.dtype), **options)
    dtype = np.float64 if sum_type == "double" else np.float32
    shape = (problem.pairs, *problem.plane_shape)
    planes = guarded(np.full(shape, 0 if launch.zero_first else np.nan, dtype))
    inputs = (guarded(lefts), guarded(rights))
    if launch.segments > 1:
        workspace = guarded(np.full((launch.segments, *shape), np.nan, dtype))
        run_launch(folder, launch, problem, (*inputs, workspace))
        assert guards_are_whole(workspace)
        run_launch(folder, sum_of_segments(launch, problem), problem, (workspace, planes))
    else:
        run_launch(folder, launch, problem, (*inputs, planes))
        if launch.then:
            run_launch(folder, launch.then, problem, (*inputs, planes))
    assert guards_are_whole(planes)
    return planes
