"""What starting costs: ``import xcorr_app``, help and completion load nothing that computes, draws or reads files."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tifffile

import xcorr_app
from tests.conftest import ROOT
from tests.registration.scenes import drifting

HEAVY = {"numpy", "scipy", "matplotlib", "cv2", "skimage", "tifffile", "imagecodecs", "cupy", "rich", "jinja2"}
HEAVY |= {"dask", "distributed", "xarray", "zarr", "h5py"}
COMMANDS = ("align", "completion", "correlate", "env", "filter", "tune", "unmix")
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


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_loads_that_command_alone(name: str) -> None:
    modules = loaded(command(name, "--help"))
    assert not modules & HEAVY
    of_cli = {"choices", "failures", "help", "options", "signals", "standard_output", "values"}
    shared = {"cli", *(f"cli.{name}" for name in of_cli), "correlation", "correlation.engine_names", "errors"}
    shared = {f"xcorr_app.{module}" for module in shared}
    assert own(modules) - shared == {f"xcorr_app.cli.{name}"}


def test_a_plain_run_on_a_cpu_loads_no_function_of_scipy(tmp_path: Path) -> None:
    movie = drifting([(0, 0), (2, -1), (3.5, 1.25)], shape=(128, 128))
    stack = (1000 * (movie - movie.min())).astype(np.uint16)
    tifffile.imwrite(tmp_path / "movie.tif", stack, photometric="minisblack")
    places = str(tmp_path / "movie.tif"), "-o", str(tmp_path / "out")
    modules = loaded(command("align", *places, "-q", "--device", "cpu"))
    assert (tmp_path / "out" / "report.html").exists()
    # They bring much of NumPy with them that nothing needs, which takes longer than all other imports.
    assert not modules & {"scipy.fft", "scipy.special", "scipy.ndimage", "scipy.optimize", "numpy.f2py"}


@pytest.mark.parametrize("line", ["xcorr ", "xcorr align --device cpu --re"])
def test_completion_loads_nothing_heavy(line: str) -> None:
    asked = {"_XCORR_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split(" ")) - 1)}
    assert not loaded(command(), **asked) & HEAVY


def test_completed_words_are_printed() -> None:
    asked = {"_XCORR_COMPLETE": "bash_complete", "COMP_WORDS": "xcorr c", "COMP_CWORD": "1"}
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; {command()}"],
        cwd=ROOT,
        env=os.environ | asked,
        capture_output=True,
        text=True,
        check=True,
    )
    assert run.stdout.split() == ["plain,completion", "plain,correlate"]


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
