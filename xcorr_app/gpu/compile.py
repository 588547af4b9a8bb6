"""Kernel sources and their compilation at run time: a ``.cu`` file and defines become a CuPy function."""

from __future__ import annotations

import functools
import hashlib
import importlib
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from xcorr_app.errors import DeviceError

__all__ = ["kernel_function", "kernel_root", "kernel_source"]

Defines = tuple[tuple[str, str | int], ...]


@functools.cache
def kernel_root() -> Path:
    """Folder of the kernels: in the installed package, or beside the package in a source checkout.

    Returns
    -------
    pathlib.Path
        The folder that holds ``include`` and ``correlation``.

    Raises
    ------
    DeviceError
        Where neither exists.
    """
    package = Path(__file__).resolve().parent.parent
    for root in (package / "kernels", package.parent / "kernels"):
        if (root / "include").is_dir():
            return root
    raise DeviceError(f"the CUDA sources are missing beside {package}; reinstall xcorr-app")


def kernel_source(name: str, defines: Mapping[str, str | int]) -> str:
    """Text handed to the compiler: the defines, then the kernel's own file.

    Parameters
    ----------
    name : str
        Path below the root without its ending, such as ``"correlation/combined"``.
    defines : mapping
        Macro names and values; they win over the file's own defaults.

    Returns
    -------
    str
        CUDA C++. The first line holds a digest of the shared headers, so that a cache keyed by this text notices
        when a header changes.
    """
    root = kernel_root()
    lines = [f"// headers {_header_digest()}"]
    lines += [f"#define {key} {value}" for key, value in sorted(defines.items())]
    return "\n".join(lines) + "\n" + (root / f"{name}.cu").read_text(encoding="utf-8")


def kernel_function(name: str, defines: Mapping[str, str | int], shared_bytes: int = 0) -> Any:
    """Compile a kernel for the current device, or take it from memory or from CuPy's cache on disk.

    Parameters
    ----------
    name : str
        Path below the root without its ending; its last part is the kernel's name.
    defines : mapping
        Macro names and values.
    shared_bytes : int, optional
        Dynamic shared memory that launches will ask for; more than 48 KiB must be allowed beforehand.

    Returns
    -------
    cupy.RawKernel or cupy.cuda.function.Function
        Callable as ``function(grid, block, arguments, shared_mem=...)``.

    Raises
    ------
    DeviceError
        Where the compiler refuses the source.
    """
    device = int(importlib.import_module("cupy").cuda.Device().id)
    return _function(name, tuple(sorted(defines.items())), shared_bytes, device)


@functools.cache
def _function(name: str, defines: Defines, shared_bytes: int, device: int) -> Any:
    cupy = importlib.import_module("cupy")
    source = kernel_source(name, dict(defines))
    options = ("-std=c++17", f"-I{kernel_root() / 'include'}")
    try:
        function = _compile(cupy, source, options, name.rsplit("/", 1)[-1])
    except Exception as error:  # CuPy's compile errors share no base class but Exception
        raise DeviceError(f"{name}.cu does not compile for device {device}: {error}") from error
    if shared_bytes > 48 * 1024:
        function.max_dynamic_shared_size_bytes = shared_bytes
    return function


def _compile(cupy: Any, source: str, options: tuple[str, ...], entry: str) -> Any:
    """Compile through CuPy, whose cache checks a digest of what it reads; pass by a cache that cannot be written."""
    try:
        return _loaded(cupy, source, options, entry)
    except OSError:
        # A read-only or full cache folder: compile into one of our own that goes away again.
        before = os.environ.get("CUPY_CACHE_DIR")
        with tempfile.TemporaryDirectory(prefix="xcorr-kernels-") as folder:
            os.environ["CUPY_CACHE_DIR"] = folder
            try:
                return _loaded(cupy, source, options, entry)
            finally:
                if before is None:
                    del os.environ["CUPY_CACHE_DIR"]
                else:
                    os.environ["CUPY_CACHE_DIR"] = before


def _loaded(cupy: Any, source: str, options: tuple[str, ...], entry: str) -> Any:
    module = cupy.RawModule(code=source, options=options, backend="nvrtc")
    return module.get_function(entry)


@functools.cache
def _header_digest() -> str:
    digest = hashlib.sha256()
    for path in sorted((kernel_root() / "include").iterdir()):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]
