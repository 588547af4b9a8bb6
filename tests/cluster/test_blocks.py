"""Passes shared among sessions of one process: whatever is divided how, the same bits as alone."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter, rotate

import xcorr_app as xc
from tests.registration.scenes import drifting, noise
from xcorr_app.cluster.blocks import Part, Replay, Session, joined
from xcorr_app.cluster.kept_parts import plain
from xcorr_app.errors import ClusterError
from xcorr_app.registration.reference import stack_statistics
from xcorr_app.registration.stack import passes
from xcorr_app.registration.stack.passes import Pass, sharing

FRAMES, SHAPE = 45, (103, 118)


@pytest.fixture(autouse=True)
def few_frames_a_block(monkeypatch):
    """Ranges of two frames, blocks of eight."""
    monkeypatch.setattr(passes, "_PIXELS_PER_CHUNK", 2 * SHAPE[0] * SHAPE[1])
    monkeypatch.setattr(stack_statistics, "_STRIP_BYTES", 20 * FRAMES * SHAPE[1] * 4)


def lit():
    """As in the tests of light, which turns."""
    phase = np.arange(FRAMES) / (FRAMES - 1)
    drift = np.stack([9 * np.sin(3.1 * phase), 6 * (np.cos(4 * phase) - 1)], axis=1)
    y, x = (np.linspace(-1, 1, size) for size in SHAPE)
    angle = 3 * phase[:, None, None]
    light = 1 + 0.45 * (np.sin(angle) * y[:, None] + np.cos(angle) * x)
    clean = light * (60 + 20 * drifting(drift, SHAPE, width=0.04, seed=1))
    return (100 + clean + noise(clean, 0.4, 2)).astype(np.float32)


def movie(kind):
    if kind == "lit":
        return lit()
    rng = np.random.default_rng(5)
    scene = gaussian_filter(rng.normal(size=(150, 160)), 2) * 800
    noise = 100.0 if kind == "faint" else 20.0
    frames = np.empty((FRAMES, *SHAPE), np.float32)
    for t in range(FRAMES):
        y, x = np.rint([15 + 9 * np.sin(t / 7), 15 + 8 * np.cos(t / 5)]).astype(int)
        frames[t] = scene[y : y + SHAPE[0], x : x + SHAPE[1]] + rng.normal(0, noise, SHAPE)
        if kind == "turns":
            frames[t] = rotate(frames[t], 0.1 * t, reshape=False, mode="nearest")
        if kind == "walks":
            frames[t, t : t + 40, 20:60] = scene[:40, 100:140]
    if kind == "pattern":
        frames += 500 * rng.normal(size=SHAPE[1])
    return np.rint(frames - frames.min()).astype(np.uint16)


def divided(run, parts, sessions):
    """What `run` returns where its passes are computed in parts by several sessions."""
    known = []
    others = [Session(run) for _ in range(sessions)]
    while True:
        if len(known) == 2:
            # One is begun in the place of another.
            others[0].end()
            others[0] = Session(run)
        found = [others[(3 * part) % sessions].part(known, part, parts) for part in range(parts)]
        for result in (result for part in found for result in part.results):
            plain(result)  # else --resume would not know it
        whole = pickle.loads(pickle.dumps(joined(found)))  # noqa: S301 - as the cluster does
        if whole.stage is None:
            break
        known.append(whole)
    with sharing(Replay(known)):
        return run(), [part.stage for part in known]


def same(one, other):
    for field in dataclasses.fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b, err_msg=field.name)
        else:
            assert repr(a) == repr(b), field.name


@pytest.mark.share(5)
@pytest.mark.parametrize(
    ("kind", "options", "shared"),
    [
        ("clear", {"verify": 7}, {"measure"}),
        ("faint", {"reference": "last"}, {"measure"}),
        ("lit", {}, {"measure", "tiles", "refine", "light"}),
        ("turns", {}, {"measure", "tiles", "turn"}),
        ("walks", {"verify": 7}, {"measure", "tiles", "refine"}),
        ("pattern", {}, {"measure", "tiles"}),
        ("clear", {"reference": "template"}, {"measure", "template"}),
        ("faint", {"reference": "mean", "verify": 3}, {"measure", "mean"}),
        ("faint", {"reference": "median", "verify": 3}, {"measure", "median"}),
        ("clear", {"reference": "previous"}, {"measure", "closure"}),
        ("clear", {"reference": "rolling:5"}, {"measure", "closure"}),
        ("faint", {"reference": "pairs:2", "smooth_time": 3}, {"measure"}),
        ("clear", {"mask": "threshold:100"}, {"measure"}),
        ("clear", {"reference": 20, "subpixel": "phase"}, {"measure"}),
    ],
)
def test_parts_give_the_same_bits(kind, options, shared):
    stack = movie(kind)
    alone = xc.estimate_shifts(stack, max_shift=24, **options)
    found, stages = divided(lambda: xc.estimate_shifts(stack, max_shift=24, **options), parts=4, sessions=3)
    assert set(stages) == shared
    same(found, alone)


@pytest.mark.parametrize(
    ("model", "reference", "shared"),
    [("rigid", "first", {"measure"}), ("patches", "first", {"measure", "patches"}),
     ("patches", "mean", {"measure", "mean", "template", "patches"})],
)  # fmt: skip
def test_motion_in_parts_gives_the_same_bits(model, reference, shared):
    stack = movie("turns" if model == "rigid" else "clear")[:21]

    def run():
        return xc.estimate_motion(stack, model, reference, patch=32)

    found, stages = divided(run, parts=3, sessions=2)
    assert set(stages) == shared
    alone = run()
    for name in ("matrices", "score", "sigma"):
        np.testing.assert_array_equal(getattr(found, name), getattr(alone, name), err_msg=name)
    assert found.flags == alone.flags
    assert found.notes == alone.notes


def test_a_failure_is_told_to_whoever_asks():
    def run():
        raise ValueError("no such thing")

    session = Session(run)
    for _ in range(2):
        with pytest.raises(ValueError, match="no such thing"):
            session.part([], 0, 2)


@pytest.mark.parametrize("count", [1, 7, 8, 9, 45])
def test_a_total_is_summed_by_blocks(count, monkeypatch):
    """Two frames a range, four ranges a block, whoever sums."""
    monkeypatch.setattr(passes, "worker_count", lambda: 2)
    values = np.random.default_rng(count).normal(size=count) * 10.0 ** np.arange(count)
    walk = Pass(count, SHAPE[0] * SHAPE[1], on_device=False)

    def job(start, stop):
        return values[start:stop].sum()

    blocks = [values[start : start + 8] for start in range(0, count, 8)]
    sums = [sum((block[i : i + 2].sum() for i in range(2, len(block), 2)), block[:2].sum()) for block in blocks]
    assert walk.total("sum", job, float.__add__) == sum(sums[1:], sums[0])


def test_parts_of_different_devices_are_not_joined():
    with pytest.raises(ClusterError, match="workers differ"):
        joined([Part("measure", (False, 6)), Part("measure", (True, 6))])
