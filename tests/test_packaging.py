"""What is shipped: contents of wheel and source archive, versions, the oldest ones that are allowed, other systems."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from typing import Any

import pytest
from packaging.metadata import Metadata

from tests.conftest import ROOT
from xcorr_app import __version__

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def archives(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Names of the files in the wheel and in the source archive, as the build backend makes them, and what it says."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=ROOT, check=True, capture_output=True
    )
    (wheel,), (source,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as packed:
        in_wheel, metadata = set(packed.namelist()), packed.read(f"xcorr_app-{__version__}.dist-info/METADATA")
    with tarfile.open(source) as packed_source:
        in_source = {name.partition("/")[2] for name in packed_source.getnames()}
    return {"wheel": in_wheel, "source": in_source, "metadata": metadata}


def kept(folder: str, *endings: str) -> set[str]:
    """Files below a folder of the checkout with one of the endings."""
    paths = (ROOT / folder).rglob("*")
    return {str(path.relative_to(ROOT)) for path in paths if path.suffix in endings and "__pycache__" not in path.parts}


def test_the_wheel_holds_the_program_its_kernels_and_nothing_else(archives: dict[str, Any]) -> None:
    wheel = archives["wheel"]
    about = f"xcorr_app-{__version__}.dist-info/"
    assert {each.partition("/")[0] for each in wheel} == {"xcorr_app", about[:-1]}
    assert kept("xcorr_app", ".py", ".json", ".yaml", ".typed", ".html", ".css", ".js", ".jinja") <= wheel
    kernels = {f"xcorr_app/{name}" for name in kept("kernels", ".cu", ".cuh")}
    assert kernels
    assert kernels <= wheel
    assert {f"{about}licenses/LICENSE", f"{about}entry_points.txt", f"{about}METADATA"} <= wheel
    assert not [name for name in wheel if name.endswith((".pyc", ".ipynb", ".orig"))]


def test_the_source_archive_holds_what_tests_and_pages_need(archives: dict[str, Any]) -> None:
    source = archives["source"]
    for name in (
        "README.md",
        "CHANGELOG.md",
        "CITATION.cff",
        "LICENSE",
        "Makefile",
        "mkdocs.yml",
        "Dockerfile",
        "PKG-INFO",
    ):
        assert name in source, name
    for folder in ("xcorr_app", "tests", "docs", "benchmarks", "sample_data"):
        assert kept(folder, ".py", ".md", ".json", ".tif", ".webp", ".png") <= source, folder
    assert not [name for name in source if name.startswith((".venv", "build/", "dist/", "demo_out"))]


def test_an_index_would_take_them(archives: dict[str, Any]) -> None:
    """What `twine check` asks of the metadata, and a licence by its SPDX identifier."""
    known = Metadata.from_email(archives["metadata"], validate=True)
    assert known.license_expression == "BSD-3-Clause"
    assert known.description_content_type == "text/markdown"
    assert known.description == (ROOT / "README.md").read_text(encoding="utf-8")
    for file in ("CITATION.cff", "Dockerfile", "packaging/conda/recipe.yaml"):
        assert "BSD-3-Clause" in (ROOT / file).read_text(encoding="utf-8"), file


def test_the_image_has_every_extra_that_runs_without_a_gpu() -> None:
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    (extras,) = re.findall(r"/source\[([\w,]+)\$", dockerfile)
    others = {
        "gpu",
        "gpu-cuda12",
        "test",
        "dev",
        "docs",
        "bench",
        "napari",
    }  # GPUs are asked for, a screen is not there
    assert set(extras.split(",")) == PROJECT["optional-dependencies"].keys() - others


def test_versions_agree() -> None:
    assert f"\n## {__version__} (" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert PROJECT["version"] == __version__
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {__version__}\n" in citation
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    assert f'version: "{__version__}"' in recipe
    for python in ("3.11", "3.12", "3.13", "3.14"):
        assert f"Programming Language :: Python :: {python}" in PROJECT["classifiers"]


def test_the_oldest_versions_are_those_that_are_allowed() -> None:
    lines = (ROOT / "tests" / "oldest.txt").read_text(encoding="utf-8").splitlines()
    oldest = dict(line.removesuffix(".*").split("==") for line in lines if "==" in line and not line.startswith("#"))
    assert oldest == dict(needed.split(">=") for needed in PROJECT["dependencies"])
    recipe = (ROOT / "packaging" / "conda" / "recipe.yaml").read_text(encoding="utf-8")
    run = dict(re.findall(r"^    - ([a-z0-9-]+) >=(\S+)$", recipe.partition("  run:")[2], re.MULTILINE))
    names = {"opencv-python-headless": "opencv", "xxhash": "python-xxhash", "matplotlib": "matplotlib-base"}
    assert run == {names.get(name, name): version for name, version in oldest.items()} | {"python": "3.11"}
