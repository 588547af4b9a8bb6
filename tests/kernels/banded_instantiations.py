"""Every launch of separable taps on tensor cores that ships: taps and boundaries that the table tells apart."""

from __future__ import annotations

import itertools

from xcorr_app.gpu.stencil.banded import banded_launch
from xcorr_app.gpu.stencil.separable import SeparableProblem, separable_launch

OLDEST_BANDED = {"stencil/banded": 80}
"""Architecture from which on the kernel does anything."""


_MANY, _FEW = (64, 1024, 1024), (1, 256, 256)
"""Stacks for wide blocks and for narrow ones."""


def _problem(taps, boundary="reflect", origin=(0, 0), stack=_MANY):
    count, *image_shape = stack
    return SeparableProblem(tuple(image_shape), taps, count, boundary, origin)


def launches_of_banded():
    """Gaussians of 2 to 8 px, and the launch that follows them."""
    for taps in (17, 25, 33, 49, 65):
        for stack in (_MANY, _FEW):
            yield banded_launch(_problem((taps, taps), stack=stack), same_taps=True)
        yield separable_launch(_problem((taps, taps)), tuning={"ONLY_MARKED": 1})


def other_launches_of_banded():
    """Every number of products along either axis, as many taps as it takes, with every boundary in turn."""
    for taps, stack in itertools.product((2, 7, 17, 18, 33, 34, 49, 50, 65), (_MANY, _FEW)):
        for boundary in ("reflect", "mirror", "nearest", "wrap", "constant", "valid"):
            yield banded_launch(_problem((taps, taps), boundary, stack=stack), same_taps=True)
            yield banded_launch(_problem((taps, taps), boundary, stack=stack))
        yield banded_launch(_problem((taps, 67 - taps), "constant", stack=stack))
        off_centre = _problem((taps, taps), "constant", (0, taps // 2 - 1), stack)
        yield banded_launch(off_centre, same_taps=True)
        yield banded_launch(off_centre)
