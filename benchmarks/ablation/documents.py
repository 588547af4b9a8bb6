"""The four documents by the names of their pages, and the suite that measures what each evaluates."""

from __future__ import annotations

from benchmarks.ablation.correlation import CORRELATION
from benchmarks.ablation.im2win import IM2WIN
from benchmarks.ablation.pointwise import POINTWISE
from benchmarks.ablation.reuse import REUSE
from benchmarks.work.suite import Suite

__all__ = ["DOCUMENTS"]

DOCUMENTS: dict[str, Suite] = {
    "correlation": CORRELATION,
    "reuse": REUSE,
    "im2win": IM2WIN,
    "pointwise": POINTWISE,
}
