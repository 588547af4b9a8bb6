"""Runs the kernels' own source on the host through the shim; what the device's launcher does, without a device."""

import ctypes
import fcntl
import functools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from tests.kernels.build_cache import SHIM, forget_files, headers_of, key_of, load, save
from xcorr_app.gpu.direct.kernels import KERNELS
from xcorr_app.gpu.direct.tile_launches import sum_of_segments
from xcorr_app.gpu.runtime.compile import kernel_root

_LINKER = ("-fuse-ld=gold",) if shutil.which("ld.gold") else ()  # the fastest of the common ones
_OPTIONS = ("-std=c++17", "-O1", "-w", "-U_FORTIFY_SOURCE", "-fPIC", "-fvisibility=hidden", f"-I{SHIM}")
GUARD = 512  # elements before and after every array that no kernel may read (NaN) or write


def build(folder: Path, source: Path, defines: dict[str, str | int]) -> ctypes.CDLL:
    """Compile `source` with the shim into a shared library, or take it from the cache in `folder`."""
    return _library(folder, source, tuple(sorted(defines.items())))


@functools.cache
def _library(folder: Path, source: Path, defines: tuple[tuple[str, str | int], ...]) -> ctypes.CDLL:
    key = _key(source, defines)
    if load(folder, key) is not None:
        return ctypes.CDLL(str(folder / key))  # what follows the library's own bytes is not looked at
    with tempfile.TemporaryDirectory() as made:
        library, shim = Path(made, "kernel.so"), Path(made, "shim.o")
        shim.write_bytes(_compiled_shim(folder))
        ahead = ["-include", str(_precompiled_headers(folder)), *header_folders()]
        macros = [f"-D{name}={value}" for name, value in defines]
        run_compiler(
            ["g++", *_OPTIONS, *_LINKER, "-shared", *ahead, *macros, str(source), str(shim), "-o", str(library)]
        )
        forget_files()
        if _key(source, defines) == key:  # nobody changed a file meanwhile
            save(folder, key, library.read_bytes())
        return ctypes.CDLL(str(library))


def _key(source: Path, defines: tuple[tuple[str, str | int], ...]) -> str:
    text, macros = source.read_bytes(), dict(defines)
    kernel = macros.pop("KERNEL_FILE", None)  # what it holds counts, not where it lies
    if kernel is not None:
        text += b"\n\0\n" + Path(str(kernel).strip('"')).read_bytes()
    values = (f"{name}={value}" for name, value in macros.items())
    return key_of(*_compiler(), *_sources_of_the_shim(), text, headers_of(text), *values)


@functools.cache
def _compiler() -> tuple[str, ...]:
    """Which compiler, for which machine, with which options."""
    questions = ("--version", "-dumpmachine")
    answers = [subprocess.run(["g++", question], capture_output=True, check=True).stdout for question in questions]
    return (*map(bytes.decode, answers), *_OPTIONS[:-1], *_LINKER)


def _sources_of_the_shim() -> list[bytes]:
    return [path.read_bytes() for path in (SHIM / "cuda_shim.cpp", SHIM / "cuda_shim.h", SHIM / "tensor_shim.h")]


@functools.cache
def _compiled_shim(folder: Path) -> bytes:
    """The part that no kernel sees, for the linker."""
    key = key_of(*_compiler(), *_sources_of_the_shim())
    found = load(folder, key)
    if found is None:
        with tempfile.TemporaryDirectory() as made:
            run_compiler(["g++", *_OPTIONS, "-c", str(SHIM / "cuda_shim.cpp"), "-o", f"{made}/shim.o"])
            found = Path(made, "shim.o").read_bytes()
        save(folder, key, found)
    return found


@functools.cache
def _precompiled_headers(folder: Path) -> Path:
    """Header that includes the shim, with what the compiler keeps of it beside it, made once for all workers."""
    header = folder / f"{key_of(*_compiler(), *_sources_of_the_shim())}.h"
    compiled = header.with_suffix(".h.gch")
    with header.open("a+") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        if not compiled.exists():
            header.write_text('#include "cuda_shim.h"\n')
            partial = header.with_suffix(".partial")
            run_compiler(["g++", *_OPTIONS, "-x", "c++-header", str(header), "-o", str(partial)])
            partial.replace(compiled)
    os.utime(compiled)  # the time of the last use
    return header


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
    return bool((np.isnan(rims) if rims.dtype.kind == "f" else rims == rims.dtype.type(77)).all())


def correlate_on_host(folder, lefts, rights, problem, variant, *, tuning=None, device=None):
    """Planes of a batch, computed by the kernel's source on the host; outputs are poisoned beforehand."""
    options = {"tuning": tuning, "device": device}
    launch = KERNELS[variant].launch(problem, left_type=str(lefts.dtype), right_type=str(rights.dtype), **options)
    dtype = np.float32
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
