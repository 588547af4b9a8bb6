"""Time and exactness of moving frames: this project beside scipy.ndimage.shift and OpenCV's warpAffine.

Run ``python benchmarks/apply.py``; it prints a table and writes ``results/apply_cpu.json``. Frames are 512x512 uint16,
moved by random sub-pixel shifts on one thread; the time of a frame includes conversion, rounding and clipping. The
error is measured inside the frame, in units of its range, on float32 output against the method's own definition in
float64; OpenCV takes its weights from a table of 1/32 px, which is what its error shows.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import scipy.ndimage
from _environment import write_result

from xcorr_app.registration.moving.apply import shift_frames

if TYPE_CHECKING:
    from collections.abc import Callable

FRAMES, SIZE, REPEATS, MARGIN = 24, 512, 9, 16
KEYS_A, OPENCV_A = -0.5, -0.75

Mover = "Callable[[np.ndarray, tuple[float, float]], np.ndarray]"


def kernel(order: int, a: float) -> Callable[[np.ndarray], np.ndarray]:
    """Linear (1) or cubic convolution (3) kernel with the parameter ``a``, as a function of distance in pixels."""
    if order == 1:
        return lambda u: np.maximum(0.0, 1.0 - np.abs(u))

    def cubic(u: np.ndarray) -> np.ndarray:
        u = np.abs(u)
        near = ((a + 2) * u - (a + 3)) * u * u + 1
        far = ((a * u - 5 * a) * u + 8 * a) * u - 4 * a
        return np.where(u < 1, near, np.where(u < 2, far, 0.0))

    return cubic


def by_definition(
    frame: np.ndarray, shift: tuple[float, float], weight: Callable[[np.ndarray], np.ndarray]
) -> np.ndarray:
    """Both axes as dense float64 matrices; right where the kernel does not reach beyond the frame."""
    moves = [weight(np.arange(n)[:, None] - s - np.arange(n)[None, :]) for n, s in zip(frame.shape, shift, strict=True)]
    return moves[0] @ frame.astype(np.float64) @ moves[1].T


def ours(order: Any) -> Mover:
    """Return this project's mover on one thread."""
    return lambda frame, shift: shift_frames(frame[None], [shift], order=order, workers=1)[0][0]


def with_scipy(order: int) -> Mover:
    """Return scipy.ndimage.shift with a spline of that order."""
    return lambda frame, shift: scipy.ndimage.shift(frame, shift, order=order)


def with_opencv(flag: int) -> Mover:
    """Return cv2.warpAffine with that interpolation."""

    def move(frame: np.ndarray, shift: tuple[float, float]) -> np.ndarray:
        matrix = np.array([[1.0, 0.0, shift[1]], [0.0, 1.0, shift[0]]])
        return cv2.warpAffine(frame, matrix, frame.shape[::-1], flags=flag)

    return move


def milliseconds(move: Mover, frames: np.ndarray, shifts: np.ndarray, repeats: int) -> tuple[float, float]:
    """Best and median time of one frame over ``repeats`` passes."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        for frame, shift in zip(frames, shifts, strict=True):
            move(frame, shift)
        times.append((time.perf_counter() - begin) / len(frames) * 1e3)
    return min(times), float(np.median(times))


def scene(random: np.random.Generator) -> np.ndarray:
    """Blurred speckle with noise: counts of a camera between some hundred and some thousand."""
    speckle = scipy.ndimage.gaussian_filter(random.normal(size=(FRAMES, SIZE, SIZE)), (0, 2, 2))
    return random.poisson(2000 + 4000 * speckle.clip(-0.4, 0.4)).astype(np.uint16)


def main() -> None:
    """Measure, print, write."""
    cv2.setNumThreads(1)
    random = np.random.default_rng(20240501)
    frames, shifts = scene(random), random.uniform(-8, 8, (FRAMES, 2))
    contenders: list[tuple[str, str, Mover, Callable[[np.ndarray], np.ndarray] | None]] = [
        ("xcorr", "linear", ours(1), kernel(1, 0)),
        ("xcorr", "cubic", ours(3), kernel(3, KEYS_A)),
        ("xcorr", "lanczos", ours("lanczos"), None),
        ("xcorr", "fourier", ours("fourier"), None),
        ("scipy.ndimage.shift", "linear", with_scipy(1), kernel(1, 0)),
        ("scipy.ndimage.shift", "cubic spline", with_scipy(3), None),
        ("cv2.warpAffine", "linear", with_opencv(cv2.INTER_LINEAR), kernel(1, 0)),
        ("cv2.warpAffine", "cubic", with_opencv(cv2.INTER_CUBIC), kernel(3, OPENCV_A)),
        ("cv2.warpAffine", "lanczos", with_opencv(cv2.INTER_LANCZOS4), None),
    ]
    inner = (slice(MARGIN, -MARGIN), slice(MARGIN, -MARGIN))
    rows = []
    print(f"{'library':22}{'method':14}{'best ms':>9}{'median ms':>11}{'error / range':>15}")
    for library, method, move, weight in contenders:
        best, median = milliseconds(move, frames, shifts, REPEATS)
        error = None
        if weight is not None:
            exact = [by_definition(f, s, weight)[inner] for f, s in zip(frames[:4], shifts, strict=False)]
            got = [move(f.astype(np.float32), s)[inner] for f, s in zip(frames[:4], shifts, strict=False)]
            error = max(float(np.abs(g - e).max()) for g, e in zip(got, exact, strict=True)) / float(np.ptp(frames))
        rows.append({"library": library, "method": method, "best_ms": best, "median_ms": median, "error": error})
        print(f"{library:22}{method:14}{best:9.2f}{median:11.2f}{'' if error is None else f'{error:15.1e}'}")
    threaded = {}
    for method, order in (("linear", 1), ("cubic", 3)):
        times = []
        for _ in range(REPEATS):
            begin = time.perf_counter()
            shift_frames(frames, shifts, order=order)
            times.append((time.perf_counter() - begin) / FRAMES * 1e3)
        threaded[method] = {"best_ms": min(times), "median_ms": float(np.median(times))}
        print(f"xcorr, all cores      {method:14}{min(times):9.2f}{np.median(times):11.2f}")
    payload = {"frame": [SIZE, SIZE], "dtype": "uint16", "frames": FRAMES, "unit": "ms a frame"}
    write_result("apply_cpu", payload | {"one_thread": rows, "all_cores": threaded})


if __name__ == "__main__":
    main()
