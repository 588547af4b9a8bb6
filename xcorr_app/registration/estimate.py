"""Shifts of a stack: choice of the reference, the passes it takes, and the result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from xcorr_app.correlation.plane import DEFAULT_MIN_OVERLAP, Normalization
from xcorr_app.correlation.standardize import working_dtype
from xcorr_app.correlation.subpixel import Method
from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.arrays import Array, array_namespace
from xcorr_app.registration.frames import ArrayFrames, Chunk, Frames
from xcorr_app.registration.measurement import Measured, Measurement
from xcorr_app.registration.passes import Pass, Progress
from xcorr_app.registration.prefilter import Prefilter
from xcorr_app.registration.preparation import prepare
from xcorr_app.registration.references import FixedImage, PreviousUsable, Reference
from xcorr_app.registration.results import ShiftResult
from xcorr_app.registration.settings import DEFAULT_MIN_SCORE, DEFAULT_TOLERANCE, Roi, Settings
from xcorr_app.registration.stack_statistics import NoUsableFrameError, Statistics

REFERENCES = ("first", "last", "mean", "median", "previous", "template")

_MOST_ROUNDS = 12
_NOT_ALIGNED = (
    "The reference is made of frames as they are, blurred by their drift: shifts are relative to that blur. "
    "The reference 'template' aligns the frames first."
)
_SETTLED = 0.01
"""The template is settled once no frame's shift changes by more than this, in pixels."""


def estimate_shifts(
    stack: Array,
    reference: str | int | Array = "first",
    max_shift: float | tuple[float, float] | None = None,
    *,
    normalization: Normalization = "zncc",
    subpixel: Method = "gaussian",
    upsample: int = 100,
    weighting: Literal["auto", "none"] = "auto",
    prefilter: str | None = None,
    roi: Roi | None = None,
    engine: str = "auto",
    verify: Literal["all", "none"] | int = "none",
    min_overlap: float = DEFAULT_MIN_OVERLAP,
    min_score: float = DEFAULT_MIN_SCORE,
    tolerance: float = DEFAULT_TOLERANCE,
    progress: Progress | None = None,
) -> ShiftResult:
    """Measure by how much each frame must be moved to land on the reference.

    Parameters
    ----------
    stack : ndarray, shape (T, Y, X)
        NumPy or CuPy; the work is done where the array lives. NaN and infinite pixels are replaced by the mean of
        the others for measuring.
    reference : {'first', 'last', 'mean', 'median', 'previous', 'template'}, int or ndarray (Y, X)
        What frames are compared with. ``mean`` and ``median`` leave out the frame that is measured. ``previous``
        sums shifts from frame to frame. ``template`` starts from the first frame, then repeats: mean of all
        aligned frames but the one measured, until no shift changes by more than 0.01 px. An int is a frame number.
    max_shift : int or (int, int), optional
        Largest shift in pixels along rows and columns. Default: a quarter of the measured part.
    normalization : {'zncc', 'none', 'phase'}
        See :func:`xcorr_app.cross_correlate`; here every image has lost its mean before.
    subpixel : {'gaussian', 'dft', 'quadratic', 'parabolic', 'none'}
        See :mod:`xcorr_app.correlation.subpixel`.
    upsample : int
        Grid points per pixel of ``dft``.
    weighting : {'auto', 'none'}
        ``auto``: where an image is noisy, weight frequencies by their signal-to-noise ratio; see
        :mod:`xcorr_app.correlation.weighting`. For ``zncc`` on images of more than 32 x 32 pixels.
    prefilter : str, optional
        ``gaussian:S``, ``highpass:S``, ``dog:S1,S2``, ``log:S``, ``median:N`` or ``sobel``, for measuring only.
    roi : (slice, slice), optional
        Rows and columns that are measured.
    engine : str
        ``auto``, ``fft``, ``warp-shuffle`` (CuPy arrays) or ``definition`` (NumPy arrays).
    verify : {'all', 'none'} or int
        Frames to measure again by a float64 zero-padded FFT and, around the peak, by the definition; an int is a
        number of frames spread evenly over the stack.
    min_overlap : float
        Shifts that leave less than this fraction of the image overlapping are not considered.
    min_score : float
        A frame is flagged ``low-score`` below this fraction of the score its noise allows.
    tolerance : float
        Difference from the FFT reference in pixels above which a frame is flagged ``disagrees``.
    progress : callable, optional
        ``progress(stage, done, total)``.

    Returns
    -------
    ShiftResult
        ``shifts`` (T, 2) in pixels, row and column, to be *added* to each frame to land on the reference, the sign of
        ``skimage.registration.phase_cross_correlation``.

    Raises
    ------
    ArgumentError, ShapeError, DataTypeError
        For options out of range, or a stack that is not (T, Y, X) of real numbers.
    DeviceError
        If the engine cannot run on such arrays.

    References
    ----------
    Lewis 1995, "Fast normalized cross-correlation"; Knapp and Carter 1976, doi 10.1109/TASSP.1976.1162830 (weighting
    of frequencies); Guizar-Sicairos, Thurman and Fienup 2008, doi 10.1364/OL.33.000156 (``dft``).

    Examples
    --------
    >>> import numpy as np, xcorr_app as xc
    >>> from scipy.ndimage import gaussian_filter
    >>> scene = gaussian_filter(np.random.default_rng(0).normal(size=(100, 100)), 2)
    >>> stack = np.stack([scene[10:74, 10:74], scene[13:77, 8:72]])
    >>> xc.estimate_shifts(stack, max_shift=8).shifts.round(1) + 0.0
    array([[ 0.,  0.],
           [ 3., -2.]])
    """
    settings = Settings(
        max_shift=max_shift,
        normalization=normalization,
        subpixel=subpixel,
        upsample=upsample,
        weighting=weighting,
        prefilter=Prefilter.parse(prefilter),
        roi=roi,
        engine=engine,
        min_overlap=min_overlap,
        min_score=min_score,
        tolerance=tolerance,
    )
    return estimate_from(
        ArrayFrames(stack), reference, settings, xp=array_namespace(stack), verify=verify, progress=progress
    )


