"""The suites of ``xcorr bench``, by the name of their command."""

from __future__ import annotations

from xcorr_app.bench.filters.suite import FILTERS
from xcorr_app.bench.im2win.suite import IM2WIN
from xcorr_app.bench.pointwise.suite import POINTWISE

__all__ = ["SUITES"]

SUITES = {suite.name: suite for suite in (FILTERS, IM2WIN, POINTWISE)}
