"""The kernel for few values a result, its own source run on the host."""

from __future__ import annotations

import numpy as np

from tests.kernels.host_device import guarded, guards_are_whole, run_kernel
from tests.kernels.pointwise_definition import off_by, surroundings_are_whole
from xcorr_app.gpu.pointwise.shallow import shallow_argument, shallow_launch
from xcorr_app.gpu.pointwise.shallow_plan import ShallowProblem


def shallow_on_host(folder, images, filters, layer, *, offset=0, tuning=None, device=None):
    """A layer's output, poisoned beforehand; arrays `offset` elements off 16 bytes."""
    problem = ShallowProblem.of_bank(layer)
    source, planes = off_by(images, offset), off_by(np.full(layer.out_shape, np.nan, np.float32), offset)
    addresses = source.ctypes.data | planes.ctypes.data | 16
    launch = shallow_launch(problem, alignment=addresses & -addresses, device=device, tuning=tuning)
    bank = guarded(filters)
    arrays = (source, planes, planes, bank, shallow_argument(problem, launch))
    run_kernel(folder, launch, arrays, launch.extra)
    assert surroundings_are_whole(planes)
    assert guards_are_whole(bank)
    return planes
