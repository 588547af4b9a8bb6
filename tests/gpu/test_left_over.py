"""What aligned frames leave, by kernels on a device, as array operations of the host say."""

from __future__ import annotations

import importlib

import numpy as np
import pytest

from tests.kernels.test_left_over_on_host import assert_as_array_operations_say, series
from xcorr_app.registration.pattern import one_layer
from xcorr_app.registration.stack.frames import ArrayFrames

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize(("dtype", "shape"), [("uint8", (61, 90)), ("uint16", (512, 300)), ("int16", (203, 195))])
@pytest.mark.parametrize("still", [0.0, 0.5])
def test_as_on_the_host(rng, dtype, shape, still):
    cupy = importlib.import_module("cupy")
    drift = rng.normal(0, 2.5, (9, 2))
    frames, numbers = series(shape, dtype, drift, 0.3, still), np.array([0, 2, 4, 6, 8])
    found = one_layer.left_over_in_place(ArrayFrames(cupy.asarray(frames)), numbers, -drift[numbers])
    assert_as_array_operations_say(found, frames[numbers], -drift[numbers])
