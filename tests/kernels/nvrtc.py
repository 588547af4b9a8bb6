"""NVIDIA's run-time compiler without a device: the library that CuPy calls, here through ctypes."""

import ctypes
import functools
import importlib.metadata
import re
import sys
from pathlib import Path

from tests.kernels.build_cache import cache_folder, forget_files, headers_of, key_of, load, save


@functools.cache
def library() -> ctypes.CDLL | None:
    """The compiler that PyPI's nvidia-cuda-nvrtc brings, or None where it is not installed."""
    for folder in sys.path:
        for found in sorted(Path(folder).glob("nvidia/*/lib/libnvrtc.so.*"), reverse=True):
            # It opens its built-in functions by name only.
            for builtins in found.parent.glob("libnvrtc-builtins.so.*"):
                ctypes.CDLL(str(builtins))
            return ctypes.CDLL(str(found))
    return None


@functools.cache
def _identity() -> tuple[str, ...]:
    """Which compiler this is, to the last digit of its version."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    built = Path(library()._name).stat().st_size
    return "nvrtc", f"{major.value}.{minor.value}", importlib.metadata.version("nvidia-cuda-nvrtc"), str(built)


def architectures() -> list[int]:
    """Architectures that the compiler knows, such as 90, the oldest first."""
    count = ctypes.c_int()
    library().nvrtcGetNumSupportedArchs(ctypes.byref(count))
    numbers = (ctypes.c_int * count.value)()
    library().nvrtcGetSupportedArchs(numbers)
    return sorted(numbers)


def compile_log(source: str, options: tuple[str, ...]) -> str:
    """What the compiler says of a source that it takes; fails the test where it refuses it."""
    nvrtc, program = library(), ctypes.c_void_p()
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"kernel.cu", 0, None, None) == 0
    try:
        status = nvrtc.nvrtcCompileProgram(
            program, len(options), (ctypes.c_char_p * len(options))(*map(str.encode, options))
        )
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, text)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
    log = text.value.decode()
    assert status == 0, log
    return log


def outside_registers(source: str, options: tuple[str, ...]) -> str:
    """Empty where nothing leaves the registers and the compiler has no warning, else all that it says.

    Of verdicts, only good ones are kept for later runs.
    """
    key = _key(source, options)
    if load(cache_folder(), key) == b"":
        return ""
    log = compile_log(source, (*options, "--ptxas-options=-v"))
    found = re.findall(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads", log)
    if found != [("0", "0", "0")] or "warning" in log:
        return log
    forget_files()
    if _key(source, options) == key:  # nobody changed a header meanwhile
        save(cache_folder(), key, b"")
    return ""


def _key(source: str, options: tuple[str, ...]) -> str:
    text = re.sub(r"\A// headers .*\n", "", source).encode()  # a digest of more than it includes
    folders = ("-I" + Path(option).name if option.startswith("-I") else option for option in options)
    return key_of(*_identity(), *folders, text, headers_of(text))
