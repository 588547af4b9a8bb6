"""What people use today for motion that is more than a shift, each with its own defaults unless said otherwise.

Programs that turn and scale give matrices (T, 3, 3) from places of the first frame to places of each; those that bend
give fields (T, 2, Y, X) of rows, columns to add to a frame, at pixels of the first frame, as they move it themselves.
"""

from __future__ import annotations

import functools
import importlib.util
import sys
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_DEVIATION = 6
"""Pixels that a patch may be away from its frame: as much as ours may, for fields of 5."""
_LARGEST_SHIFT = (12, 12)
_COUNTS = 100
"""Of a camera for a standard deviation of the scene: suite2p takes 16 bit integers."""


def timed(tool: Callable[..., Any], stacks: list[Any], *more: Any) -> tuple[list[Any], float]:
    """Return what a tool finds of each stack, and milliseconds a frame; a call before loads what the first one does."""
    tool(stacks[0][:2], *more)
    began = time.perf_counter()
    found = [tool(stack, *more) for stack in stacks]
    return found, 1e3 * (time.perf_counter() - began) / sum(map(len, stacks))


def rms(errors: Any) -> float:
    """Root mean square of all errors."""
    return float(np.sqrt(np.mean(np.square(errors))))


def stackreg(frames: Floats, model: str) -> Floats:
    """StackReg, which follows intensities from where the frame lies."""
    from pystackreg import StackReg

    kinds = {"rigid": StackReg.RIGID_BODY, "similarity": StackReg.SCALED_ROTATION, "affine": StackReg.AFFINE}
    found: Floats = StackReg(kinds[model]).register_stack(frames, reference="first")
    return _rows_first(found)


def _rows_first(matrices: Floats) -> Floats:
    """Matrices of (row, column, 1) from those of (column, row, 1)."""
    return matrices[:, [1, 0, 2]][:, :, [1, 0, 2]]


def log_polar(frames: Floats, model: str) -> Floats:
    """scikit-image: log-polar phase correlation, then that of the turned frame, as in its gallery."""
    from skimage.filters import window
    from skimage.registration import phase_cross_correlation
    from skimage.transform import rotate, warp_polar

    del model
    first, middle, found = frames[0], (np.array(frames[0].shape) - 1) / 2, []
    radius = frames.shape[1] // 8

    def polar(image: Floats) -> Any:
        spectrum = np.abs(np.fft.fftshift(np.fft.fft2(image * window("hann", image.shape))))
        return warp_polar(spectrum, radius=radius, output_shape=(720, radius))[:360]

    for frame in frames:
        turn = phase_cross_correlation(polar(first), polar(frame), upsample_factor=20, normalization=None)[0][0] / 2
        turn = 90 - (turn + 90) % 180
        shift = phase_cross_correlation(first, rotate(frame, turn), upsample_factor=20, normalization=None)[0]
        angle = np.radians(turn)
        matrix = np.array([[np.cos(angle), np.sin(angle), 0], [-np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
        matrix[:2, 2] = middle - matrix[:2, :2] @ (middle + shift)
        found.append(matrix)
    return np.stack(found)


def suite2p(frames: NDArray[np.float32]) -> Floats:
    """suite2p's non-rigid registration: blocks of 128 pixels, its settings but for the largest deviation."""
    import torch

    register, settings = _suite2p_register()
    counts = ((frames - frames.min()) * _COUNTS).astype(np.int16)
    prepared = register.compute_filters_and_norm(
        counts[0],
        norm_frames=settings["norm_frames"],
        spatial_smooth=settings["smooth_sigma"],
        spatial_taper=settings["spatial_taper"],
        block_size=settings["block_size"],
        device=torch.device("cpu"),
    )
    y, x, _, block_y, block_x, *_ = register.compute_shifts(
        prepared,
        torch.from_numpy(counts),
        maxregshift=settings["maxregshift"],
        snr_thresh=settings["snr_thresh"],
        maxregshiftNR=_DEVIATION,
    )
    rows, columns, (ny, nx), *_ = prepared[6]
    nodes = [np.array(part).mean(axis=1).astype(int) for part in (rows[::nx], columns[:nx])]
    blocks = np.stack([block_y.numpy(), block_x.numpy()], axis=1).reshape(len(frames), 2, ny, nx)
    for axis, places in zip((2, 3), nodes, strict=True):  # linear between the blocks, the nearest beyond them
        pixels = np.arange(frames.shape[axis - 1])
        blocks = np.apply_along_axis(lambda line, at=places, to=pixels: np.interp(to, at, line), axis, blocks)
    whole = np.stack([y.numpy(), x.numpy()], axis=1)
    return -(blocks + whole[:, :, None, None])


@functools.cache
def _suite2p_register() -> tuple[Any, dict[str, Any]]:
    """Its module that registers and that module's settings; the rest asks for a window system, or models of cells."""
    spec = importlib.util.find_spec("suite2p")
    if spec is None or spec.origin is None:
        raise ImportError("suite2p is not installed")
    root = Path(spec.origin).parent
    for name, path in (("suite2p", root), ("suite2p.registration", root / "registration")):
        package = types.ModuleType(name)
        package.__path__ = [str(path)]
        sys.modules[name] = package
    try:
        import cellpose.transforms  # noqa: F401 - it needs torchvision, and registration none of it
    except ImportError:
        unused = types.ModuleType("cellpose")
        unused.transforms = types.ModuleType("cellpose.transforms")  # type: ignore[attr-defined]
        sys.modules["cellpose"] = unused
    from suite2p.parameters import default_settings

    sys.modules["suite2p"].default_settings = default_settings  # type: ignore[attr-defined]
    from suite2p.registration import register

    return register, default_settings()["registration"]


def normcorre(frames: NDArray[np.float32]) -> Floats:
    """jnormcorre: patches of 128 pixels that overlap by 32, its defaults, but for the largest shift and deviation."""
    import jax
    from jnormcorre.motion_correction import register_frames_to_template_pwrigid

    step, overlap, upsampling = 96, 32, 10
    _, shifts = register_frames_to_template_pwrigid(
        frames, frames[0], step, step, overlap, overlap, _LARGEST_SHIFT, upsampling, _DEVIATION, 0.0
    )
    counts = [-(-(size - overlap) // step) for size in frames.shape[1:]]
    patches = np.moveaxis(np.asarray(shifts).reshape(len(frames), *counts, 2), 3, 1)
    return np.asarray(jax.image.resize(patches, (len(frames), 2, *frames.shape[1:]), method="cubic"), np.float64)
