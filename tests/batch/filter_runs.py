"""Running ``xcorr filter`` on small stacks, and what its results must be."""

import numpy as np
import tifffile
from scipy import ndimage

from tests.batch.movies import xcorr

TAPS = np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 0.25]])
"""Neither symmetric nor square nor of odd height: a flip or a wrong centre shows."""


def filtering(*arguments):
    """``xcorr filter`` on the CPU."""
    return xcorr("filter", "--device", "cpu", *arguments)


def result(out, name="m"):
    return tifffile.imread(out / name / f"{name}_filtered.tif")


def two_gaussians(frame, **edge):
    return ndimage.gaussian_filter(frame, 1.0, **edge) - ndimage.gaussian_filter(frame, 3.0, **edge)


def sharpened(frame, **edge):
    return frame + 0.7 * (frame - ndimage.gaussian_filter(frame, 2.0, **edge))


# arguments of the command -> the same by scipy.ndimage in float64, of one frame
NAMED = {
    ("--gaussian", "1.5"): lambda frame, **edge: ndimage.gaussian_filter(frame, 1.5, **edge),
    ("--gaussian", "0.7,2"): lambda frame, **edge: ndimage.gaussian_filter(frame, (0.7, 2), **edge),
    ("--box", "5"): lambda frame, **edge: ndimage.uniform_filter(frame, 5, **edge),
    ("--box", "1,7"): lambda frame, **edge: ndimage.uniform_filter(frame, (1, 7), **edge),
    ("--sobel", "y"): lambda frame, **edge: ndimage.sobel(frame, 0, **edge),
    ("--sobel", "x"): lambda frame, **edge: ndimage.sobel(frame, 1, **edge),
    ("--laplacian",): ndimage.laplace,
    ("--log", "2"): lambda frame, **edge: ndimage.gaussian_laplace(frame, 2.0, **edge),
    ("--dog", "1,3"): two_gaussians,
    ("--unsharp", "2,0.7"): sharpened,
}


def expected(frames, by, **edge):
    """Every frame filtered in float64."""
    return np.stack([by(frame.astype(np.float64), **edge) for frame in frames])


def assert_rounded(found, exact):
    """Integers are the exact values rounded half to even and clipped; within 1e-2 of a half either neighbour will do.

    Returns how many of the exact values lie beyond the type.
    """
    info = np.iinfo(found.dtype)
    wanted = np.clip(np.rint(exact), info.min, info.max)
    off = np.abs(found.astype(np.float64) - wanted)
    doubtful = np.abs(np.abs(exact - np.floor(exact)) - 0.5) < 1e-2
    assert off[~doubtful].max(initial=0) == 0
    assert off.max() <= 1
    assert doubtful.mean() < 0.1
    return int(np.count_nonzero(np.rint(exact) != wanted))