def estimate_from(
    frames: Frames,
    reference: str | int | Array,
    settings: Settings,
    *,
    xp: Any,
    verify: Literal["all", "none"] | int = "none",
    progress: Progress | None = None,
) -> ShiftResult:
    """Measure frames that are read as needed; what :func:`estimate_shifts` does for an array.

    Parameters
    ----------
    frames : Frames
    reference, verify, progress
        As in :func:`estimate_shifts`.
    settings : Settings
    xp : module
        numpy or cupy: the kind of array that `frames` yields.
    """
    walk = Pass(frames.count, frames.shape[0] * frames.shape[1], xp is not np, progress)
    measurement, statistics = Measurement(frames, walk, settings, xp), Statistics(frames, walk, settings, xp)
    job = _Estimation(frames, settings, measurement, statistics, xp)
    verified = _verified_frames(verify, frames.count)
    measured, described, notes = job.run(reference, verified)
    return ShiftResult(
        shifts=measured.shifts,
        score=measured.score,
        peak_ratio=measured.peak_ratio,
        flags=measured.flags(settings),
        fft_shifts=measured.fft_shifts,
        difference=np.hypot(*(measured.shifts - measured.fft_shifts).T),
        non_finite=measured.non_finite,
        window=job.measurement.window,
        engine=job.measurement.engine,
        reference=described,
        notes=notes,
        unreadable=measured.reasons,
    )


_Outcome = tuple[Measured, str, tuple[str, ...]]


