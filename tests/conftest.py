"""Fixtures that every test can use."""

import importlib
import importlib.util
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import share
from tests.kernels import build_cache

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(params=[pytest.param("numpy"), pytest.param("cupy", marks=pytest.mark.gpu)])
def xp(request: pytest.FixtureRequest) -> Any:
    """Array module: the same test body runs on NumPy anywhere and on CuPy under ``pytest -m gpu``."""
    if request.param == "numpy":
        return np
    cupy = importlib.import_module("cupy")
    cupy.cuda.Device(0).use()
    return cupy


@pytest.fixture(scope="session")
def cupy() -> Any:
    """CuPy, for tests on a device."""
    return pytest.importorskip("cupy")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of real stacks with known answers, beside the repository where there is one."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"no real stacks at {folder}")
    return folder


@pytest.fixture
def rng() -> np.random.Generator:
    """Random numbers, the same in every run."""
    return np.random.default_rng(20260101)


@pytest.fixture(scope="session")
def host_builds() -> Path:
    """Folder of the shared libraries that the shim makes of the kernels, kept for later runs."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    return build_cache.cache_folder()


_NEEDS = {"arrays": "dask", "cluster": "distributed", "ome_zarr": "zarr"}
"""Folders of tests, and packages that they import, which a machine with a device may lack."""


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files unread whose tests all need a device, unless those are asked for; then those for other machines."""
    of_device = collection_path == ROOT / "tests" / "gpu" or collection_path.name.endswith("_on_device.py")
    if _asked_for(config, "gpu"):
        needed = _NEEDS.get(collection_path.name)
        return True if needed is not None and importlib.util.find_spec(needed) is None else None
    return True if of_device else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what needs a device or takes long, and of many like cases most, unless they are asked for."""
    named = any("::" in argument for argument in config.args)
    left_out = {mark for mark in ("gpu", "slow") if not _asked_for(config, mark)}
    if named:
        left_out.discard("slow")
    number: Counter[tuple[Path, str, bool]] = Counter()
    others = []
    for item in items:
        on_device = bool(item.get_closest_marker("gpu"))
        test = item.path, getattr(item, "originalname", item.name), on_device
        mark = item.get_closest_marker("share")
        sampled = named or share.everything() or mark is None or number[test] % mark.args[0] == 0
        number[test] += 1
        if not sampled or any(item.get_closest_marker(mark) for mark in left_out):
            others.append(item)
    config.hook.pytest_deselected(items=others)
    left_out_items = set(others)
    items[:] = [item for item in items if item not in left_out_items]


def _asked_for(config: pytest.Config, mark: str) -> bool:
    return mark in (config.getoption("-m") or "")


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Keep what the compilers made within bounds; of several workers, their controller does it."""
    if not hasattr(session.config, "workerinput"):
        build_cache.prune(build_cache.cache_folder())
