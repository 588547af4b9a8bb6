"""Registration by engine ``tensor`` beside engine ``direct``: the same peaks but in ties that are proven.

A tie is proven where the scores of both peaks, computed from the pixels in float64, differ by less than 1e-6.
"""

import numpy as np
import pytest

from tests.correlation import plain
from tests.device import NEEDS_DEVICE
from tests.registration.scenes import drifting, noise
from xcorr_app import KernelOptions, ShiftWindow, estimate_shifts
from xcorr_app.registration.measuring.matcher import Matcher
from xcorr_app.registration.settings import Settings

pytestmark = NEEDS_DEVICE

SHAPE = (96, 112)
WINDOW = 10
DRIFT = np.array([(0, 0), (1.5, -2.25), (3, 1), (-4.5, 6), (2.25, 2.75), (0.5, -5), (-6.75, -0.5), (7, 7)])
STEPS = [(0, 0), (1, -2), (3, 1), (-4, 3), (2, 2), (0, -3), (-3, -1), (4, 4)]
TIE = 1e-6


def cut(canvas):
    """Views of a canvas, moved by whole pixels; the shift to add is minus the step."""
    return np.stack([canvas[16 - dy : 16 - dy + SHAPE[0], 16 - dx : 16 - dx + SHAPE[1]] for dy, dx in STEPS])


def canvas_of(rng, values):
    return np.indices(np.add(SHAPE, 32)), rng.normal(size=np.add(SHAPE, 32)) if values else None


def lattice(lead):
    """Period 8 along both axes, with a pattern so weak that the true shift's score leads by about `lead`."""
    (y, x), pattern = canvas_of(np.random.default_rng(int(-np.log10(lead))), values=True)
    waves = np.sin(y * np.pi / 4) + np.sin(x * np.pi / 4)
    return cut(waves + pattern * np.sqrt(lead))


def checkerboard(roughness):
    (y, x), pattern = canvas_of(np.random.default_rng(3), values=True)
    return cut((y + x) % 2 + roughness * pattern)


def impulses(background):
    """Single bright pixels in the corners of the first frame, which leave one by one."""
    _, pattern = canvas_of(np.random.default_rng(4), values=True)
    canvas = background * pattern
    for row in (16, 15 + SHAPE[0]):
        for column in (16, 15 + SHAPE[1]):
            canvas[row, column] += 100
    return cut(canvas)


def hot_pixel():
    dark = np.random.default_rng(5).poisson(np.clip(drifting(DRIFT, SHAPE) * 2 + 6, 0, None))
    dark[:, 40, 50] = 65535
    return dark


def hot_pixels_that_move():
    dark = hot_pixel()
    dark[:, 40, 50] = 6
    for frame, (dy, dx) in zip(dark, STEPS, strict=True):
        frame[40 + dy, 50 + dx] = 65535
    return dark


SCENES = {
    "smooth": lambda: drifting(DRIFT, SHAPE),
    "noisy": lambda: drifting(DRIFT, SHAPE) + noise(drifting(DRIFT, SHAPE), 1.0),
    "offset of 50 deviations": lambda: drifting(DRIFT, SHAPE, offset=50),
    "offset of 1e4 deviations": lambda: drifting(DRIFT, SHAPE, offset=1e4),
    "checkerboard": lambda: checkerboard(0),
    "rough checkerboard": lambda: checkerboard(0.05),
    "impulses in corners": lambda: impulses(0.0),
    "impulses in corners over noise": lambda: impulses(1.0),
    **{f"lattice, lead {lead:g}": lambda lead=lead: lattice(lead) for lead in (1e-2, 1e-3, 1e-4, 1e-5, 1e-7)},
    "1e30": lambda: drifting(DRIFT, SHAPE) * 1e30,
    "1e-30": lambda: drifting(DRIFT, SHAPE) * 1e-30,
    "brighter from frame to frame": lambda: drifting(DRIFT, SHAPE) * 10.0 ** np.arange(-28, 4, 4)[:, None, None],
    "hot pixel": hot_pixel,
    "hot pixels that move": hot_pixels_that_move,
}
UINT16 = {"hot pixel", "hot pixels that move"}
MAX_TIES = {"checkerboard": 7, "impulses in corners": 7, "lattice, lead 1e-07": 7}
"""Of the 7 frames of a scene that are not the reference; none in the scenes that are not named."""


