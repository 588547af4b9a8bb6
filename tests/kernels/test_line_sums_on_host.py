"""The kernel of sums over lines, on the host, against the array operations that decide on a CPU."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.in_the_place_of_cupy import run_on_host
from xcorr_app.gpu.peaks import line_sums
from xcorr_app.registration.artefacts import line_offsets
from xcorr_app.registration.artefacts.line_glance import middle_rows
from xcorr_app.registration.weights import alternating


@pytest.fixture
def sums(host_builds, monkeypatch):
    """The kernel, run by the host."""
    run_on_host(monkeypatch, host_builds, line_sums)
    monkeypatch.setattr(line_sums, "download", np.array)
    return line_sums.line_sums


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16"])
@pytest.mark.parametrize("shape", [(64, 91), (131, 70), (301, 97)])
def test_as_array_operations_say(sums, rng, dtype, shape):
    y, x = np.mgrid[: shape[0], : shape[1]]
    scene = 90 + 40 * np.sin(x / 5 + 0.7 * (y % 2)) * np.cos(y / 7) + 9 * rng.normal(size=shape)
    images = np.stack([scene + 5 * rng.normal(size=shape), scene[::-1], scene + 9 * rng.normal(size=(shape[0], 1))])
    images = np.rint(images.clip(0, 250)).astype(dtype)
    middle = middle_rows(shape[0])
    exact = images.astype(np.float64)
    pairs = (exact[:, middle].shape[1] - 1) // 2
    (shared, own), means = sums((images[0], images[1]), images[2], middle.start, pairs)
    found, surely = alternating.offsets(shared, own)
    expected, of_these = alternating.odd_rows(exact[:2, middle])
    np.testing.assert_allclose(found, expected, rtol=1e-9)
    np.testing.assert_array_equal(surely, of_these)
    assert abs(expected[0]) > 0.1
    for axis, groups in zip((2, 1), means, strict=True):
        ours, differ = line_offsets._of_groups(groups[None])
        offsets, surely = line_offsets._differ(exact[2:], axis)
        np.testing.assert_allclose(ours, offsets, rtol=1e-9, atol=1e-9)
        assert differ == surely
    assert line_offsets._of_groups(means[0][None])[1]
