"""The suites of ``python -m benchmarks``, by the name of their command."""

from __future__ import annotations

from benchmarks.filters.suite import FILTERS
from benchmarks.im2win.suite import IM2WIN
from benchmarks.pointwise.suite import POINTWISE

__all__ = ["SUITES"]

SUITES = {suite.name: suite for suite in (FILTERS, IM2WIN, POINTWISE)}
