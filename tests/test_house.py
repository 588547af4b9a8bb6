"""The house as a whole: layers, packaging, the public face."""

import ast
import doctest
import graphlib
import importlib
import pkgutil
from functools import cache
from pathlib import Path

import pytest

import xcorr_app

ROOT = Path(__file__).resolve().parent.parent
LAYERS = (
    "errors",
    "system",
    "decision",
    "gpu",
    "arrays",
    "correlation",
    "filtering",
    "registration",
    "io",
    "report",
    "pipeline",
    "cluster",
    "batch",
    "cli",
    "napari",
)
"""From the lowest to the highest; a module imports from its own layer and those before it."""
LARGEST = {
    "xcorr_app/arrays": 222,
    "xcorr_app/batch": 2460,
    "xcorr_app/cli": 704,
    "xcorr_app/cluster": 227,
    "xcorr_app/correlation": 1940,
    "xcorr_app/filtering": 1458,
    "xcorr_app/gpu": 4314,
    "xcorr_app/io": 4246,
    "xcorr_app/napari": 178,
    "xcorr_app/pipeline": 1076,
    "xcorr_app/registration": 10_091,
    "xcorr_app/report": 985,
    "benchmarks": 3696,
    "tests": 18887,
}
"""Statements that a folder holds at most."""
MODULES = sorted(path for path in (ROOT / "xcorr_app").rglob("*.py") if path.parent != ROOT / "xcorr_app")


@cache
def imported(path: Path) -> set[str]:
    """Every name of ours that a file imports, inside functions too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the layer they come from"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.startswith("xcorr_app.")}


def imported_layers(path: Path) -> set[str]:
    return {name.split(".")[1] for name in imported(path)} & set(LAYERS)


def test_a_layer_imports_only_from_those_below_it() -> None:
    above = {}
    for path in MODULES:
        name = path.relative_to(ROOT / "xcorr_app")
        own = LAYERS.index(name.parts[0])
        above[str(name)] = {layer for layer in imported_layers(path) if LAYERS.index(layer) > own}
    assert {name: layers for name, layers in above.items() if layers} == {}


def subpackages(package: Path) -> dict[str, Path]:
    return {path.parent.name: path.parent for path in package.glob("*/__init__.py")}


def imported_subpackages(of: Path, package: Path) -> set[str]:
    """Which subpackages of a package one of them imports."""
    inside = ".".join(package.relative_to(ROOT).parts) + "."
    names = {name for path in of.rglob("*.py") for name in imported(path) if name.startswith(inside)}
    return {name.removeprefix(inside).split(".")[0] for name in names} & subpackages(package).keys() - {of.name}


PACKAGES = sorted(path.parent for path in (ROOT / "xcorr_app").rglob("__init__.py") if subpackages(path.parent))


@pytest.mark.parametrize("package", PACKAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_subpackages_do_not_import_each_other_in_rings(package: Path) -> None:
    """What stands in a ring can only be read, and changed, all at once.

    Files beside the subpackages are not asked: they say what the subpackages do together or what all of them share.
    """
    graph = {name: imported_subpackages(path, package) for name, path in subpackages(package).items()}
    graphlib.TopologicalSorter(graph).prepare()


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def test_files_do_not_import_each_other_in_rings() -> None:
    """Not inside functions or for the type checker alone, either."""
    files = {module_name(path): path for path in MODULES}
    graph = {}
    for name, path in files.items():
        names = {each for full in imported(path) for each in (full, full.rpartition(".")[0])}
        graph[name] = {each for each in names & files.keys() - {name} if not name.startswith(f"{each}.")}
    graphlib.TopologicalSorter(graph).prepare()


def test_what_tests_of_a_device_import_is_there() -> None:
    """Without a device nobody else reads them."""
    tests = ROOT / "tests"
    missing = set()
    for path in [*(tests / "gpu").rglob("*.py"), *tests.rglob("*_on_device.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[0] in {
                "benchmarks",
                "tests",
                "xcorr_app",
            }:
                missing |= {
                    f"{path.name}: {node.module}.{name.name}" for name in node.names if not importable(node, name)
                }
    assert missing == set()


def importable(node: ast.ImportFrom, name: ast.alias) -> bool:
    try:
        found = importlib.import_module(str(node.module))
        return hasattr(found, name.name) or importlib.import_module(f"{node.module}.{name.name}") is not None
    except ImportError:
        return False


def test_everything_public_is_documented() -> None:
    assert dir(xcorr_app) == sorted(xcorr_app.__all__)
    for name in xcorr_app.__all__:
        if name != "__version__":
            assert getattr(xcorr_app, name).__doc__, name


def test_examples_in_docstrings_are_true(capsys: pytest.CaptureFixture[str]) -> None:
    modules = [module.name for module in pkgutil.walk_packages(xcorr_app.__path__, "xcorr_app.")]
    tried = 0
    for name in modules:
        if not name.endswith("__main__"):
            done = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
            tried += done.attempted
            assert done.failed == 0, f"{name}:\n{capsys.readouterr().out}"
    assert tried > 0


def statements(folder: Path) -> int:
    """Statements of the modules in a folder as Python's parser counts them, docstrings aside."""
    found = 0
    for path in folder.rglob("*.py"):
        nodes = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.stmt)]
        found += sum(not (isinstance(n, ast.Expr) and isinstance(n.value, ast.Constant)) for n in nodes)
    return found


@pytest.mark.parametrize("folder", sorted(LARGEST))
def test_no_folder_grows(folder: str) -> None:
    """Who needs more statements finds some to leave out first: what a folder holds is counted down, not up."""
    assert statements(ROOT / folder) <= LARGEST[folder]


if __name__ == "__main__":
    for name in sorted(LARGEST):
        print(f"{name:24} {statements(ROOT / name):6}")
