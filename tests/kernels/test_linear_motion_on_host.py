"""The kernels that refine linear motions, their own source run on the host: the definition, and the CPU's answer."""

from __future__ import annotations

import numpy as np
import pytest

from tests.kernels.resample_host import forget, numpy_as_device
from tests.registration.motion.test_motion import series
from xcorr_app.gpu.field import linear
from xcorr_app.gpu.field.run import smooth_frames
from xcorr_app.registration.motion import gauss_newton, whole_frames
from xcorr_app.registration.motion.device_motion import DeviceMotion
from xcorr_app.registration.motion.models import MODELS, model_of
from xcorr_app.registration.motion.smoothed_frames import gaussian_taps
from xcorr_app.registration.warping.matrices import about_corner, turned
from xcorr_app.registration.warping.warp import coefficients, seen_through


@pytest.fixture
def device(monkeypatch, host_builds):
    yield numpy_as_device(monkeypatch, host_builds)
    forget()


def motions(rng, count):
    found = turned(rng.uniform(-0.3, 0.3, count), rng.uniform(0.9, 1.1, count))
    found[:, :2, 2] = rng.uniform(-6, 6, (count, 2))
    return found


def products(shape, reference, seen, motion):
    """The eight images of a motion (8, pixels) and the reference, in float64, over the pixels that are compared."""
    y, x = np.mgrid[: shape[0], : shape[1]]
    places = np.einsum("ij,jyx->iyx", about_corner(motion, shape)[:2], np.stack([y, x, np.ones(shape)]))
    limit = np.array(shape)[:, None, None] - 4
    inside = ((places >= 3) & (places <= limit)).all(axis=0) & (np.array([y, x]) >= 3).all(axis=0)
    inside &= (np.array([y, x]) <= limit).all(axis=0)
    gy, gx = gauss_newton.slopes_of(reference.astype(np.float64))
    y, x = ((at - (size - 1) / 2) * linear.unit_of(shape) for at, size in zip((y, x), shape, strict=True))
    images = np.stack([-gy, -gx, -y * gy, -x * gy, -y * gx, -x * gx, seen, np.ones(shape)])
    return images[:, inside], reference[inside], inside


@pytest.mark.parametrize("shape", [(70, 141), (33, 64), (129, 47)])
def test_sums_are_those_of_the_definition(device, rng, shape):
    frames, reference = rng.normal(size=(2, *shape)).astype(np.float32), rng.normal(size=shape).astype(np.float32)
    numbers, through = np.array([1, 0, 1]), motions(rng, 3)
    slopes = np.ascontiguousarray(np.stack(gauss_newton.slopes_of(reference), axis=-1))
    splines = np.stack([coefficients(frame) for frame in frames])
    of_corner = about_corner(through, shape)[:, :2]
    found = linear.linear_sums(splines, reference, slopes, numbers, of_corner)
    gains, offsets = np.array([0.7, 1.3, 1.0]), np.array([0.2, -0.1, 0.0])
    seen = np.stack([seen_through(splines[n], motion) for n, motion in zip(numbers, through, strict=True)])
    of_both, scatter = linear.linear_scatter(seen, reference, slopes, of_corner, gains, offsets)
    for t in range(3):
        images, other, inside = products(shape, reference, seen[t].astype(np.float64), through[t])
        assert found.pixels[t] == inside.sum()
        scale = np.sqrt(np.outer(np.square(images).sum(axis=1), np.square(images).sum(axis=1)))
        np.testing.assert_allclose(found.normal[t] / scale, images @ images.T / scale, atol=1e-5)
        np.testing.assert_allclose(found.right[t], images @ other, atol=1e-5 * scale.max())
        assert found.score[t] == pytest.approx(np.corrcoef(images[6], other)[0, 1], abs=1e-5)
        gy, gx = (slope[inside] for slope in gauss_newton.slopes_of(seen[t].astype(np.float64)))
        y, x = (((np.indices(shape)[axis] - (shape[axis] - 1) / 2) * linear.unit_of(shape))[inside] for axis in (0, 1))
        changes = np.stack([gy, gx, y * gy, x * gy, y * gx, x * gx])
        expected = images @ changes.T
        np.testing.assert_allclose(of_both[t], expected, atol=1e-4 * np.abs(expected).max())
        residual = np.zeros((8, *shape))
        residual[:, inside] = images * (other - gains[t] * images[6] - offsets[t])
        sums = np.add.reduceat(np.add.reduceat(residual, range(0, shape[0], 16), 1), range(0, shape[1], 16), 2)
        sums = sums.reshape(8, -1)
        np.testing.assert_allclose(scatter[t], sums @ sums.T, atol=1e-4 * np.abs(sums @ sums.T).max())