def stack_of(name):
    return SCENES[name]().astype("uint16" if name in UINT16 else "float32")


def matches(xp, stack, engine, dtype=np.float32):
    """Peaks, shifts and scores of all frames against the first, by an engine."""
    settings = Settings(max_shift=WINDOW, engine=engine, weighting="none")
    window = ShiftWindow.symmetric(WINDOW, WINDOW)
    matcher = Matcher(stack.shape[1:], window, settings, dtype, engine, None, xp)
    frames = xp.asarray(stack)
    return matcher.compare(matcher.prepare_reference(frames[:1]), frames).match


def score(reference, frame, peak):
    """Of one shift, from the pixels in float64."""
    dy, dx = (int(shift) for shift in peak)
    scaled = (image.astype(np.float64) / abs(image.astype(np.float64)).max() for image in (reference, frame))
    return float(plain.zncc(*scaled, ShiftWindow(dy, dy, dx, dx))[0, 0])


def ties_between(stack, ours, theirs):
    """Number of frames whose peaks differ, each a proven tie; all the others agree."""
    differ = (ours.peak != theirs.peak).any(axis=1)
    for t in np.flatnonzero(differ):
        scores = [score(stack[0], stack[t], match.peak[t]) for match in (ours, theirs)]
        assert abs(scores[0] - scores[1]) < TIE, (t, ours.peak[t], theirs.peak[t], scores)
    np.testing.assert_allclose(ours.shift[~differ], theirs.shift[~differ], rtol=0, atol=1e-4)
    np.testing.assert_allclose(ours.score[~differ], theirs.score[~differ], rtol=0, atol=1e-5)
    return int(differ.sum())


@pytest.mark.parametrize("name", SCENES)
def test_peaks_are_those_of_single_precision(cupy, name):
    stack = stack_of(name)
    ties = ties_between(stack, matches(cupy, stack, "tensor"), matches(cupy, stack, "direct"))
    assert ties <= MAX_TIES.get(name, 0)


@pytest.mark.parametrize(
    "name",
    ["smooth", "noisy", "offset of 1e4 deviations", "rough checkerboard", "lattice, lead 0.0001", "1e30", "1e-30"],
)
def test_peaks_are_those_of_double_precision(cupy, name):
    stack = stack_of(name)
    exact = matches(np, stack.astype(np.float64), "fft", np.float64)
    assert ties_between(stack, matches(cupy, stack, "tensor"), exact) == 0


def test_constant_frames_have_no_shift(cupy):
    stack = stack_of("smooth")
    stack[2], stack[5] = 0, 1e30
    ours, theirs = (
        estimate_shifts(cupy.asarray(stack), max_shift=WINDOW, weighting="none", engine=engine)
        for engine in ("tensor", "direct")
    )
    assert ours.flags == theirs.flags
    assert all("flat" in ours.flags[t] for t in (2, 5))
    assert np.isnan(ours.shifts[[2, 5]]).all()
    np.testing.assert_allclose(ours.shifts, theirs.shifts, rtol=0, atol=1e-4)


@pytest.mark.parametrize("precision", ["fp16", "fp16x2"])
@pytest.mark.parametrize("weighting", ["none", "auto"])
def test_every_precision_finds_the_same(cupy, precision, weighting):
    stack = (drifting(DRIFT, SHAPE) * 30 + 128).clip(0, 255).astype("uint8")
    options = {"max_shift": WINDOW, "weighting": weighting}
    ours = estimate_shifts(
        cupy.asarray(stack), engine="tensor", kernel_options=KernelOptions(precision=precision), **options
    )
    exact = estimate_shifts(stack.astype(np.float64), engine="fft", **options)
    assert ours.engine == "tensor"
    np.testing.assert_allclose(ours.shifts, exact.shifts, rtol=0, atol=1e-4)
    np.testing.assert_allclose(ours.score, exact.score, rtol=0, atol=1e-5)
    assert ours.flags == exact.flags
