"""Fixtures that every test can use."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

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


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the tests that need a device out unless they are asked for."""
    if "gpu" in (config.getoption("-m") or ""):
        return
    wanted, others = [], []
    for item in items:
        (others if item.get_closest_marker("gpu") else wanted).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = wanted
