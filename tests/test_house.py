"""The house as a whole: layers, packaging, the public face."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder

import xcorr_app

ROOT = Path(__file__).resolve().parent.parent
LAYERS = (
    "errors",
    "decision",
    "gpu",
    "correlation",
    "filtering",
    "registration",
    "io",
    "report",
    "pipeline",
    "batch",
    "cli",
)
"""From the lowest to the highest; a module imports from its own layer and those before it."""
MODULES = sorted(path for path in (ROOT / "xcorr_app").rglob("*.py") if path.parent != ROOT / "xcorr_app")


def imported_layers(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the layer they come from"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name.split(".")[1] for name in names if name.startswith("xcorr_app.")} & set(LAYERS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT / "xcorr_app")))
def test_a_layer_imports_only_from_those_below_it(path: Path) -> None:
    own = path.relative_to(ROOT / "xcorr_app").parts[0]
    above = {layer for layer in imported_layers(path) if LAYERS.index(layer) > LAYERS.index(own)}
    assert not above


@pytest.fixture(scope="module")
def wheel_names(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("wheel")), versions=["standard"])
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_the_wheel_holds_every_kernel_template_and_table(wheel_names: set[str]) -> None:
    kernels = [path for path in (ROOT / "kernels").rglob("*") if path.suffix in {".cu", ".cuh"}]
    templates = list((ROOT / "xcorr_app" / "report" / "templates").iterdir())
    tables = list((ROOT / "xcorr_app").rglob("*.json"))
    assert kernels
    assert templates
    assert tables
    expected = {f"xcorr_app/{path.relative_to(ROOT).as_posix()}" for path in kernels}
    expected |= {path.relative_to(ROOT).as_posix() for path in templates + tables}
    assert expected <= wheel_names


def test_the_wheel_holds_nothing_but_the_package(wheel_names: set[str]) -> None:
    assert {name.split("/")[0] for name in wheel_names if ".dist-info" not in name} == {"xcorr_app"}


def test_every_kernel_and_header_has_its_place_in_the_table() -> None:
    text = (ROOT / "kernels" / "README.md").read_text()
    files = [path for path in (ROOT / "kernels").rglob("*.cu*") if path.suffix in {".cu", ".cuh"}]
    assert [path.name for path in files if f"{path.name}`" not in text] == []


def test_everything_public_is_documented() -> None:
    for name in xcorr_app.__all__:
        if name != "__version__":
            assert getattr(xcorr_app, name).__doc__, name


@pytest.mark.parametrize(
    "name",
    [
        module.name
        for module in pkgutil.walk_packages(xcorr_app.__path__, "xcorr_app.")
        if not module.name.endswith("__main__")
    ],
)
def test_examples_in_docstrings_are_true(name: str) -> None:
    failures, _ = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert failures == 0
