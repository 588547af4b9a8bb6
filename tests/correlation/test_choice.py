"""The one choice of correlation: pure functions of problem and limits, held to what was measured on an H200."""

from __future__ import annotations

import pytest

from xcorr_app.correlation.choice import decide_peaks, decide_planes
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES

H200 = KNOWN_DEVICES["h200"]
FULL = Problem.full_plane
LEFT_300X200 = Problem((300, 200), (300, 200), (-11, -11), (23, 23), rights=50, rights_per_left=50)


def square(size, reach, **batch):
    return Problem((size, size), (size, size), (-reach, -reach), (2 * reach + 1, 2 * reach + 1), **batch)


def each(count):
    return {"lefts": count, "rights": count}


def many(count):
    return {"rights": count, "rights_per_left": count}


def of(decision):
    return {candidate.name: candidate.microseconds for candidate in decision.candidates}


@pytest.mark.parametrize(
    ("problem", "chosen"),
    [
        (LEFT_300X200, "direct:combined"),  # 114 us measured, 178 on tensor cores, 418 a call by the FFT
        (FULL((32, 32), (32, 32), **each(16384)), "direct:row-product"),  # 883 us measured, 1917 by the FFT
        (FULL((16, 16), (16, 16)), "direct:combined"),
        (FULL((64, 64), (64, 64)), "direct:combined"),
        (FULL((512, 512), (512, 512)), "fft"),
        (FULL((256, 256), (256, 256), **each(256)), "fft"),
        (FULL((96, 96), (96, 96), **each(1024)), "fft"),
        (square(512, 8, **many(256)), "direct:combined"),
        (square(512, 64, **many(256)), "fft"),
    ],
)
def test_planes(problem, chosen):
    assert decide_planes(problem, limits=H200).name == chosen


@pytest.mark.parametrize(
    ("how", "name", "reason"),
    [
        ({"limits": None}, "fft", "no GPU"),
        ({"limits": None, "engine": "definition"}, "definition", "asked for"),
        ({"dtypes": ("float64", "float64")}, "fft", "need float64"),
        ({"engine": "fft"}, "fft", "asked for"),
        ({"options": KernelOptions("multi-row")}, "direct:multi-row", "asked for"),
        ({"engine": "tensor"}, "tensor:hankel", "asked for"),
        ({"options": KernelOptions(sums="float64")}, "direct:combined", "sums of float64 were asked for"),
        (
            {"options": KernelOptions(sums="float64"), "dtypes": ("uint8", "float64")},
            "direct:multi-right",
            "sums of float64",
        ),
        ({"options": KernelOptions("warp-shuffle", sums="float64")}, "direct:warp-shuffle", "asked for"),
    ],
)
def test_what_was_asked_for_is_taken(how, name, reason):
    found = decide_planes(LEFT_300X200, **{"limits": H200, **how})
    assert found.name == name
    assert reason in found.reason


@pytest.mark.parametrize(
    ("problem", "normalize", "tensor"),
    [
        (square(1024, 16, **many(1)), True, True),
        (square(1024, 16, **many(2)), True, True),
        (square(512, 16, **many(3)), True, False),
        (square(512, 16, **many(64)), True, True),
        (square(64, 4, **many(1)), True, False),
        (square(128, 4, **many(1)), True, False),
        (square(512, 16, **each(16)), True, True),
        (square(64, 16, **each(16384)), False, False),  # fp16 does not decide among plain sums
    ],
)
def test_peaks(problem, normalize, tensor):
    assert (decide_peaks(problem, normalize=normalize, limits=H200).engine == "tensor") == tensor


@pytest.mark.parametrize("decide", [decide_planes, decide_peaks])
def test_an_engine_asked_for_by_a_name_of_its_own_is_not_replaced(decide):
    """Such a one checks that wrong values are found out: another in its place would be right."""
    assert decide(square(64, 9, **many(5)), engine="planted", limits=H200).engine == "planted"
