"""What a measurement of shifts returns."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.decision import Decision
from xcorr_app.registration.results import result_files
from xcorr_app.registration.results.doubtful_frames import DEFAULT_POLICY, applied_shifts
from xcorr_app.registration.results.frame_table import columns_of, rows_of
from xcorr_app.registration.results.result_display import FrameResult
from xcorr_app.registration.stack.prefilter import Contrast


@dataclass(frozen=True, eq=False, repr=False)
class ShiftResult(FrameResult):
    """Shifts of a stack and what can be said about each. All arrays are NumPy arrays with one entry a frame.

    Two results are equal where all but their `decision` is, NaN being equal to NaN. In a notebook a result is a table.
    """

    shifts: NDArray[np.float64]
    """(T, 2) row, column in pixels to add to each frame to land on the reference; NaN where there is none."""
    score: NDArray[np.float64]
    """(T,) zero-mean normalised correlation at the peak, in [-1, 1]."""
    peak_ratio: NDArray[np.float64]
    """(T,) first peak over the strongest other local maximum inside the window's rim; inf where there is none above
    zero."""
    flags: tuple[tuple[str, ...], ...]
    """Words that say what is doubtful: the words of :mod:`xcorr_app.registration.quality`."""
    fft_shifts: NDArray[np.float64]
    """(T, 2) shifts by the float64 zero-padded FFT reference; NaN where not verified."""
    non_finite: NDArray[np.int64]
    """(T,) number of NaN or infinite pixels that were replaced for measuring."""
    window: ShiftWindow
    """Shifts that were searched."""
    engine: str
    """Name of the engine that ran."""
    reference: str
    """What the frames were compared with, in words."""
    notes: tuple[str, ...]
    """Sentences about the whole stack."""
    unreadable: dict[int, str]
    """Why a frame could not be read, by frame number."""
    sigma: NDArray[np.float64]
    """(T, 2) standard error of each shift in pixels, predicted from the image itself; inf where nothing is known: the
    peak is more probably one by chance, or one of several alike, than the frame's own (`wrong` above one half). NaN
    where there is none."""
    significance: NDArray[np.float64]
    """(T,) height of the peak above the rest of its plane, in standard deviations of that; NaN where not known."""
    tiles: NDArray[np.float32]
    """(T, rows, columns) of square tiles of the measured part: 1 where a tile of the reference moves as the frame does,
    0 where it differs and lost its vote, NaN where it cannot tell. Of a stack that moves as one only a few frames are
    looked at; the others are NaN. Small images have no tiles."""
    decision: Decision | None = None
    """What was chosen to run and why, with the expected time of every candidate."""
    closure: NDArray[np.float64] | None = None
    """(T,) pixels, NaN where not known: how far measurements of a frame contradict each other. Under ``pairs:K`` the
    median of what is left of its pairs; under ``previous`` the distance of some frames from where
    they lie when compared with the first directly. None under other references."""
    contrast: Contrast | None = None
    """How frames were compared: as they are, or by their local contrast. None where that was both, or where light or a
    pattern was taken from them first."""
    wrong: NDArray[np.float64] | None = None
    """(T,) probability that the peak is not the frame's, as far as it is known from that frame alone; None where it is
    not known."""
    defects: NDArray[np.intp] | None = None
    """(n, 2) row and column of hot and dead pixels that were replaced for measuring; None where there are none."""
    counted: NDArray[np.bool_] | None = None
    """(Y, X) pixels by which frames were measured, where most are no part of the scene; None where all counted."""
    left_out: bool = False
    """Whether something that is part of the frames was left out or evened for measuring: captions, defects, a pattern,
    offsets of lines, light. What of it stands still makes frames resemble each other until they are moved."""
    read_applied: NDArray[np.float64] | None = None
    """(T, 2) what `applied` gives, of a result that was read from a table, which lacks what it is computed from."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ShiftResult):
            return NotImplemented
        names = [field.name for field in fields(self) if field.name != "decision"]
        return all(_same(getattr(self, name), getattr(other, name)) for name in names)

    __hash__ = None  # type: ignore[assignment]  # arrays can change

    @property
    def difference(self) -> NDArray[np.float64]:
        """(T,) pixels between shifts and those by the FFT reference; NaN where not verified."""
        return np.asarray(np.hypot(*(self.shifts - self.fft_shifts).T))

    def applied(self, policy: str = DEFAULT_POLICY) -> NDArray[np.float64]:
        """Shifts to move the frames by, with those that are not trusted replaced.

        Parameters
        ----------
        policy : {'interpolate', 'apply', 'leave', 'drop'}
            What becomes of a frame that is not trusted. ``interpolate``: it is moved by what is expected to be least
            wrong: a shift that is more probably right than not by the mean of what was measured and what the frames
            around it say, weighted by their errors; any other by what lies on the line between its neighbours in time,
            at the ends as the nearest of them. ``apply``: by what was measured,
            interpolated only where nothing was. ``leave``: not at all. ``drop``: its shift is NaN, for you to leave the
            frame out. Where there is no shift to take, all are zero, or NaN.

        Returns
        -------
        ndarray of float64, shape (T, 2)
            Row, column in pixels to add to each frame, for :func:`xcorr_app.apply_shifts`.

        Raises
        ------
        ArgumentError
            If there is no such policy.

        Examples
        --------
        >>> import numpy as np, xcorr_app as xc
        >>> from scipy.ndimage import gaussian_filter
        >>> scene = gaussian_filter(np.random.default_rng(0).normal(size=(100, 100)), 2)
        >>> stack = np.stack([scene[10:74, 10:74], np.zeros((64, 64)), scene[14:78, 8:72]])
        >>> result = xc.estimate_shifts(stack, max_shift=8)
        >>> result.trusted
        array([ True, False,  True])
        >>> result.applied().round(1) + 0.0
        array([[ 0.,  0.],
               [ 2., -1.],
               [ 4., -2.]])
        """
        if self.read_applied is not None and policy == DEFAULT_POLICY:
            return self.read_applied.copy()
        size = self.window.shape
        return applied_shifts(self.shifts, self.trusted, policy, self.sigma, self.wrong, size)

    def save(self, path: Path | str) -> None:
        """Write the result to a file: everything but `decision` to ``.npz``, or a table of the frames to ``.csv``.

        Parameters
        ----------
        path
            Replaced if it exists. A table has the columns of `to_dataframe` with six decimals. Both hold shifts
            for :func:`xcorr_app.load_shifts` and ``xcorr apply``, and can be read by `load`.

        Raises
        ------
        ArgumentError
            The name ends in neither.
        OutputError
            The file cannot be written.
        """
        result_files.save(self, Path(path))

    @staticmethod
    def load(path: Path | str) -> ShiftResult:
        """Read what `save` wrote, or the ``shifts.csv`` of ``xcorr align``; a table lacks what it has no column for.

        Raises
        ------
        InputError
            There is no such file.
        DamagedFileError
            It holds no result.
        """
        if (path := Path(path)).suffix.lower() == ".csv":
            return ShiftResult(**result_files.load_table(path))
        return result_files.load_archive(ShiftResult, path, "no result of a measurement")

    def to_dataframe(self) -> Any:
        """Return a ``pandas.DataFrame`` with a line for each frame; needs pandas.

        Its columns are those of ``shifts.csv``, numbers with six decimals: ``frame``, ``source`` and ``page`` (where it
        came from), ``dy`` and ``dx`` (measured, pixels), ``score``, ``peak_ratio``, ``fft_dy``, ``fft_dx``,
        ``difference``, ``flags`` (joined by ``|``), ``sigma_y``, ``sigma_x``, ``applied_dy`` and ``applied_dx`` (as
        `applied` gives them), ``remarks``, ``significance``.
        """
        import pandas as pd  # type: ignore[import-untyped,unused-ignore]

        return pd.DataFrame(columns_of(rows_of(self)))


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")
    return type(one) is type(other) and bool(one == other)
