"""Peaks among fp16 sums, whose values are then recomputed: for batches of one size, all of it prepared."""

from __future__ import annotations

import math
from typing import Any

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.peaks.near_peak import SHIFTS, near_peak_launches
from xcorr_app.gpu.peaks.search import plane_peak_launch
from xcorr_app.gpu.peaks.summed_area import SummedAreaTables
from xcorr_app.gpu.runtime.binder import BoundLaunch
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.runtime.scratch import Scratch
from xcorr_app.gpu.tensor.sums import FP16_ERROR, prepared_sums


class Fp16Peaks:
    """Finds the peaks of one problem on the current device; a call looks nothing up but memory."""

    def __init__(
        self,
        problem: Problem,
        types: tuple[Any, Any],
        tables: SummedAreaTables,
        kernel: str,
        *,
        normalize: bool,
        min_overlap_pixels: int,
        device: DeviceLimits,
    ) -> None:
        self._edges = tables.rows, tables.columns
        self._sums = prepared_sums(problem, *types, tables.cells, kernel)
        search = plane_peak_launch(
            problem, normalize=normalize, device=device, centred=(types[0].kind != "f", types[1].kind != "f")
        )
        assert search is not None, "finds_peaks() was not asked"  # noqa: S101 - a mistake of ours, not of the user
        near = near_peak_launches(
            problem,
            error=FP16_ERROR if normalize else None,
            normalize=normalize,
            left_type=types[0].name,
            right_type=types[1].name,
            device=device,
        )
        numbers, of_scores = problem.arguments(), (*tables.sizes, min_overlap_pixels)
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
