"""One stack whose frames turn, scale or shear: measured by motion, and what its table says of that."""

from __future__ import annotations

from functools import partial

import numpy as np
from numpy.typing import NDArray

from xcorr_app.batch.align.frames import SourceFrames
from xcorr_app.batch.align.measured import Measured, Warped, as_shifts, frames_csv, measured_by
from xcorr_app.batch.align.options import AlignOptions
from xcorr_app.correlation.window import ShiftWindow
from xcorr_app.pipeline.planes import Begun
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.registration.motion.result import MotionResult
from xcorr_app.registration.motion.series import motion_against
from xcorr_app.registration.results.results import ShiftResult
from xcorr_app.registration.solver.basis import basis_of
from xcorr_app.registration.warping.matrices import angle_of, scale_of
from xcorr_app.registration.warping.warp import ByMatrices

_ENGINE = "gauss-newton"


def measured_by_motion(begun: Begun[SourceFrames], options: AlignOptions, resources: StackResources) -> Measured:
    """Measure motions of whole frames."""
    basis = basis_of(options.model)

    def tell(frames: SourceFrames, result: MotionResult) -> tuple[Warped, ShiftResult]:
        matrices = np.round(result.applied(options.policy), 9)
        files = {"motion.csv": motion_csv(frames, result, matrices)}
        told = f"Measured as {result.model} motion; shifts are those of the middle of the frame (see motion.csv)."
        turns = tuple(zip(result.angle.tolist(), result.scale.tolist(), strict=True))
        warped = Warped(ByMatrices(matrices), files, seen_by_all(matrices, frames.shape), turns=turns)
        reach = ShiftWindow.symmetric(*(size // 2 for size in frames.shape))  # what is tried of each rotation
        return warped, as_shifts(result, _ENGINE, told, reach)

    measure = partial(motion_against, basis=basis, max_sigma=options.settings.sure_sigma)
    return measured_by(measure, tell, begun, options, resources)


def motion_csv(frames: SourceFrames, result: MotionResult, applied: NDArray[np.float64]) -> bytes:
    """A line for each frame: what was measured, and the matrix that is applied, which ``xcorr apply`` reads.

    The matrix takes a place (row, column, 1) of the reference to the place in the frame; its third row is 0, 0, 1.
    """
    measured = {name: getattr(result, name) for name in ("angle", "scale", "score", "overlap", "sigma_angle")}
    measured |= {"applied_angle": angle_of(applied), "applied_scale": scale_of(applied)}
    elements = {f"m{row}{column}": applied[:, row, column] for row in range(2) for column in range(3)}
    return frames_csv(frames, result.flags, measured, elements)


def seen_by_all(matrices: NDArray[np.float64], shape: tuple[int, int]) -> tuple[slice, slice]:
    """The largest part of the reference, of its shape and about its middle, that every frame shows."""
    half = (np.array(shape) - 1) / 2
    kept = matrices[np.isfinite(matrices).all(axis=(1, 2))]
    for share in np.arange(1.0, 0.04, -0.02):
        corners = np.array([[*(half * (1 + share * np.array([y, x]))), 1.0] for y in (-1, 1) for x in (-1, 1)])
        places = np.einsum("tij,cj->tci", kept, corners)[..., :2]
        if ((places >= -1e-3) & (places <= np.array(shape) - 1 + 1e-3)).all():
            break
    first = np.ceil(half - share * half).astype(int)
    last = np.floor(half + share * half).astype(int)
    return slice(int(first[0]), int(last[0]) + 1), slice(int(first[1]), int(last[1]) + 1)
