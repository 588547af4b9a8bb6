"""Separable taps on tensor cores, the kernel's own source run on the host: results and which images it marked."""

from __future__ import annotations

import numpy as np

from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from xcorr_app.gpu.stencil.banded import banded_argument, banded_launch, fits_banded
from xcorr_app.gpu.stencil.separable import SeparableProblem


def banded_on_host(folder, images, terms, boundary="reflect", outside=0.0, origin=(0, 0), *, guard=True, **options):
    """Results, and which images are marked; both are poisoned and guarded."""
    ((column, row),) = terms
    problem = SeparableProblem(images.shape[-2:], (len(column), len(row)), len(images), boundary, origin)
    assert fits_banded(problem, column, row, images.dtype.name, "float32")
    launch = banded_launch(problem, same_taps=np.array_equal(column, row), **options)
    results = guarded(np.full((len(images), *problem.result_shape), np.nan, "float32"))
    marks = guarded(np.full(launch.blocks, -1, np.int32))
    inputs = guarded(images) if guard else images
    run_kernel(folder, launch, (inputs, results, marks, banded_argument(column, row, outside)), launch.extra)
    assert guards_are_whole(results)
    assert guards_are_whole(marks)
    assert set(marks.tolist()) <= {0, 1}
    return results, marks.reshape(len(images), -1).any(axis=1)
