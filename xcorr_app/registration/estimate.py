"""Shifts of a stack: a stack and options in, shifts and what can be said about them out."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from xcorr_app.correlation.plane import Normalization
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.gpu.runtime.arrays import Array, is_device_array, to_host
from xcorr_app.gpu.runtime.memory import or_on_host
from xcorr_app.registration.estimate_masked import estimate_masked, masks_for
from xcorr_app.registration.masked.rules import Masks
from xcorr_app.registration.nuisances import Series, without_nuisances
from xcorr_app.registration.one_blas_thread import one_blas_thread
from xcorr_app.registration.results.results import ShiftResult
from xcorr_app.registration.settings import (
    DEFAULT_MIN_SCORE,
    DEFAULT_TOLERANCE,
    Roi,
    Settings,
    Subpixel,
)
from xcorr_app.registration.stack.frames import Frames
from xcorr_app.registration.stack.passes import Progress, shown
from xcorr_app.registration.stack.prefilter import Contrast, Prefilter
from xcorr_app.registration.stack.stack_input import InputStack, given_reference
from xcorr_app.registration.stack_measurement import StackMeasurement
from xcorr_app.registration.stack_result import result_of
from xcorr_app.registration.weights.weighing import weighted

_LOG = logging.getLogger("xcorr_app")
ON_HOST = "The device's memory did not suffice to measure the stack: the CPU measured it."


@one_blas_thread()
def estimate_shifts(
    stack: Array,
    reference: str | int | Array = "first",
    max_shift: float | tuple[float, float] | None = None,
    *,
    normalization: Normalization = "zncc",
    subpixel: Subpixel = "gaussian",
    upsample: int = 100,
    weighting: Literal["auto", "none"] = "auto",
    prefilter: str | None = None,
    contrast: str = "auto",
    roi: Roi | None = None,
    engine: str = "auto",
    kernel_options: KernelOptions | None = None,
    verify: Literal["auto", "all", "none"] | int = "none",
    min_overlap: float | None = None,
    min_score: float = DEFAULT_MIN_SCORE,
    tolerance: float = DEFAULT_TOLERANCE,
    max_sigma: float | None = None,
    smooth_time: int = 1,
    mask: str | Array | None = None,
    mask_moves: bool = False,
    axes: str | None = None,
    channel: int = 0,
    progress: Progress | bool | None = None,
) -> ShiftResult:
    """Measure by how much each frame must be moved to land on the reference.

    Parameters
    ----------
    stack : array_like, shape (T, Y, X)
        NumPy, CuPy, or what :mod:`xcorr_app.arrays.kinds` takes without a copy; the work is done where the array
        lives. Dask, zarr and h5py arrays are computed or read block by block. What a masked array masks does not count,
        as by `mask`. NaN and infinite pixels are replaced by the mean of
        the others for measuring.
    reference : {'first', 'last', 'mean', 'template', 'previous', 'pairs:K'}, int or ndarray
        What frames are compared with. ``template`` starts from the first frame, then repeats: mean of all aligned
        frames but the one measured, each brought to one gain and offset and only where it was seen, until no shift
        changes by more than 0.0005 px; the first usable frame has shift zero, and `max_shift` counts from the middle
        of all frames. ``mean`` is the same, but shifts count from the mean place of all frames.
        Frames whose shift is not to be trusted take no part in these. For series whose look changes: ``previous`` sums
        shifts from frame to frame; ``pairs:K`` compares with each of the K frames before, and places all by robust
        least squares. An int is a frame number, an ndarray
        (Y, X) an image.
    max_shift : int or (int, int), optional
        Largest shift in pixels along rows and columns. Default: a quarter of the measured part.
    normalization : {'zncc', 'none', 'phase'}
        See :func:`xcorr_app.cross_correlate`; here every image has lost its mean before.
    subpixel : {'gaussian', 'dft', 'quadratic', 'parabolic', 'none', 'phase'}
        See :mod:`xcorr_app.correlation.subpixel`. ``phase`` refines ``gaussian`` by the phase ramp of the
        cross-spectrum, near the Cramer-Rao bound: see :mod:`xcorr_app.registration.measuring.phase_ramp`. By default
        frames of fine texture (speckle, noise of single pixels) are refined so, whose peaks no fit to 3 x 3 values
        follows.
    upsample : int
        Grid points per pixel of ``dft``.
    weighting : {'auto', 'none'}
        ``auto``: where an image is noisy, weight frequencies by their signal-to-noise ratio; see
        :mod:`xcorr_app.correlation.weighting`. For ``zncc`` on images of more than 32 x 32 pixels.
    prefilter : str, optional
        ``gaussian:S``, ``highpass:S``, ``dog:S1,S2``, ``log:S``, ``median:N``, ``box:N``, ``unsharp:S,AMOUNT``,
        ``sobel`` or ``laplacian``, for measuring only.
    contrast : str
        ``none``, ``local:S`` (less the mean and over the standard deviation of what is around each pixel, Gaussian
        weights of sigma S pixels, so that a faint scene counts as much as a few bright moving things; for measuring
        only) or ``auto``: whichever of ``none`` and ``local:8`` is more certain on a few frames; and what is found not
        to belong to the scene (fixed patterns, changing light, captions, rows with offsets of their own, single hits
        of a detector) is removed for measuring, with a note.
    roi : (slice, slice), optional
        Rows and columns that are measured.
    engine : str
        ``auto``, ``fft``, ``direct`` or ``tensor`` (CuPy arrays; ``tensor`` searches the peaks of ``zncc`` in fp16 and
        recomputes what is around them in float32) or ``definition`` (NumPy arrays).
    kernel_options : KernelOptions, optional
        Variant and tuning of the kernels of ``direct``, or precision of ``tensor``; ``auto`` is then that engine.
        Precision ``int8`` takes frames of uint8, against one of them, without a prefilter.
    verify : {'auto', 'all', 'none'} or int
        Frames to measure again by a float64 zero-padded FFT and, around the peak, by the definition; an int is a
        number of frames spread evenly over the stack. ``auto``: all on a GPU; 32 on a CPU, whose engine is an FFT
        itself.
    min_overlap : float, optional
        Shifts that leave less than this fraction of the image overlapping are not considered: by default 0.25, and with
        a `mask` 0.1 of the most pixels that count in both at any shift.
    min_score : float
        A frame is flagged ``low-score`` below this fraction of the score its noise allows.
    tolerance : float
        Difference from the FFT reference in pixels above which a frame is flagged ``disagrees``.
    max_sigma : float, optional
        Standard error in pixels above which a frame is flagged ``uncertain``: by default 0.5, or 2 % of the range of
        the stack's shifts where that is more. What neighbouring parts of a picture
        share (moving air, jitter of a scan) is in ``sigma``, and counts for no flag.
    smooth_time : int
        Number of frames around each that are averaged before measuring, for movies with few photons a frame: the drift
        within them is blurred. Frames that share some are not compared under ``previous`` and
        ``pairs:K`` (these go farther back), nor part of each other's ``mean`` or ``template``.
    mask : str or ndarray, optional
        Which pixels count: ``nonzero``, ``finite``, ``saturated`` (all but those), ``threshold:V`` (those above V), or
        an array, nonzero where they do, (Y, X) for every frame or (T, Y, X). Only pixels that count in both images at
        a shift take part in its score (Padfield 2012).
        NaN and infinite pixels never do, and those that all frames lack are a mask without being asked. The reference
        is ``first``, ``last``, a frame number or an image.
    mask_moves : bool
        The mask (Y, X) belongs to the scene as the reference shows it, and moves with it; frames count as a whole.
    axes : str, optional
        A letter for each axis of a stack that is not (T, Y, X): T, Z, C, Y, X, such as ``"TCYX"``; the dimensions of an
        xarray name theirs. Frames are along T, or along Z if there is only one time point; planes along the other of
        the two are averaged for measuring.
    channel : int
        The channel that is measured, of `axes` with C.
    progress : callable or bool, optional
        ``progress(stage, done, total)``, or True for a bar on the terminal.

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
    of frequencies); Holland and Welsch 1977, doi 10.1080/03610927708827533
    (robust least squares); Guizar-Sicairos, Thurman and Fienup 2008, doi 10.1364/OL.33.000156 (``dft``); Padfield 2012,
    doi 10.1109/TIP.2011.2181402 (``mask``).

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
    masks = None if mask is None else Masks.of(mask, moves=mask_moves)
    settings = Settings(
        max_shift=max_shift,
        normalization=normalization,
        subpixel=subpixel,
        upsample=upsample,
        weighting=weighting,
        prefilter=Prefilter.parse(prefilter),
        contrast=Contrast.parse(contrast),
        roi=roi,
        engine=engine,
        kernel_options=kernel_options,
        min_overlap=Settings.overlap(min_overlap, masks),
        min_score=min_score,
        tolerance=tolerance,
        max_sigma=max_sigma,
        smooth_time=smooth_time,
        masks=masks,
    )
    given, reference = InputStack(stack, axes, channel), given_reference(reference)
    if given.mask is not None:
        if mask is not None:
            raise ArgumentError("the stack is a masked array, and a mask is given too: give one of them")
        settings = replace(settings, masks=Masks.of(given.mask))
    with given.on_its_device(), shown(progress) as report:
        result = estimate_from(given.frames, reference, settings, xp=given.xp, verify=verify, progress=report)
    for note in result.notes:
        _LOG.info(note)
    return result


