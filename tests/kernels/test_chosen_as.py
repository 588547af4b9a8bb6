"""Launches that are chosen for one number of frames add sums in one order, however many frames there are."""

from __future__ import annotations

from dataclasses import replace

import pytest

from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.direct.tile_launches import combined
from xcorr_app.gpu.peaks.near_peak import near_peak_launches
from xcorr_app.gpu.peaks.search import peak_launch, plane_peak_launch
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.tensor.hankel import hankel_launch
from xcorr_app.gpu.tensor.hankel_frames import frames_launch

DEVICE = DeviceLimits()
WINDOW = Problem((256, 256), (256, 256), (-8, -8), (17, 17))
SIZES = (1, 2, 5, 37, 64, 200, 512)
TYPES = {"left_type": "float32", "right_type": "uint16", "device": DEVICE}


def shared(frames):
    """One reference for all frames."""
    return replace(WINDOW, rights=frames, rights_per_left=frames)


def own(frames):
    """A reference for each."""
    return replace(WINDOW, lefts=frames, rights=frames)


def kind(launch):
    """All of a launch but how many blocks it has."""
    return launch.kernel, dict(launch.defines), launch.threads, launch.shared_bytes, launch.extra, launch.segments


CHOICES = {
    "hankel": lambda problem: [hankel_launch(problem, **TYPES).launch],
    "hankel-warpgroup": lambda problem: [hankel_launch(problem, warpgroup=True, **TYPES).launch],
    "hankel-frames": lambda problem: [frames_launch(problem, **TYPES).products, frames_launch(problem, **TYPES).sums],
    "combined-peak": lambda problem: [peak_launch(problem, normalize=True, **TYPES)],
    "plane-peak": lambda problem: [plane_peak_launch(problem, normalize=True, device=DEVICE)],
    "near-peak": lambda problem: near_peak_launches(problem, error=1e-3, normalize=True, **TYPES),
    "combined": lambda problem: [
        combined(problem, {"LEFT_TYPE": "float", "RIGHT_TYPE": "float", "SUM_TYPE": "float"}, {}, DEVICE)
    ],
}


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("batch", [shared, own])
@pytest.mark.parametrize("number", [3, 64, 400])
def test_launches_are_those_of_the_number_they_are_chosen_for(name, batch, number):
    expected = [kind(launch) for launch in CHOICES[name](batch(number))]
    for frames in SIZES:
        problem = replace(batch(frames), chosen_as=batch(number))
        assert [kind(launch) for launch in CHOICES[name](problem)] == expected
