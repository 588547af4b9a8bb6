"""The suites of ``python -m benchmarks``: one a family of kernels, and one for what each document evaluates."""

from __future__ import annotations

from benchmarks.ablation import correlation, im2win, pointwise, reuse
from benchmarks.correlation.suite import CORRELATION
from benchmarks.filters.suite import FILTERS
from benchmarks.pointwise.suite import POINTWISE

SUITES = {suite.name: suite for suite in (CORRELATION, FILTERS, POINTWISE)}
"""By the name of their command."""
DOCUMENTS = {
    "correlation": correlation.SUITE,
    "reuse": reuse.SUITE,
    "im2win": im2win.SUITE,
    "pointwise": pointwise.SUITE,
}
"""By the name of the document's page."""
ALL_SUITES = SUITES | {suite.name: suite for suite in DOCUMENTS.values()}
"""By the name under which a process of its own finds them."""
