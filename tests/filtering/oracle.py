"""The answers of ``scipy.ndimage`` in float64, and what may differ from them."""

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import ndimage

from tests.kernels.stencil_definition import assert_pixels
from tests.pixels import pixels

BOUNDARIES = ("reflect", "constant", "nearest", "mirror", "wrap")
TYPES = ("uint8", "uint16", "int16", "float32", "float64")
NUMPY_NAMES: dict[str, Any] = {
    "reflect": "symmetric",
    "constant": "constant",
    "nearest": "edge",
    "mirror": "reflect",
    "wrap": "wrap",
}
SINGLE_TOLERANCE = 2e-6
DOUBLE_TOLERANCE = 1e-12


random_image = partial(pixels, spread=1.0)
"""Pixels over the whole range of an integer type, or around zero."""


def frames_apart(function: Any, images: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Apply a function of one frame to every frame, in float64."""
    flat = images.astype(np.float64).reshape(-1, *images.shape[-2:])
    return np.stack([function(frame) for frame in flat]).reshape(images.shape)


def extended(
    function: Any, frame: npt.NDArray[Any], taps: npt.NDArray[Any], mode: str, cval: float, origin: Any
) -> Any:
    """Call a function of ``scipy.ndimage``; a frame the taps fold more than once is extended by NumPy before.

    Under ``reflect``, SciPy's n-dimensional correlation reads the wrong pixel at each multiple of twice the frame's
    length (its one-dimensional correlation does not).
    """
    if all(size >= reach for size, reach in zip(frame.shape, taps.shape, strict=True)):
        return function(frame, taps, mode=mode, cval=cval, origin=origin)
    margins = [(reach, reach) for reach in taps.shape]
    outside = {"constant_values": cval} if mode == "constant" else {}
    whole = function(np.pad(frame, margins, mode=NUMPY_NAMES[mode], **outside), taps, mode="constant", origin=origin)
    return whole[taps.shape[0] : -taps.shape[0], taps.shape[1] : -taps.shape[1]]


def correlated(
    images: npt.NDArray[Any], taps: npt.NDArray[Any], mode: str = "reflect", cval: float = 0.0, origin: Any = 0
) -> Any:
    exact = np.asarray(taps, np.float64)
    return frames_apart(lambda frame: extended(ndimage.correlate, frame, exact, mode, cval, origin), images)


def convolved(
    images: npt.NDArray[Any], taps: npt.NDArray[Any], mode: str = "reflect", cval: float = 0.0, origin: Any = 0
) -> Any:
    exact = np.asarray(taps, np.float64)
    return frames_apart(lambda frame: extended(ndimage.convolve, frame, exact, mode, cval, origin), images)


def largest_sum(images: npt.NDArray[Any], taps: npt.NDArray[Any], mode: str = "reflect", cval: float = 0.0) -> float:
    """Largest sum of ``|taps| * |image|`` over the outputs: the unit of the stated tolerances."""
    sums = correlated(np.abs(images.astype(np.float64)), np.abs(taps), mode=mode, cval=abs(cval))
    return float(sums.max())


def assert_same_pixels(actual: npt.NDArray[Any], exact: npt.NDArray[np.float64], unit: float) -> None:
    """Compare a result with the float64 answer as the documentation promises.

    ``unit`` is `largest_sum`; integers equal the rounded and clipped answer unless it lies within 1e-2 of a half.
    """
    tolerance = SINGLE_TOLERANCE if actual.dtype == np.float32 else DOUBLE_TOLERANCE
    assert_pixels(actual, exact, tolerance * unit)
