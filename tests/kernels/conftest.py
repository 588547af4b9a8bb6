"""Builds of the kernels for the host are made once for a test session."""

from __future__ import annotations

import shutil

import pytest


@pytest.fixture(scope="session")
def host_builds(tmp_path_factory):
    """Folder of the shared libraries that the shim makes of the kernels."""
    if shutil.which("g++") is None:
        pytest.skip("g++ is not installed")
    return tmp_path_factory.mktemp("host_builds")
