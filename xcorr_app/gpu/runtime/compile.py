"""Kernel sources and their compilation at run time: a ``.cu`` file and defines become a CuPy function."""

from __future__ import annotations

import functools
import hashlib
import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xcorr_app.errors import DeviceError
from xcorr_app.gpu.runtime.kernel_cache import load_kernel, save_kernel

Defines = tuple[tuple[str, str | int], ...]
_OPTIONS = ("-std=c++17", "-ftz=true")
OF_ONE_ARCHITECTURE = {"tensor/hankel_warpgroup": "90a", "tensor/hankel_frames": "90a"}
"""Kernels with instructions that one architecture alone has."""


@functools.cache
def kernel_root() -> Path:
    """Folder of the kernels: in the installed package, or beside the package in a source checkout."""
    package = Path(__file__).resolve().parents[2]
    for root in (package / "kernels", package.parent / "kernels"):
        if (root / "include").is_dir():
            return root
    raise DeviceError(f"the CUDA sources are missing beside {package}; reinstall xcorr-app")


def kernel_source(name: str, defines: Mapping[str, str | int]) -> str:
    """Text handed to the compiler: the defines, which win over the file's own defaults, then the file.

    The first line holds a digest of the headers, so that a cache keyed by this text notices when one changes.
    """
    root = kernel_root()
    lines = [f"// headers {_header_digest(_family(name))}"]
    lines += [f"#define {key} {value}" for key, value in sorted(defines.items())]
    return "\n".join(lines) + "\n" + (root / f"{name}.cu").read_text(encoding="utf-8")


def compiler_options(name: str) -> tuple[str, ...]:
    """Options of NVRTC besides the architecture: a kernel sees the headers of its family and the shared ones."""
    return (*_OPTIONS, *(f"-I{kernel_root() / folder}" for folder in (_family(name), "include")))


def _family(name: str) -> str:
    return name.partition("/")[0]


class Kernel:
    """A compiled kernel on one device, called as ``kernel(grid, block, arguments, shared_mem=...)``."""

    __slots__ = ("_driver", "_function")

    def __init__(self, cupy: Any, cubin: bytes, entry: str, shared_bytes: int) -> None:
        self._driver = cupy.cuda.driver
        module = cupy.cuda.function.Module()
        module.load(cubin)
        self._function = module.get_function(entry)
        if shared_bytes > 48 * 1024:
            attribute = self._driver.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self._driver.funcSetAttribute(self._function.ptr, attribute, shared_bytes)

    def __call__(
        self, grid: tuple[int, ...], block: tuple[int, ...], arguments: tuple[Any, ...], shared_mem: int = 0
    ) -> None:
        """Start the kernel in the current stream."""
        self._function(grid, block, arguments, shared_mem)

    @property
    def num_regs(self) -> int:
        """Registers of a thread."""
        return int(self._driver.funcGetAttribute(self._driver.CU_FUNC_ATTRIBUTE_NUM_REGS, self._function.ptr))

    @property
    def local_size_bytes(self) -> int:
        """Bytes of local memory of a thread."""
        return int(self._driver.funcGetAttribute(self._driver.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, self._function.ptr))


def kernel_function(name: str, defines: Mapping[str, str | int], shared_bytes: int = 0) -> Kernel:
    """Compile a kernel for the current device, or take it from memory or from the cache on disk."""
    device = int(importlib.import_module("cupy").cuda.Device().id)
    return _kernel(name, tuple(sorted(defines.items())), shared_bytes, device)


@functools.cache
def _kernel(name: str, defines: Defines, shared_bytes: int, _device: int) -> Kernel:
    cupy = importlib.import_module("cupy")
    return Kernel(cupy, cubin_of(name, dict(defines)), name.rsplit("/", 1)[-1], shared_bytes)


def cubin_of(name: str, defines: Mapping[str, str | int], capability: str | None = None) -> bytes:
    """Compile a kernel and save it on disk, or take it from there; for the current device, or another capability."""
    cupy, source = importlib.import_module("cupy"), kernel_source(name, defines)
    # The folder of the headers is no part of the key: the source holds their digest.
    architecture = OF_ONE_ARCHITECTURE.get(name, capability or cupy.cuda.Device().compute_capability)
    compiler = (cupy.__version__, cupy.cuda.nvrtc.getVersion(), architecture)
    key = "\n".join(map(str, (*compiler, *_OPTIONS, source)))
    cubin = load_kernel(key)
    if cubin is None:
        try:
            cubin = _compile(cupy, name, source, architecture)
        except Exception as error:  # CuPy's compile errors share no base class but Exception
            raise DeviceError(f"{name}.cu does not compile for compute capability {architecture}: {error}") from error
        save_kernel(key, cubin)
    return cubin


def _compile(cupy: Any, name: str, source: str, architecture: str) -> bytes:
    if name not in OF_ONE_ARCHITECTURE:
        how = {"arch": architecture, "cache_in_memory": True}
        cubin: bytes = cupy.cuda.compiler.compile_using_nvrtc(source, compiler_options(name), **how)[0]
        return cubin
    nvrtc = cupy.cuda.nvrtc  # CuPy's own way takes numbers for architectures
    program = nvrtc.createProgram(source, f"{name}.cu", (), ())
    try:
        nvrtc.compileProgram(program, (*compiler_options(name), f"-arch=sm_{architecture}"))
        cubin = nvrtc.getCUBIN(program)
    except nvrtc.NVRTCError as error:
        raise DeviceError(nvrtc.getProgramLog(program)) from error
    finally:
        nvrtc.destroyProgram(program)
    return cubin


@functools.cache
def _header_digest(family: str) -> str:
    digest = hashlib.sha256()
    for path in sorted(path for folder in ("include", family) for path in (kernel_root() / folder).glob("*.cuh")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
