"""Several channels of a stack measured together."""

import numpy as np
import pytest

from tests.batch.movies import align, movie, record, shifts
from xcorr_app import estimate_shifts, write_stack
from xcorr_app.io.source import StackMetadata
from xcorr_app.registration.channels import combined


def noisy(seed, level, drift):
    rng = np.random.default_rng(seed)
    frames = movie(shape=(64, 72), seed=seed, drift=drift).astype(np.float32)
    return frames + level * rng.normal(size=frames.shape).astype(np.float32)


DRIFT = [(0, 0), *np.random.default_rng(0).integers(-5, 6, (23, 2)).tolist()]


def test_channels_are_averaged_by_their_errors():
    results = [
        estimate_shifts(noisy(seed, level, DRIFT), max_shift=8, contrast="none") for seed, level in ((1, 600), (2, 900))
    ]
    both = combined(results, ["a", "b"])
    errors = [np.sqrt(np.mean((result.shifts - DRIFT)[1:] ** 2)) for result in (*results, both)]
    assert errors[2] < min(errors[:2])
    assert (both.sigma <= np.minimum(*(result.sigma for result in results)) + 1e-9).all()
    assert "2 channels (a, b)" in both.notes[0]
    ratios = np.abs(both.shifts - DRIFT)[1:] / both.sigma[1:]
    assert 0.5 < (ratios < 1).mean() < 0.9


def test_a_channel_that_cannot_be_trusted_does_not_count():
    good = estimate_shifts(noisy(1, 50, DRIFT), max_shift=8, contrast="none")
    empty = estimate_shifts(np.zeros((24, 64, 72), np.float32), max_shift=8, contrast="none")
    both = combined([empty, good], ["0", "1"])
    np.testing.assert_allclose(both.shifts, good.shifts, atol=1e-12)
    assert both.trusted.all()
    assert combined([empty, empty], ["0", "1"]).flags == empty.flags
    moving = estimate_shifts(
        noisy(1, 50, [(dy + 3, dx) for dy, dx in DRIFT]), noisy(1, 50, DRIFT)[0], max_shift=12, contrast="none"
    )
    torn = combined([good, moving], ["0", "1"])
    assert all("inconsistent" in flags for flags in torn.flags)


@pytest.mark.parametrize("level", [0, 20])
def test_a_channel_that_is_dark_in_the_first_frame_agrees_with_the_others(level):
    """Flat or noisy: it is compared with a later frame, which lies elsewhere."""
    drift = [(dy + 2, dx - 3) for dy, dx in DRIFT]
    drift[0] = (0, 0)
    dark = noisy(2, 50, drift)
    dark[0] = 100 + level * np.random.default_rng(7).normal(size=dark[0].shape)
    results = [estimate_shifts(stack, max_shift=12) for stack in (noisy(1, 50, drift), dark)]
    assert [result.trusted.sum() for result in results] == [24, 23]
    both = combined(results, ["a", "b"])
    assert both.flags == ((),) * 24
    np.testing.assert_allclose(both.shifts, drift, atol=0.05)


@pytest.mark.parametrize("words", ["0,1", "sum"])
def test_the_command(tmp_path, words):
    planes = np.stack([noisy(1, 600, DRIFT), noisy(2, 600, DRIFT)], axis=1).clip(0, 65535).astype(np.uint16)
    metadata = StackMetadata("TCYX", planes.shape, planes.dtype, "ome", channel_names=("red", "green"))
    write_stack(tmp_path / "m.ome.tif", planes, metadata)
    run = align(tmp_path / "m.ome.tif", "-o", tmp_path / "out", "--channel", words, "--max-shift", 8)
    assert run.code == 0, run.stdout
    found = shifts(tmp_path / "out" / "m" / "shifts.csv")
    alone = [estimate_shifts(planes[:, c], max_shift=8).shifts for c in (0, 1)]
    error, errors = (np.sqrt(np.mean((s - DRIFT) ** 2)) for s in (found, np.stack(alone)))
    assert error < errors
    assert "2 channels (red, green)" in run.stdout
    assert record(tmp_path / "out")["parameters"]["channel"] == ([0, 1] if words == "0,1" else "sum")
    wrong = align(tmp_path / "m.ome.tif", "-o", tmp_path / "w", "--channel", "0,5")
    assert wrong.code == 1
    assert "2 channel" in wrong.stdout
    assert align(tmp_path / "m.ome.tif", "-o", tmp_path / "w", "--channel", "x").code == 2
