"""A pytest plugin: runs one of several equal shares of the tests, which slow checkers can follow at the same time."""

from __future__ import annotations

import os

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep every n-th test, from the i-th on, of those that are chosen: ``XCORR_SHARE=i/n``, counted from one."""
    number, count = (int(part) for part in os.environ.get("XCORR_SHARE", "1/1").split("/"))
    items[:] = items[number - 1 :: count]
