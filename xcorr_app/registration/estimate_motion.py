"""Motion of a stack: a stack and a model in, a matrix for each frame and what can be said about it out."""

from __future__ import annotations

from xcorr_app.arguments import as_number
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.runtime.arrays import Array
from xcorr_app.registration.masked.rules import Masks
from xcorr_app.registration.motion.result import MotionResult
from xcorr_app.registration.motion.series import motion_against
from xcorr_app.registration.one_blas_thread import one_blas_thread
from xcorr_app.registration.patches.patch_fit import (
    DEFAULT_DEVIATION,
    DEFAULT_OVERLAP,
    DEFAULT_PATCH,
    PatchOptions,
)
from xcorr_app.registration.patches.patches import patches_of
from xcorr_app.registration.settings import DEFAULT_MAX_SIGMA
from xcorr_app.registration.solver.basis import PATCHES, basis_of
from xcorr_app.registration.stack.passes import Progress, shown
from xcorr_app.registration.stack.stack_input import InputStack, given_reference


@one_blas_thread()
def estimate_motion(
    stack: Array,
    model: str = "rigid",
    reference: str | int | Array = "first",
    *,
    mask: str | Array | None = None,
    mask_moves: bool = False,
    patch: int = DEFAULT_PATCH,
    patch_overlap: float = DEFAULT_OVERLAP,
    max_deviation: float = DEFAULT_DEVIATION,
    max_sigma: float = DEFAULT_MAX_SIGMA,
    axes: str | None = None,
    channel: int = 0,
    progress: Progress | bool | None = None,
) -> MotionResult:
    """Measure how each frame must be shifted, turned, scaled, sheared or bent to land on the reference.

    Angles and scales (1/2 to 2) are searched over the whole range by the Fourier-Mellin transform, each with the
    shift at which the frame then fits best; the likeliest motion is refined by Gauss-Newton over the whole overlap.

    ``patches``: from the shift of the whole frame, every patch is matched by itself; patches that are not trusted
    follow their neighbours, and one smooth field through the middles of the patches is fitted to all pixels: see
    :mod:`xcorr_app.registration.patches.patches`.

    Parameters
    ----------
    stack : array_like, shape (T, Y, X)
        NumPy, CuPy, or what :func:`xcorr_app.estimate_shifts` takes, at least 32 pixels a side; the work is done where
        the array lives. NaN and infinite pixels are replaced by the mean of the others for measuring; what a masked
        array masks does not count.
    model : {'rigid', 'similarity', 'affine', 'translation', 'patches'}
        Shift and rotation; with a scale; any linear motion; a shift alone, for which :func:`xcorr_app.estimate_shifts`
        is faster; a smooth field of shifts.
    reference : {'first', 'last', 'previous', 'mean', 'template'}, int or ndarray
        Frame that the others are compared with, or an image (Y, X). ``previous``: motions are summed from frame to
        frame, for series whose look changes. ``template``: the mean of the other frames as they were
        aligned, in rounds, which is less noisy than one frame; ``mean``: the same, but from the mean motion of all.
        ``patches`` do not take ``previous``: the shifts of whole frames are found against the reference, their patches
        against the mean of all frames so aligned but the one measured.
    mask, mask_moves
        Which pixels count, as for :func:`xcorr_app.estimate_shifts`; ``patches`` take none.
    patch : int
        Rows and columns of a patch; of ``patches`` alone, as the next two.
    patch_overlap : float
        Fraction of a patch, at least, that its neighbour shares; patches are spread evenly over the frame.
    max_deviation : float
        Pixels by which a patch may be off the shift of its frame, or off where its neighbours are.
    max_sigma : float
        Standard error in pixels, of the corner of the frame that is known worst, above which a frame is flagged
        ``uncertain``; of ``patches``, the median of all nodes.
    axes, channel
        As for :func:`xcorr_app.estimate_shifts`.
    progress : callable or bool, optional
        ``progress(stage, done, total)``, or True for a bar on the terminal.

    Returns
    -------
    MotionResult
        ``matrices`` (T, 3, 3), ``shifts``, ``angle``, ``scale``, ``score``, ``sigma``, ``flags``, of patches ``field``;
        ``apply`` warps, ``save`` and ``load`` keep it.

    Raises
    ------
    ArgumentError, ShapeError, DataTypeError
        For options out of range, or a stack that is not (T, Y, X) of real numbers.

    References
    ----------
    Reddy and Chatterji 1996, doi 10.1109/83.506761 (starting values); Baker and Matthews 2004, doi
    10.1023/B:VISI.0000011205.11775.fd, and Pan, Li and Tong 2013, doi 10.1007/s11340-013-9717-6 (refinement).

    Examples
    --------
    >>> import numpy as np, xcorr_app as xc
    >>> from scipy.ndimage import gaussian_filter, rotate
    >>> scene = gaussian_filter(np.random.default_rng(0).normal(size=(96, 96)), 2)
    >>> stack = np.stack([scene, rotate(scene, 30, reshape=False, mode="mirror", order=5)])
    >>> xc.estimate_motion(stack, "rigid").angle.round(1) + 0.0
    array([ 0., 30.])
    """
    if not as_number(max_sigma, "max_sigma") > 0:
        raise ArgumentError(f"max_sigma is {max_sigma!r}: give a positive number of pixels")
    given, reference = InputStack(stack, axes, channel), given_reference(reference)
    masks = None
    if mask is not None or given.mask is not None:
        if model == PATCHES or (mask is not None and given.mask is not None):
            raise ArgumentError("mask: patches take none, nor masked arrays; use a linear model, or fill the stack")
        masks = Masks.of(given.mask if mask is None else mask, moves=mask_moves)
    with given.on_its_device(), shown(progress) as report:
        if model == PATCHES:
            options = PatchOptions(patch, patch_overlap, max_deviation)
            return patches_of(given.frames, reference, options, max_sigma=max_sigma, progress=report)
        return motion_against(
            given.frames, basis_of(model), reference, max_sigma=max_sigma, masks=masks, progress=report
        )
