"""Peaks among sums of half precision, whose values are then made anew: for batches of one size, all of it prepared."""

from __future__ import annotations

import math
from typing import Any

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.near_peak import SHIFTS, near_peak_launches
from xcorr_app.gpu.peaks.search import plane_peak_launch
from xcorr_app.gpu.peaks.summed_area import RectangleTables
from xcorr_app.gpu.runtime.binder import BoundLaunch
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.scratch import Scratch
from xcorr_app.gpu.tensor.run import HALF_ERROR, prepared_sums

__all__ = ["HalfPeaks"]


class HalfPeaks:
    """Finds the peaks of one problem on the current device; a call looks nothing up but memory.

    Parameters
    ----------
    problem : Problem
        Of so many pairs that a launch's indices fit 32 bits.
    types : tuple of numpy.dtype
        Of lefts and rights.
    tables : RectangleTables
        Of the problem's window.
    normalize : bool
        Whether the values are scores, or the sums themselves.
    least_overlap : int
        Shifts at which fewer elements overlap do not count.
    device : DeviceLimits
        The current one's.
    """

    def __init__(
        self,
        problem: Problem,
        types: tuple[Any, Any],
        tables: RectangleTables,
        *,
        normalize: bool,
        least_overlap: int,
        device: DeviceLimits,
    ) -> None:
        self._edges = tables.rows, tables.columns
        self._sums = prepared_sums(problem, *types, tables.cells)
        search = plane_peak_launch(
            problem, normalize=normalize, device=device, centred=(types[0].kind != "f", types[1].kind != "f")
        )
        assert search is not None, "finds_peaks() was not asked"  # noqa: S101 - a mistake of ours, not of the user
        near = near_peak_launches(
            problem,
            error=HALF_ERROR if normalize else None,
            normalize=normalize,
            left_type=types[0].name,
            right_type=types[1].name,
            device=device,
        )
        numbers, of_scores = problem.arguments(), (*tables.sizes, least_overlap)
        self._search = BoundLaunch.of(search, (*numbers, *of_scores))
        self._near = tuple(BoundLaunch.of(launch, (*numbers, *launch.extra, *of_scores)) for launch in near)
        segments = max(launch.segments for launch in near)
        self._scratch = Scratch(
            (problem.pairs * math.prod(problem.plane_shape), "float32"),
            (problem.pairs * segments * SHIFTS if segments > 1 else 0, "float64"),
            counters=problem.pairs if segments > 1 else 0,
        )

    def __call__(self, lefts: Any, rights: Any, tables: tuple[Any, Any], records: Any) -> None:
        """Write the records of all pairs; `tables` are those of lefts and rights."""
        planes, workspace, arrived = self._scratch()
        self._sums(lefts, rights, tables, planes)
        self._search(planes, *tables, *self._edges, records)
        for near in self._near:
            near(lefts, rights, workspace, arrived, *tables, *self._edges, records)