def prepared(frames, model, monkeypatch):
    """What measures `frames` against the first, as on a device and frame by frame."""

    def sizes_of(images, sigma, half):
        sizes = smooth_frames(images, np.nanmean(images, axis=(1, 2)), gaussian_taps(sigma), half=half == 2)
        return [size for size in sizes if size is not None]

    monkeypatch.setattr(whole_frames, "sizes_of", sizes_of)
    alone, together = (whole_frames.Against(frames[0], model_of(model), 0.5) for _ in range(2))
    together._device = DeviceMotion(together._levels, model_of(model))
    return alone, together


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize(("snr", "shape"), [(20, (120, 131)), (1, (97, 150)), (3, (64, 70))])
def test_the_motion_is_that_of_the_cpu(device, monkeypatch, model, snr, shape):
    frames, _ = series(model, snr, 6, shape=shape)
    frames = np.concatenate([frames, np.zeros((1, *shape)), frames[:1]])
    frames[-1, 20:24, 30:35] = np.nan
    frames[2] += 3
    known = [[]] * 3 + [[turned(0.3), turned(1.0, 1.1)]] + [[]] * 2
    alone, together = prepared(frames, model, monkeypatch)
    expected, found = (against.measured(frames, known) for against in (alone, together))
    assert [one.flags for one in found] == [one.flags for one in expected]
    assert "flat" in found[4].flags
    assert "non-finite" in found[5].flags
    for here, there in zip(expected, found, strict=True):
        if here.motion is None or "uncertain" in here.flags:
            continue
        assert gauss_newton.corner_moves(there.motion - here.motion, shape) < 2e-3
        assert there.score == pytest.approx(here.score, abs=1e-4)
        # Of a frame that is not moved, rounding decides whether its outermost lines are compared.
        assert there.overlap == pytest.approx(here.overlap, abs=2 / shape[0] + 2 / shape[1])
        # Of what lies on the reference nothing but rounding is left: a millionth of a pixel.
        np.testing.assert_allclose(np.diag(there.covariance), np.diag(here.covariance), rtol=0.02, atol=1e-12)


def test_what_cannot_be_refined_is_told(device, monkeypatch):
    """Stripes hold nothing along themselves, and a frame that is elsewhere has no overlap."""
    stripes = np.sin(np.arange(100) / 5)[:, None] * np.ones((100, 110))
    alone, together = prepared(np.stack([stripes, np.roll(stripes, 2, axis=0)]), "rigid", monkeypatch)
    here, there = (each.measured(np.roll(stripes, 2, axis=0)[None], [[]])[0] for each in (alone, together))
    assert here.flags == there.flags
    away = np.eye(3)
    away[:2, 2] = 97.0, 3.0
    fits = together._device.refined(
        [stripes[None].astype(np.float32), gauss_newton.halved(stripes)[None].astype(np.float32)][
            : len(together._levels)
        ],
        np.array([0, 0]),
        np.stack([away, np.eye(3)]),
    )
    assert np.isnan(fits[0].score)
    assert fits[0].overlap == 0
    assert not fits[0].settled
