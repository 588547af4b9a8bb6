"""When `auto` finds peaks on tensor cores: by a model of the time, without a device."""

from __future__ import annotations

import pytest

from benchmarks.correlation import benchmark as correlation
from benchmarks.correlation.cases import CASES
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.tensor.costs import peak_costs, small_peak_cost, tensor_cores_are_faster, tensor_peak_cost
from xcorr_app.gpu.tensor.run import chosen_launch

H200 = DeviceLimits(132, 232448)

MEASURED = {
    "registration 512 frames 512^2 32x32 zncc peak": 1.17,
    "registration 128 frames 1024^2 32x32 zncc peak": 4.6,
    "registration 128 frames 1024^2 64x64 zncc peak": 14.4,
    "registration 32 frames 2048^2 32x32 zncc peak": 21.2,
    "registration 2048 frames 256^2 32x32 zncc peak": 0.32,
    "registration 1 frame 1024^2 32x32 zncc peak": 32.4,
    "n-to-mn 16384 x 32^2 full peak": 0.0284,
    "n-to-mn 16384 x 64^2 +-16 peak": 0.0360,
}
"""Microseconds a pair on tensor cores on an H200, as in ``correlation_bench.json``, of scores less what tables take."""
OF_CASES = {case.name: case for case in CASES}


def frames(count, size, reach):
    side = 2 * reach + 1
    return Problem((size, size), (size, size), (-reach, -reach), (side, side), rights=count, rights_per_left=count)


def pairs(count, size, reach):
    side = 2 * reach + 1
    return Problem((size, size), (size, size), (-reach, -reach), (side, side), lefts=count, rights=count)


@pytest.mark.parametrize("name", MEASURED)
def test_the_model_gives_the_measured_times(name):
    case = OF_CASES[name]
    cost = peak_costs(case.problem, H200, normalize=case.task == "zncc-peak")["tensor"]
    assert cost / case.problem.pairs == pytest.approx(MEASURED[name], rel=0.35)


@pytest.mark.parametrize("name", MEASURED)
def test_auto_takes_them_where_they_were_measured_to_win(monkeypatch, name):
    monkeypatch.setattr(correlation, "current_device", lambda: 0)
    monkeypatch.setattr(correlation, "device_limits", lambda _: H200)
    for has in (True, False):
        monkeypatch.setattr(correlation, "multiplies_by_groups", lambda has=has: has)
        assert (correlation.auto_choice(OF_CASES[name]) == "tensor") == has


@pytest.mark.parametrize(
    ("problem", "normalize", "faster"),
    [
        (frames(1, 1024, 16), True, True),
        (frames(2, 1024, 16), True, True),
        (frames(3, 512, 16), True, True),
        (frames(64, 512, 16), True, True),
        (frames(1, 64, 4), True, False),
        (frames(1, 128, 4), True, False),
        (pairs(16, 512, 16), True, True),
        (pairs(16384, 64, 16), False, True),
        (pairs(1, 16, 4), False, False),
        (pairs(16384, 65, 16), False, False),  # no block holds such matrices
    ],
)
def test_clear_cases(problem, normalize, faster):
    assert tensor_cores_are_faster(problem, H200, normalize=normalize) == faster


def test_the_fft_wins_wide_windows_of_many_large_frames():
    expected = peak_costs(frames(128, 2048, 100), H200)
    assert expected["fft"] < expected["tensor"] < expected["warp-shuffle"]


def test_peaks_of_plain_sums_are_left_to_the_kernel_that_marks_what_it_cannot_decide():
    assert set(peak_costs(pairs(100, 64, 16), H200, normalize=False)) == {"fft", "warp-shuffle", "tensor"}
    assert set(peak_costs(frames(100, 512, 16), H200, normalize=False)) == {"fft", "warp-shuffle"}
    assert small_peak_cost(pairs(1, 64, 200), H200) is None


@pytest.mark.parametrize("problems", [
    [frames(count, 1024, 16) for count in (4, 16, 64, 256)],
    [frames(1, size, 16) for size in (128, 256, 512, 1024, 2048)],
    [frames(64, 512, reach) for reach in (4, 16, 40, 100)],
])  # fmt: skip
def test_more_work_takes_longer(problems):
    times = [tensor_peak_cost(problem, H200) for problem in problems]
    assert times == sorted(times)


def test_few_blocks_take_as_long_on_a_larger_device():
    """One frame of 1024^2 makes 128 blocks."""
    frame = Problem((1024, 1024), (1024, 1024), (-16, -16), (32, 32))
    blocks = chosen_launch(frame, groups=True, device=H200).launch.blocks
    assert blocks == 128
    times = [tensor_peak_cost(frame, DeviceLimits(count, 232448)) for count in (66, 132, 150)]
    assert times[0] > times[1] == times[2]


def test_half_the_multiprocessors_take_twice_as_long():
    for problem, normalize in ((frames(128, 1024, 16), True), (pairs(16384, 64, 16), False)):
        whole, half = (
            peak_costs(problem, DeviceLimits(count, 232448), normalize=normalize)["tensor"] for count in (132, 66)
        )
        assert 1.5 < half / whole < 2.1
