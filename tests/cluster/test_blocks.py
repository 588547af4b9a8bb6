"""Passes shared among sessions of one process: whatever is divided how, the same bits as alone."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

import xcorr_app as xc
from xcorr_app.cluster.blocks import Replay, Session, joined
from xcorr_app.registration import passes
from xcorr_app.registration.passes import Pass, sharing

FRAMES, SHAPE = 45, (103, 118)


@pytest.fixture(autouse=True)
def few_frames_a_block(monkeypatch):
    """Ranges of two frames, blocks of eight."""
    monkeypatch.setattr(passes, "_PIXELS_PER_CHUNK", 2 * SHAPE[0] * SHAPE[1])


def movie(kind):
    rng = np.random.default_rng(5)
    scene = gaussian_filter(rng.normal(size=(150, 160)), 2) * 800
    noise = 100.0 if kind == "faint" else 20.0
    frames = np.empty((FRAMES, *SHAPE), np.float32)
    for t in range(FRAMES):
        y, x = np.rint([15 + 9 * np.sin(t / 7), 15 + 8 * np.cos(t / 5)]).astype(int)
        frames[t] = scene[y : y + SHAPE[0], x : x + SHAPE[1]] + rng.normal(0, noise, SHAPE)
        if kind == "lit":
            frames[t] *= 1 + 0.5 * np.sin(t / 9) * np.linspace(-1, 1, SHAPE[1])
    if kind == "particle":
        for t in range(FRAMES):
            y = 20 + t
            frames[t, y : y + 12, 30:60] += 3000
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
        whole = pickle.loads(pickle.dumps(joined(found)))
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


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("clear", {"verify": 7}),
        ("faint", {"reference": "last"}),
        ("lit", {}),
        ("particle", {}),
        ("pattern", {}),
        ("clear", {"reference": "template"}),
        ("faint", {"reference": "mean", "verify": 3}),
        ("clear", {"reference": "previous"}),
        ("clear", {"reference": "rolling:5"}),
        ("faint", {"reference": "pairs:2", "smooth_time": 3}),
        ("clear", {"mask": "threshold:100"}),
        ("clear", {"reference": 20, "subpixel": "icgn"}),
    ],
)
def test_parts_give_the_same_bits(kind, options):
    stack = movie(kind)
    alone = xc.estimate_shifts(stack, max_shift=24, **options)
    shared, stages = divided(lambda: xc.estimate_shifts(stack, max_shift=24, **options), parts=4, sessions=3)
    assert "measure" in stages
    same(shared, alone)
