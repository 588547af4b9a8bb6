"""Peaks of correlations on the device: matrices in, 29 numbers a pair out; planes stay inside, if there are any."""

from __future__ import annotations

import functools
import importlib
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.gpu.direct.costs import costs, fastest_variant
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.gpu.direct.problem import Part, Problem
from xcorr_app.gpu.direct.run import correlate_on_device
from xcorr_app.gpu.direct.variants import most_pairs
from xcorr_app.gpu.peaks.search import RECORD, peak_launch, plane_peak_launch
from xcorr_app.gpu.peaks.summed_area import RectangleTables
from xcorr_app.gpu.runtime.binder import start
from xcorr_app.gpu.runtime.launch import Launch
from xcorr_app.gpu.runtime.limits import DeviceLimits, device_limits
from xcorr_app.gpu.runtime.placement import current_device
from xcorr_app.gpu.tensor.fp16_peaks import HalfPeaks
from xcorr_app.gpu.tensor.small_hankel import small_hankel_launch

__all__ = ["PeakFinder", "PeakRecords", "finds_peaks"]

_PLANE_BYTES = 256 << 20
"""Planes made at a time where the launch that sums does not find the peak too."""
_TABLE_BYTES = 256 << 20
"""Tables of rectangle sums made at a time."""
_SEARCH = 1e-5
"""What searching a plane in memory costs beside making it, in microseconds a shift (measured on an H200)."""


@dataclass(frozen=True)
class PeakRecords:
    """Peaks of n planes, on the host.

    Attributes
    ----------
    row, column : ndarray of int, shape (n,)
        Of the peak in its plane.
    value : ndarray of float64, shape (n,)
        Its height; NaN where no shift counts.
    rival : ndarray of float64, shape (n,)
        Height of the highest other local maximum at least 3 shifts away; -inf where there is none.
    around : ndarray of float64, shape (n, 5, 5)
        Values around the peak; NaN outside the plane and where a shift does not count. In the outer sixteen also where
        half precision is enough to tell that they are lower than the peak.
    """

    row: NDArray[np.intp]
    column: NDArray[np.intp]
    value: NDArray[np.float64]
    rival: NDArray[np.float64]
    around: NDArray[np.float64]

    @classmethod
    def of(cls, records: Any) -> PeakRecords:
        """Bring what `PeakFinder.find` returned to the host."""
        host: NDArray[np.float64] = records.get()
        row, column = host[:, 0].astype(np.intp), host[:, 1].astype(np.intp)
        return cls(row, column, host[:, 2], host[:, 3], host[:, 4:].reshape(-1, 5, 5))

    def decided(self) -> PeakRecords:
        """Return the records with the rows of those that `PeakFinder` marked as undecided made plain again."""
        return replace(self, row=np.where(self.row < 0, -1 - self.row, self.row))


def finds_peaks(plane_shape: tuple[int, int]) -> bool:
    """Whether the scores of a plane of this size fit the shared memory of the current device's blocks."""
    problem = Problem((1, 1), (1, 1), (0, 0), plane_shape)
    return plane_peak_launch(problem, normalize=True, device=device_limits(current_device())) is not None


