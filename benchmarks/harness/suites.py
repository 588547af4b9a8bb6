"""The suites of ``python -m benchmarks``, by the name of their command."""

from __future__ import annotations

from benchmarks.ablation.documents import DOCUMENTS
from benchmarks.filters.suite import FILTERS
from benchmarks.im2win.suite import IM2WIN
from benchmarks.pointwise.suite import POINTWISE

__all__ = ["ALL_SUITES", "SUITES"]

SUITES = {suite.name: suite for suite in (FILTERS, IM2WIN, POINTWISE)}

ALL_SUITES = SUITES | {suite.name: suite for suite in DOCUMENTS.values()}
"""Those, and the ablations', by the name under which a process of its own finds them."""