def estimate_from(
    frames: Frames,
    reference: str | int | Array,
    settings: Settings,
    *,
    xp: Any,
    verify: Literal["auto", "all", "none"] | int = "none",
    progress: Progress | None = None,
) -> ShiftResult:
    """Measure frames that are read as needed; what :func:`estimate_shifts` does for an array.

    Where a device's memory does not suffice, the CPU measures them, and a note says so.
    """

    def on_host() -> ShiftResult:
        there = to_host(reference) if is_device_array(reference) else reference
        result = _measured(
            frames.on_host(), there, replace(settings, engine="auto", kernel_options=None), np, verify, progress
        )
        return replace(result, notes=(*result.notes, ON_HOST))

    return or_on_host(lambda: _measured(frames, reference, settings, xp, verify, progress), on_host)


def _measured(
    frames: Frames,
    reference: str | int | Array,
    settings: Settings,
    xp: Any,
    verify: Literal["auto", "all", "none"] | int,
    progress: Progress | None,
) -> ShiftResult:
    """Measure a stack: behind masks; or as it is weighted, and then by what each look at nuisances makes of it."""
    if (counts := masks_for(frames, reference, settings)) is not None:
        return estimate_masked(frames, reference, settings, counts, xp, progress)
    given = weighted(frames, reference, settings)
    if given.masks is not None:
        overlap = min(settings.min_overlap, Settings.overlap(None, given.masks))
        settings = replace(settings, min_overlap=overlap)
        found = estimate_masked(given.frames, given.reference, settings, given.masks, xp, progress)
        return replace(found, notes=(*found.notes, *given.notes), left_out=True, counted=given.masks.given)
    measurement = StackMeasurement.of(frames, settings, xp, verify, progress).within(given.inner)
    series = Series(given, measurement, given.frames, measurement.measure(given.frames, given.reference))
    return result_of(without_nuisances(series))