class PeakFinder:
    """Finds peaks for matrices of fixed shapes within a fixed window of shifts.

    Parameters
    ----------
    window : Problem
        Shapes and window; its batch does not matter. `finds_peaks` must hold for its plane.
    normalize : bool, optional
        Whether scores are zero-mean normalised over each overlap (then the left matrices should have zero mean), or the
        plain sums themselves.
    least_overlap : int, optional
        Shifts at which fewer elements overlap do not count.
    options : KernelOptions, optional
        A variant asked for here makes planes first, as no variant but one finds peaks itself.
    tensor : bool, optional
        Find peaks among sums of half precision, on tensor cores, and compute the values around each anew in single
        precision: 3 x 3, or 5 x 5 where half precision does not tell that the outer are lower. Where one of these is
        higher than the peak, the record's row is -1 less the row; for plain sums of small matrices also where a rival
        is so near that its rounding may hide that it is higher.
    """

    def __init__(
        self,
        window: Problem,
        *,
        normalize: bool = True,
        least_overlap: int = 1,
        options: KernelOptions | None = None,
        tensor: bool = False,
    ) -> None:
        self._cupy = cupy = importlib.import_module("cupy")
        self._window, self._normalize, self._least = window, normalize, least_overlap
        self._tables = RectangleTables(window)
        self._device = device_limits(current_device())
        self._options = options or KernelOptions()
        self._tensor = tensor
        self._nothing = cupy.zeros(2)
        self._half_peaks: dict[tuple[int, int, int, Any, Any], HalfPeaks] = {}
        self._parts: dict[tuple[int, int, int], tuple[Part, ...]] = {}

    def left_tables(self, lefts: Any) -> Any:
        """Rectangle sums of left matrices (n, H, W), to be used any number of times."""
        return self._tables.left(lefts)

    def find(self, lefts: Any, rights: Any, rights_per_left: int, left_tables: Any = None) -> tuple[Any, Any]:
        """Sum, score and search every pair, without writing planes where one block covers the window.

        Parameters
        ----------
        lefts, rights : cupy.ndarray
            (n, H, W) and (m, H', W'), dense, each of a type that kernels read. Pairs as in `Problem`.
        rights_per_left : int
            Number of rights that each left meets.
        left_tables : cupy.ndarray, optional
            What `left_tables` made of `lefts`.

        Returns
        -------
        records : cupy.ndarray of float64, shape (pairs, 29)
            For `PeakRecords.of`; nothing has waited for the device.
        sums : cupy.ndarray of float64, shape (m, i, j, 2)
            ``sums[:, -1, -1]`` are the sum and sum of squares of every right matrix; zero where neither scores nor
            `tensor` need them, or one block does all of a pair.
        """
        cupy = self._cupy
        batch = lefts.shape[0], rights.shape[0], rights_per_left
        records = cupy.empty((lefts.shape[0] * rights_per_left, RECORD))
        if self._tensor and not self._normalize:
            types = _type_name(lefts.dtype), _type_name(rights.dtype)
            small = _small_launch(self._window, batch, types, self._device)
            if small is not None:
                start(small, (lefts, rights, records), (rights_per_left, rights.shape[0], self._least))
                return records, cupy.zeros((rights.shape[0], 1, 1, 2))
        parts = self._parts.get(batch) or self._parts_of(*batch)
        wanted = self._normalize or self._tensor
        if left_tables is None and wanted and lefts.shape[0] == 1:
            left_tables = self.left_tables(lefts)
        if wanted and len(parts) == 1:
            of_right = self._tables.right(rights)
            of_left = self.left_tables(lefts) if left_tables is None else left_tables
            self._find_part(parts[0].problem, lefts, rights, of_left, of_right, records)
            return records, of_right
        sums = cupy.zeros((rights.shape[0], 1, 1, 2))
        for part in parts:
            these = lefts[part.left : part.left + part.problem.lefts]
            those = rights[part.right : part.right + part.problem.rights]
            of_left = of_right = None
            if wanted:
                of_right = self._tables.right(those)
                sums[part.right : part.right + part.problem.rights] = of_right[:, -1:, -1:]
                if left_tables is None:
                    of_left = self.left_tables(these)
                else:
                    of_left = left_tables[part.left : part.left + part.problem.lefts]
            into = records[part.plane : part.plane + part.problem.pairs]
            self._find_part(part.problem, these, those, of_left, of_right, into)
        return records, sums

    def _parts_of(self, lefts: int, rights: int, rights_per_left: int) -> tuple[Part, ...]:
        """Cut a batch into launches, once for each size of a batch."""
        problem = replace(self._window, lefts=lefts, rights=rights, rights_per_left=rights_per_left)
        parts = self._parts[lefts, rights, rights_per_left] = tuple(problem.parts(self._pairs_at_once(problem)))
        return parts

    def _pairs_at_once(self, problem: Problem) -> int:
        left_cells, cells = self._tables.cells
        if problem.lefts > 1:
            cells += left_cells
        pairs = max(1, _TABLE_BYTES // (32 * cells)) if self._normalize or self._tensor else problem.pairs
        if self._fused(problem, "float32", "float32") is None:
            pairs = min(pairs, max(1, _PLANE_BYTES // (4 * problem.plane_shape[0] * problem.plane_shape[1])))
        return min(pairs, most_pairs("combined", problem))

    def _fused(self, problem: Problem, left_type: str, right_type: str) -> Launch | None:
        if self._tensor or self._options.variant != "auto" or _planes_are_cheaper(problem, self._device):
            return None
        return peak_launch(
            problem, normalize=self._normalize, left_type=left_type, right_type=right_type, device=self._device
        )

    def _find_part(
        self, problem: Problem, lefts: Any, rights: Any, left_tables: Any, right_tables: Any, records: Any
    ) -> None:
        if self._tensor:
            batch = problem.lefts, problem.rights, problem.rights_per_left, lefts.dtype, rights.dtype
            half_peaks = self._half_peaks.get(batch) or self._half_peaks_of(problem, batch)
            half_peaks(lefts, rights, (left_tables, right_tables), records)
            return
        cupy = self._cupy
        tables = (left_tables, right_tables) if self._normalize else (self._nothing, self._nothing)
        launch = self._fused(problem, str(lefts.dtype), str(rights.dtype))
        if launch is None:
            variant = self._options.variant
            if variant == "auto":
                variant = fastest_variant(problem, self._device)
            planes = correlate_on_device(lefts, rights, problem, variant, tuning=self._options.tuning())
            self._search(planes, problem, tables, records)
            return
        shifts = problem.plane_shape[0] * problem.plane_shape[1]
        workspace, arrived = self._nothing, self._nothing
        if launch.segments > 1:
            workspace = cupy.empty(problem.pairs * launch.segments * shifts, np.float32)
            arrived = cupy.zeros(problem.pairs, np.int32)
        arrays = (lefts, rights, workspace, arrived, *tables, self._tables.rows, self._tables.columns, records)
        start(launch, arrays, (*problem.arguments(), *launch.extra, *self._normalizer_numbers()))

    def _half_peaks_of(self, problem: Problem, batch: tuple[int, int, int, Any, Any]) -> HalfPeaks:
        """Prepare the launches of a batch, once for each size and types."""
        found = self._half_peaks[batch] = HalfPeaks(
            problem,
            batch[3:],
            self._tables,
            normalize=self._normalize,
            least_overlap=self._least,
            device=self._device,
        )
        return found

    def _search(self, planes: Any, problem: Problem, tables: tuple[Any, Any], records: Any) -> None:
        launch = _search_launch(problem, self._normalize, self._device)
        assert launch is not None, "finds_peaks() was not asked"  # noqa: S101 - a mistake of ours, not of the user
        arrays = (planes, *tables, self._tables.rows, self._tables.columns, records)
        start(launch, arrays, (*problem.arguments(), *self._normalizer_numbers()))

    def _normalizer_numbers(self) -> tuple[int, ...]:
        return (*self._tables.sizes, self._least)


@functools.cache
def _type_name(dtype: Any) -> str:
    return str(dtype)  # which takes NumPy longer than a launch


@functools.lru_cache(maxsize=256)
def _small_launch(
    window: Problem, batch: tuple[int, int, int], types: tuple[str, str], device: DeviceLimits
) -> Launch | None:
    lefts, rights, rights_per_left = batch
    problem = replace(window, lefts=lefts, rights=rights, rights_per_left=rights_per_left)
    return small_hankel_launch(problem, left_type=types[0], right_type=types[1], device=device)


@functools.lru_cache(maxsize=256)
def _search_launch(problem: Problem, normalize: bool, device: DeviceLimits) -> Launch | None:
    return plane_peak_launch(problem, normalize=normalize, device=device)


@functools.lru_cache(maxsize=256)
def _planes_are_cheaper(problem: Problem, device: DeviceLimits) -> bool:
    """Whether another variant makes planes, and their peaks are searched, in less time than `combined_peak` takes."""
    expected = costs(problem, device)
    expected.pop("fft", None)
    fused = expected.pop("combined", math.inf)
    shifts = problem.pairs * math.prod(problem.plane_shape)
    return min(expected.values(), default=math.inf) + _SEARCH * shifts < fused < math.inf
