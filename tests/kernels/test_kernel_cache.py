"""Kernels are compiled once, then taken from disk, unless what lies there is not what was written; no device needed."""

import gzip
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from xcorr_app.errors import DeviceError
from xcorr_app.gpu.runtime import compile as compiling
from xcorr_app.gpu.runtime import compile_ahead, kernel_cache

NAME = "direct/warp_shuffle"


class FakeCuPy:
    """As much of CuPy as compiling needs; a cubin is its source backwards, a loaded function remembers its cubin."""

    __version__ = "14.2.0"

    def __init__(self, capability="90"):
        self.compiled = []
        device = SimpleNamespace(id=0, compute_capability=capability, use=lambda: None)
        self.cuda = SimpleNamespace(
            Device=lambda: device,
            nvrtc=SimpleNamespace(getVersion=lambda: (13, 0)),
            compiler=SimpleNamespace(compile_using_nvrtc=self.compile),
            function=SimpleNamespace(Module=lambda: SimpleNamespace(load=self.load, get_function=self.get_function)),
            driver=SimpleNamespace(
                CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES=8, funcSetAttribute=lambda *a: self.set.append(a)
            ),
        )
        self.loaded, self.set = None, []

    def compile(self, source, options, *, arch, cache_in_memory):
        assert cache_in_memory
        assert arch == self.cuda.Device().compute_capability
        assert "-std=c++17" in options
        self.compiled.append(source)
        return source[::-1].encode(), None

    def load(self, cubin):
        self.loaded = cubin

    def get_function(self, entry):
        return SimpleNamespace(ptr=entry)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


STAND_IN = {
    "__init__.py": """
__version__ = "14.2.0"
from cupy import _core, cuda
""",
    "_core.py": """
from types import SimpleNamespace
from cupy.cuda import compiler


def compile_with_cache(text, options, *, arch):
    name = f"{text} {options} {arch}"
    if compiler._kernel_cache_backend.load(name) is None:
        compiler._kernel_cache_backend.save(name, b"cubin", text)
    compiler._kernel_cache_backend.save("a context", b"on the device", "")


core = SimpleNamespace(compile_with_cache=compile_with_cache)
""",
    "cuda/__init__.py": """
from types import SimpleNamespace
from cupy.cuda import compiler

Device = lambda number: SimpleNamespace(compute_capability="90")
nvrtc = SimpleNamespace(getVersion=lambda: (13, 0))
""",
    "cuda/compiler.py": """
import os
from pathlib import Path

FOLDER = Path(os.environ["CUPY_CACHE_DIR"])


class _kernel_cache_backend:
    load = staticmethod(lambda name: (FOLDER / name).read_bytes() if (FOLDER / name).exists() else None)
    save = staticmethod(lambda name, content, source: (FOLDER / name).write_bytes(content))


def _set_kernel_cache_backend(backend):
    global _kernel_cache_backend
    _kernel_cache_backend = backend


def compile_using_nvrtc(source, options, *, arch, cache_in_memory):
    with open(FOLDER / "compiled", "a") as file:
        print(arch, source.splitlines()[1], file=file)
    return source[::-1].encode(), None
""",
}
"""Files of a package that stands in for CuPy, in processes of their own too."""


@pytest.fixture
def stand_in(folder, monkeypatch, tmp_path):
    folder.mkdir()
    for name, text in STAND_IN.items():
        path = tmp_path / "site" / "cupy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with monkeypatch.context() as patch:
        patch.syspath_prepend(tmp_path / "site")
        for name in [name for name in sys.modules if name.partition(".")[0] == "cupy"]:
            patch.delitem(sys.modules, name)
        yield folder
        for name in [name for name in sys.modules if name.partition(".")[0] == "cupy"]:
            del sys.modules[name]


def test_what_a_record_names_is_compiled_ahead_once_for_a_folder(stand_in, monkeypatch, tmp_path):
    kernels = [["sum", ["--one"]], [NAME, {"ROWS": 2}], ["mean", []], [NAME, {"ROWS": 3}]]

    def after_record_of(version):
        monkeypatch.setattr(compile_ahead, "RECORD", tmp_path / f"record_{version}")
        text = json.dumps({"cupy": version, "kernels": kernels})
        compile_ahead.RECORD.write_bytes(gzip.compress(text.encode(), mtime=0))  # the same bytes, whatever the second
        compile_ahead.compile_ahead(0)
        return {path.name: path.stat().st_mtime_ns for path in stand_in.iterdir()}

    saved = after_record_of("14.2.0")
    assert sorted((stand_in / "compiled").read_text().splitlines()) == ["90 #define ROWS 2", "90 #define ROWS 3"]
    assert {"sum ('--one',) 90", "mean () 90"} < set(saved)
    assert "a context" not in saved, "what was compiled ahead is not loaded"
    assert after_record_of("14.2.0") == saved

    kernels.append(["median", []])
    assert not any("median" in name for name in after_record_of("13.0.0")), "another CuPy writes other sources"
    assert first_use(monkeypatch, ROWS=2).compiled == []


