"""Peaks of correlations on the device: matrices in, 29 numbers a pair out; planes stay inside, if there are any."""

from __future__ import annotations

import importlib
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from xcorr_app.correlation.choice import FUSED, decide_peaks
from xcorr_app.gpu.direct.kernels import max_pairs
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.gpu.direct.problem import Part, Problem
from xcorr_app.gpu.direct.run import correlate_on_device
from xcorr_app.gpu.peaks.search import RECORD, peak_launch, plane_peak_launch
from xcorr_app.gpu.peaks.summed_area import tables_for
from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.constants import constants
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.runtime.types import name_of
from xcorr_app.gpu.tensor.fp16_peaks import Fp16Peaks

_PLANE_BYTES = 256 << 20
"""Planes made at a time where the launch that sums does not find the peak too."""
_TABLE_BYTES = 256 << 20
"""Summed-area tables made at a time."""

_Batch = tuple[int, int, int, str, str]


@dataclass(frozen=True)
class _Plan:
    """How a batch is done: the kernel of all its parts, and the parts."""

    kernel: str
    parts: tuple[Part, ...]


class PeakFinder:
    """Finds peaks for matrices of fixed shapes within a fixed window of shifts.

    Parameters
    ----------
    window : Problem
        Shapes and window; its batch does not matter. `finds_peaks` must hold for its plane.
    normalize : bool, optional
        Whether scores are zero-mean normalised over each overlap (then the left matrices should have zero mean), or the
        plain sums themselves.
    min_overlap_pixels : int, optional
        Shifts at which fewer elements overlap do not count.
    engine : str, optional
        ``"direct"``, or ``"tensor"``: find peaks among fp16 sums, and recompute the values around each in single
        precision: 3 x 3, or 5 x 5 where fp16 does not tell that the outer are lower. Where one of these is higher than
        the peak, the record's row is -1 less the row.
    options : KernelOptions, optional
        A variant asked for here makes planes first, as no variant but one finds peaks itself.
    kernel : str, optional
        Run this one instead of the one that `decide_peaks` answers, to measure it.
    canonical_batch : (int, int), optional
        Numbers of lefts and rights for which kernels and launches are chosen, whatever the numbers in a call: then what
        is found of a pair does not depend on how many there are.
    """

    def __init__(
        self,
        window: Problem,
        *,
        normalize: bool = True,
        min_overlap_pixels: int = 1,
        engine: str = "direct",
        options: KernelOptions | None = None,
        kernel: str | None = None,
        canonical_batch: tuple[int, int] | None = None,
    ) -> None:
        self._canonical_batch = canonical_batch
        self._cupy = cupy = importlib.import_module("cupy")
        self._window, self._normalize, self._least = window, normalize, min_overlap_pixels
        self._tables = tables_for(window)
        self._device = device_limits(current_device())
        self._engine, self._options, self._kernel = engine, options or KernelOptions(), kernel
        self._with_tables = normalize or engine == "tensor"
        self._nothing = constants(cupy, lambda: cupy.zeros(2))
        self._fp16_peaks: dict[tuple[Problem, str, Any, Any], Fp16Peaks] = {}
        self._plans: dict[_Batch, _Plan] = {}

    def left_tables(self, lefts: Any) -> Any:
        """Summed-area tables of left matrices (n, H, W), to be used any number of times."""
        return self._tables.left(lefts, self._canonical_batch[0] if self._canonical_batch else 0)

    def _right_tables(self, rights: Any) -> Any:
        return self._tables.right(rights, self._canonical_batch[1] if self._canonical_batch else 0)

    def right_tables(self, lefts: int, rights: Any, rights_per_left: int, left_type: str) -> Any:
        """Begin with the tables that `find` needs of rights; None where it makes them in parts, or needs none."""
        batch = lefts, rights.shape[0], rights_per_left, left_type, name_of(rights.dtype)
        plan = self._plans.get(batch) or self._plan_of(batch)
        whole = self._with_tables and len(plan.parts) == 1
        return self._right_tables(rights) if whole else None

    def find(
        self, lefts: Any, rights: Any, rights_per_left: int, left_tables: Any = None, right_tables: Any = None
    ) -> tuple[Any, Any]:
        """Sum, score and search every pair, without writing planes where one block covers the window.

        Parameters
        ----------
        lefts, rights : cupy.ndarray
            (n, H, W) and (m, H', W'), dense, each of a type that kernels read. Pairs as in `Problem`.
        rights_per_left : int
            Number of rights that each left is correlated with.
        left_tables : cupy.ndarray, optional
            What `left_tables` made of `lefts`.
        right_tables : cupy.ndarray, optional
            What `right_tables` made of `rights`, for as many lefts of the same type.

        Returns
        -------
        records : cupy.ndarray of float64, shape (pairs, 29)
            For `PeakRecords.of`; nothing has waited for the device.
        sums : cupy.ndarray of float64, shape (m, i, j, 2)
            ``sums[:, -1, -1]`` are the sum and sum of squares of every right matrix; zero where neither scores nor
            tensor cores need them, or one block does all of a pair.
        """
        cupy = self._cupy
        types = name_of(lefts.dtype), name_of(rights.dtype)
        batch = lefts.shape[0], rights.shape[0], rights_per_left, *types
        plan = self._plans.get(batch) or self._plan_of(batch)
        records = cupy.empty((lefts.shape[0] * rights_per_left, RECORD))
        wanted = self._with_tables
        if left_tables is None and wanted and lefts.shape[0] == 1:
            left_tables = self.left_tables(lefts)
        if wanted and len(plan.parts) == 1:
            of_right = self._right_tables(rights) if right_tables is None else right_tables
            of_left = self.left_tables(lefts) if left_tables is None else left_tables
            self._find_part(plan, plan.parts[0].problem, lefts, rights, (of_left, of_right), records)
            return records, of_right
        sums = cupy.zeros((rights.shape[0], 1, 1, 2))
        for part in plan.parts:
            these = lefts[part.left : part.left + part.problem.lefts]
            those = rights[part.right : part.right + part.problem.rights]
            tables = self._nothing, self._nothing
            if wanted:
                of_right = self._right_tables(those)
                sums[part.right : part.right + part.problem.rights] = of_right[:, -1:, -1:]
                if left_tables is None:
                    tables = self.left_tables(these), of_right
                else:
                    tables = left_tables[part.left : part.left + part.problem.lefts], of_right
            into = records[part.plane : part.plane + part.problem.pairs]
            self._find_part(plan, part.problem, these, those, tables, into)
        return records, sums

    def _plan_of(self, batch: _Batch) -> _Plan:
        """Decide how a batch is done, once for each size and types."""
        lefts, rights, rights_per_left, *types = batch
        problem = chosen = replace(self._window, lefts=lefts, rights=rights, rights_per_left=rights_per_left)
        if self._canonical_batch is not None:
            (lefts, rights), each = self._canonical_batch, self._canonical_batch[1] // self._canonical_batch[0]
            chosen = replace(self._window, lefts=lefts, rights=rights, rights_per_left=each)
        kernel = (
            self._kernel
            or decide_peaks(
                chosen,
                dtypes=(types[0], types[1]),
                engine=self._engine,
                options=self._options,
                normalize=self._normalize,
                limits=self._device,
            ).kernel
        )
        at_once = self._pairs_at_once(chosen, kernel)
        if self._canonical_batch is not None:
            problem = replace(problem, canonical_batch=next(chosen.parts(at_once)).problem)
        plan = self._plans[batch] = _Plan(kernel, tuple(problem.parts(at_once)))
        return plan

    def _pairs_at_once(self, problem: Problem, kernel: str) -> int:
        left_cells, cells = self._tables.cells
        if problem.lefts > 1:
            cells += left_cells
        pairs = max(1, _TABLE_BYTES // (32 * cells)) if self._with_tables else problem.pairs
        if kernel != FUSED:
            pairs = min(pairs, max(1, _PLANE_BYTES // (4 * math.prod(problem.plane_shape))))
        return min(pairs, max_pairs("combined", problem))

    def _find_part(
        self, plan: _Plan, problem: Problem, lefts: Any, rights: Any, tables: tuple[Any, Any], records: Any
    ) -> None:
        if self._engine == "tensor":
            kind = problem, plan.kernel, lefts.dtype, rights.dtype
            peaks = self._fp16_peaks.get(kind) or self._fp16_peaks_of(kind)
            peaks(lefts, rights, tables, records)
            return
        if plan.kernel == FUSED:
            self._search_fused(problem, lefts, rights, tables, records)
            return
        planes = correlate_on_device(lefts, rights, problem, plan.kernel, tuning=self._options.tuning())
        launch = plane_peak_launch(problem, normalize=self._normalize, device=self._device)
        assert launch is not None, "finds_peaks() was not asked"  # noqa: S101 - a mistake of ours, not of the user
        arrays = (planes, *tables, self._tables.rows, self._tables.columns, records)
        start(launch, arrays, (*problem.arguments(), *self._normalizer_numbers()))

    def _search_fused(self, problem: Problem, lefts: Any, rights: Any, tables: tuple[Any, Any], records: Any) -> None:
        cupy = self._cupy
        types = {"left_type": name_of(lefts.dtype), "right_type": name_of(rights.dtype)}
        launch = peak_launch(problem, normalize=self._normalize, **types, device=self._device)
        assert launch is not None, "the kernel was chosen for a window that it does not take"  # noqa: S101 - our mistake
        workspace, arrived = self._nothing, self._nothing
        if launch.segments > 1:
            workspace = cupy.empty(problem.pairs * launch.segments * math.prod(problem.plane_shape), np.float32)
            arrived = cupy.zeros(problem.pairs, np.int32)
        arrays = (lefts, rights, workspace, arrived, *tables, self._tables.rows, self._tables.columns, records)
        start(launch, arrays, (*problem.arguments(), *launch.extra, *self._normalizer_numbers()))

    def _fp16_peaks_of(self, kind: tuple[Problem, str, Any, Any]) -> Fp16Peaks:
        """Prepare the launches of a part, once for each size and types."""
        problem, kernel, *types = kind
        found = self._fp16_peaks[kind] = Fp16Peaks(
            problem,
            (types[0], types[1]),
            self._tables,
            kernel,
            normalize=self._normalize,
            min_overlap_pixels=self._least,
            device=self._device,
        )
        return found

    def _normalizer_numbers(self) -> tuple[int, ...]:
        return (*self._tables.sizes, self._least)
