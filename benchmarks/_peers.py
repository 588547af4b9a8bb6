"""The registration functions people use today, each in its best fair use, behind one signature.

A method takes (reference, frame, largest) and returns the registration shift (rows, columns; pixels to add to the
frame). `largest` is the largest shift to be expected; a method that takes no such limit ignores it. Each sign follows
from the peer's documentation; `check_sign` proves it on a displacement made by construction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray
from skimage.registration import phase_cross_correlation

Image = NDArray[np.uint16]
Shift = tuple[float, float]
Method = Callable[[Image, Image, int], Shift]

UPSAMPLE = 20


def skimage_phase(reference: Image, frame: Image, _largest: int) -> Shift:
    """scikit-image, phase normalisation (its default); it takes no limit of shifts."""
    return _skimage(reference, frame, "phase")


def skimage_plain(reference: Image, frame: Image, _largest: int) -> Shift:
    """scikit-image without normalisation."""
    return _skimage(reference, frame, None)


def _skimage(reference: Image, frame: Image, normalization: str | None) -> Shift:
    shift, _, _ = phase_cross_correlation(reference, frame, upsample_factor=UPSAMPLE, normalization=normalization)
    return float(shift[0]), float(shift[1])


def opencv_template(reference: Image, frame: Image, largest: int) -> Shift:
    """OpenCV matchTemplate (TM_CCOEFF_NORMED) of the reference's centre in the frame, a 3-point parabola per axis."""
    template = reference[largest:-largest, largest:-largest].astype(np.float32)
    plane = cv2.matchTemplate(frame.astype(np.float32), template, cv2.TM_CCOEFF_NORMED)
    y, x = (int(i) for i in np.unravel_index(plane.argmax(), plane.shape))
    y_peak = y + (_parabola(plane[y - 1 : y + 2, x]) if 0 < y < plane.shape[0] - 1 else 0.0)
    x_peak = x + (_parabola(plane[y, x - 1 : x + 2]) if 0 < x < plane.shape[1] - 1 else 0.0)
    return largest - y_peak, largest - x_peak


def _parabola(values: NDArray[Any]) -> float:
    before, centre, after = (float(v) for v in values)
    curvature = before - 2 * centre + after
    return 0.5 * (before - after) / curvature if curvature < 0 else 0.0


def opencv_phase(reference: Image, frame: Image, _largest: int) -> Shift:
    """OpenCV phaseCorrelate without a window."""
    (dx, dy), _ = cv2.phaseCorrelate(reference.astype(np.float64), frame.astype(np.float64))
    return -dy, -dx


def opencv_phase_hann(reference: Image, frame: Image, _largest: int) -> Shift:
    """OpenCV phaseCorrelate under a Hann window."""
    window = cv2.createHanningWindow(reference.shape[::-1], cv2.CV_64F)
    (dx, dy), _ = cv2.phaseCorrelate(reference.astype(np.float64), frame.astype(np.float64), window)
    return -dy, -dx


def pystackreg_translation(reference: Image, frame: Image, _largest: int) -> Shift:
    """Pystackreg (TurboReg), translation: its matrix maps a place in the output to the place in the frame."""
    from pystackreg import StackReg  # of the extra `bench` alone

    matrix = StackReg(StackReg.TRANSLATION).register(reference.astype(np.float64), frame.astype(np.float64))
    return -float(matrix[1, 2]), -float(matrix[0, 2])


PEERS: dict[str, Method] = {
    "scikit-image, phase": skimage_phase,
    "scikit-image, none": skimage_plain,
    "OpenCV template + parabola": opencv_template,
    "OpenCV phaseCorrelate": opencv_phase,
    "OpenCV phaseCorrelate, Hann": opencv_phase_hann,
    "pystackreg": pystackreg_translation,
}


def check_sign(name: str, method: Method) -> None:
    """Raise AssertionError unless the method finds a shift of (5, -3), made by cutting two crops out of one image."""
    rng = np.random.default_rng(1)
    canvas = cv2.GaussianBlur(rng.uniform(0, 60_000, (300, 300)), (0, 0), 1.5).astype(np.uint16)
    reference = canvas[20:276, 20:276]
    frame = canvas[25:281, 17:273]  # frame[y, x] = reference[y + 5, x - 3]: content moved by (-5, 3)
    found = method(reference, frame, 16)
    assert np.allclose(found, (5, -3), atol=0.5), f"{name} found {found} where the shift to add is (5, -3)"