def first_use(monkeypatch, cupy=None, **defines):
    """Compile or load as a new process would; the stand-in for CuPy that was used."""
    cupy = cupy or FakeCuPy()
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    compiling._kernel.cache_clear()
    compiling.kernel_function(NAME, defines)
    assert cupy.loaded == compiling.kernel_source(NAME, defines)[::-1].encode()
    return cupy


def test_a_second_use_does_not_compile(folder, monkeypatch):
    assert len(first_use(monkeypatch).compiled) == 1
    assert len(first_use(monkeypatch).compiled) == 0
    assert len(list(folder.iterdir())) == 1


def test_another_compiler_device_or_define_is_another_kernel(folder, monkeypatch):
    newer = FakeCuPy()
    newer.cuda.nvrtc.getVersion = lambda: (13, 1)
    cases = [
        (FakeCuPy(), {}),
        (newer, {}),
        (FakeCuPy("80"), {}),
        (FakeCuPy(), {"WARPS": 2}),
        (FakeCuPy(), {"WARPS": 3}),
    ]
    for number, (cupy, defines) in enumerate(cases, 1):
        assert len(first_use(monkeypatch, cupy, **defines).compiled) == 1
        assert len(list(folder.iterdir())) == number


DAMAGES = {
    "halved": lambda whole, other: whole[: len(whole) // 2],
    "scrambled": lambda whole, other: bytes(byte ^ 0x5A for byte in whole),
    "one byte changed": lambda whole, other: whole[:-1] + b"?",
    "empty": lambda whole, other: b"",
    "swapped": lambda whole, other: other,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_compiled_anew_and_mended(folder, monkeypatch, damage):
    first_use(monkeypatch, WARPS=2)
    (other,) = folder.iterdir()
    first_use(monkeypatch)
    (file,) = set(folder.iterdir()) - {other}
    whole = file.read_bytes()
    file.write_bytes(DAMAGES[damage](whole, other.read_bytes()))
    assert len(first_use(monkeypatch).compiled) == 1
    assert file.read_bytes() == whole
    assert len(first_use(monkeypatch).compiled) == 0


@pytest.mark.parametrize("place", ["a file", "below a file", "/proc/none"])
def test_a_folder_that_cannot_be_made_is_passed_by(folder, monkeypatch, place):
    folder.write_text("not a folder")
    monkeypatch.setenv("CUPY_CACHE_DIR", {"a file": str(folder), "below a file": f"{folder}/x"}.get(place, place))
    for _ in range(2):
        assert len(first_use(monkeypatch).compiled) == 1


def test_a_full_disk_leaves_nothing_behind(folder, monkeypatch):
    def full(number, mode):
        os.close(number)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(kernel_cache.os, "fdopen", full)
    assert len(first_use(monkeypatch).compiled) == 1
    assert list(folder.iterdir()) == []


def test_many_writers_and_readers_at_once(folder):
    contents = {f"key {i}": bytes([i]) * 100_000 for i in range(4)}

    def work(number):
        key = f"key {number % 4}"
        for _ in range(20):
            kernel_cache.save_kernel(key, contents[key])
            assert kernel_cache.load_kernel(key) == contents[key]

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))
    assert len(list(folder.iterdir())) == 4


def test_no_home_folder(monkeypatch):
    monkeypatch.delenv("CUPY_CACHE_DIR", raising=False)
    monkeypatch.delenv("HOME", raising=False)
    assert kernel_cache.cache_folder().parts[-2:] == (".cupy", "kernel_cache")


@pytest.mark.parametrize("writable", [True, False])
def test_cupy_gets_a_folder_it_can_write(folder, monkeypatch, writable):
    """CuPy raises on import where its folder cannot be made."""
    if not writable:
        folder.write_text("not a folder")
    kernel_cache.provide_cache_folder()
    provided = kernel_cache.cache_folder()
    assert (provided == folder) == writable
    assert provided.is_dir()
    assert list(provided.iterdir()) == []


def test_a_compile_error_names_the_kernel(folder, monkeypatch):
    def refuse(*_, **__):
        raise RuntimeError("expected a ';'")

    cupy = FakeCuPy()
    cupy.cuda.compiler.compile_using_nvrtc = refuse
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    with pytest.raises(DeviceError, match=r"multi_row\.cu does not compile.*expected a ';'"):
        compiling.kernel_function("direct/multi_row", {"BROKEN": 1})