@dataclass(frozen=True)
class _Estimation:
    frames: Frames
    settings: Settings
    measurement: Measurement
    statistics: Statistics
    xp: Any

    def run(self, reference: str | int | Array, verified: NDArray[np.bool_]) -> _Outcome:
        if isinstance(reference, str):
            strategies: dict[str, Callable[[NDArray[np.bool_]], _Outcome]] = {
                "first": lambda checked: self._one_frame("first", range(self.frames.count), checked),
                "last": lambda checked: self._one_frame("last", range(self.frames.count - 1, -1, -1), checked),
                "mean": self._mean,
                "median": self._median,
                "previous": self._previous,
                "template": self._template,
            }
            if reference not in strategies:
                raise ArgumentError(
                    f"unknown reference {reference!r}: use {', '.join(REFERENCES)}, a frame number or an image"
                )
            try:
                return strategies[reference](verified)
            except NoUsableFrameError as error:
                nothing = FixedImage(self.xp.zeros(self.settings.measured_shape(self.frames.shape)))
                return self._against(nothing, verified), "none", (str(error),)
        if isinstance(reference, (int, np.integer)) and not isinstance(reference, bool):
            return self._numbered(int(reference), verified)
        return self._image(reference, verified)

    def _against(self, reference: Reference, verified: NDArray[np.bool_]) -> Measured:
        return self.measurement.run(reference, "measure", verified)

    def _one_frame(self, wanted: str, candidates: range, verified: NDArray[np.bool_]) -> _Outcome:
        number, image = self.statistics.usable_frame(candidates)
        notes: tuple[str, ...] = ()
        if number != candidates[0]:
            notes = (f"Frame {candidates[0]} cannot be a reference (unreadable or flat): frame {number} is used.",)
        return self._against(FixedImage(image), verified), f"{wanted} frame ({number})", notes

    def _numbered(self, number: int, verified: NDArray[np.bool_]) -> _Outcome:
        count = self.frames.count
        if not -count <= number < count:
            raise ArgumentError(f"reference frame {number} does not exist: the stack has frames 0 to {count - 1}")
        number %= count
        try:
            _, image = self.statistics.usable_frame(range(number, number + 1))
        except NoUsableFrameError:
            raise ArgumentError(f"frame {number} cannot be the reference: it is unreadable or flat") from None
        return self._against(FixedImage(image), verified), f"frame {number}", ()

    def _image(self, image: Array, verified: NDArray[np.bool_]) -> _Outcome:
        if array_namespace(image) is not self.xp:
            raise ArgumentError("the reference image must be the same kind of array as the stack")
        working_dtype(image)
        if image.shape != self.frames.shape:
            raise ShapeError(
                f"the reference image has shape {image.shape}, frames have {self.frames.shape}: they must be equal"
            )
        prepared = prepare(Chunk(0, image[None], {}), self.settings)
        if not prepared.usable[0]:
            raise ArgumentError("the reference image has the same value everywhere, or no finite value")
        return self._against(FixedImage(prepared.frames[0]), verified), "image", ()

    def _mean(self, verified: NDArray[np.bool_]) -> _Outcome:
        reference = self.statistics.mean_of_others()
        if reference.count < 2:
            return self._only_frame("mean", verified)
        text = f"mean of all usable frames ({reference.count}) but the one measured"
        return self._against(reference, verified), text, (_NOT_ALIGNED,)

    def _median(self, verified: NDArray[np.bool_]) -> _Outcome:
        reference = self.statistics.median_of_others()
        count = int(reference.usable.sum())
        if count < 2:
            return self._only_frame("median", verified)
        return (
            self._against(reference, verified),
            f"median of all usable frames ({count}) but the one measured",
            (_NOT_ALIGNED,),
        )

    def _only_frame(self, wanted: str, verified: NDArray[np.bool_]) -> _Outcome:
        measured, described, notes = self._one_frame("only", range(self.frames.count), verified)
        return measured, described, (*notes, f"There is no other usable frame to take the {wanted} of.")

    def _previous(self, verified: NDArray[np.bool_]) -> _Outcome:
        measured = self._against(PreviousUsable(self.frames, self.settings), verified)
        if not measured.usable.any():
            raise NoUsableFrameError
        measured.steps = True
        step = measured.shifts
        measured.shifts = np.where(np.isnan(step), np.nan, np.nancumsum(step, axis=0))
        # Each check is of one step: it starts from where the engine's own sum stood before.
        measured.fft_shifts = measured.shifts - step + measured.fft_shifts
        return measured, "previous frame, shifts summed", ()

    def _template(self, verified: NDArray[np.bool_]) -> _Outcome:
        none = np.zeros_like(verified)
        measured, first, notes = self._one_frame("first", range(self.frames.count), none)
        change = np.inf
        rounds = 0
        while change > _SETTLED and rounds < _MOST_ROUNDS:
            rounds += 1
            took_part = np.isfinite(measured.score) & ~measured.on_edge
            if took_part.sum() < 2:
                return self._only_frame("template", verified)
            shifts = measured.shifts
            template = self.statistics.aligned_mean_of_others(shifts, took_part)
            measured = self._against(template, none)
            offset = self._hold_origin(measured, shifts, took_part)
            change = float(np.nanmax(np.abs(measured.shifts - shifts)[took_part], initial=0.0))
        if verified.any():
            measured = self._against(template, verified)
            measured.shifts = measured.shifts - offset
            measured.fft_shifts = measured.fft_shifts - offset
        described = (
            f"mean of {int(took_part.sum())} aligned frames but the one measured, rounds: {rounds}, begun with {first}"
        )
        if change > _SETTLED:
            notes = (*notes, f"The template did not settle in {rounds} rounds: shifts still change by {change:.3f} px.")
        return measured, described, notes

    @staticmethod
    def _hold_origin(
        measured: Measured, before: NDArray[np.float64], took_part: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Take out what all shifts changed by alike: a template fixes shifts only up to a common one."""
        offset: NDArray[np.float64] = np.nanmedian((measured.shifts - before)[took_part], axis=0)
        measured.shifts = measured.shifts - offset
        return offset


def _verified_frames(verify: str | int, count: int) -> NDArray[np.bool_]:
    chosen = np.zeros(count, dtype=bool)
    if verify == "all":
        chosen[:] = True
    elif isinstance(verify, (int, np.integer)) and not isinstance(verify, bool) and verify >= 0:
        chosen[np.unique(np.linspace(0, count - 1, min(int(verify), count)).round().astype(int))] = True
    elif verify != "none":
        raise ArgumentError(f"verify is {verify!r}: use 'all', 'none' or a number of frames")
    return chosen
