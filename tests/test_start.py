"""What starting costs: ``import xcorr_app``, help and completion load nothing that computes, draws or reads files."""

import os
import subprocess
import sys
import time

import pytest

import xcorr_app
from tests.conftest import ROOT

HEAVY = {"numpy", "scipy", "matplotlib", "cv2", "skimage", "tifffile", "imagecodecs", "cupy", "rich", "jinja2"}
HEAVY |= {"dask", "distributed", "xarray", "zarr", "h5py"}
_LOADED = "import atexit, sys; atexit.register(lambda: print('loaded', *sorted(sys.modules), file=sys.stderr)); "


def loaded(code: str, **variables: str) -> set[str]:
    """Modules that a fresh interpreter holds when it has run some code."""
    run = subprocess.run(
        [sys.executable, "-c", _LOADED + code],
        cwd=ROOT,
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(run.stderr.splitlines()[-1].split()[1:])


def command(*words: str) -> str:
    return f"from xcorr_app.cli import main; sys.argv = {['xcorr', *words]}; main(prog_name='xcorr')"


def own(modules: set[str]) -> set[str]:
    return {name for name in modules if name.startswith("xcorr_app.")}


def test_the_import_loads_nothing_else() -> None:
    modules = loaded("import xcorr_app")
    assert not modules & HEAVY
    assert own(modules) == set()


@pytest.mark.parametrize("words", [("--help",), ("--version",)])
def test_help_loads_no_command(words: tuple[str, ...]) -> None:
    modules = loaded(command(*words))
    assert not modules & HEAVY
    assert own(modules) == {"xcorr_app.cli"}


@pytest.mark.parametrize("line", ["xcorr ", "xcorr align --device cpu --re"])
def test_completion_loads_nothing_heavy(line: str) -> None:
    asked = {"_XCORR_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    assert not loaded(command(), **asked) & HEAVY


@pytest.mark.parametrize("code", ["import xcorr_app", command("--help")])
def test_the_start_is_quick(code: str) -> None:
    took = []
    for _ in range(3):
        begin = time.perf_counter()
        loaded(code)
        took.append(time.perf_counter() - begin)
    assert min(took) < 1.0  # some 0.05 and 0.15 s on a machine that does nothing else


def test_every_public_name_is_found_and_listed() -> None:
    for name in xcorr_app.__all__:
        assert getattr(xcorr_app, name) is not None
    assert set(xcorr_app.__all__) <= set(dir(xcorr_app))
    assert set(xcorr_app._MODULES) == set(xcorr_app.__all__) - {"__version__"}
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = xcorr_app.nonsense
    assert xcorr_app.filters.__name__ == "xcorr_app.filtering.named"
