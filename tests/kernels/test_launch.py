"""Problems, parts, launch parameters: what can be wrong before any kernel runs."""

import ctypes
from dataclasses import replace
from itertools import product

import pytest

from tests.kernels.host_device import SHIM, build
from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.direct.kernels import KERNELS, max_pairs
from xcorr_app.gpu.direct.plan import plan_of
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.direct.tile_launches import combined
from xcorr_app.gpu.peaks.near_peak import near_peak_launches
from xcorr_app.gpu.peaks.search import peak_launch, plane_peak_launch
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.gpu.tensor.hankel import hankel_launch
from xcorr_app.gpu.tensor.hankel_frames import frames_launch


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_empty_matrices_are_refused(shape):
    with pytest.raises(ShapeError, match="at least one element"):
        Problem.full_plane(shape, (3, 3))
    with pytest.raises(ShapeError, match="at least one element"):
        Problem((3, 3), (3, 3), (0, 0), shape)


def test_rights_that_fit_no_form_are_refused():
    with pytest.raises(ShapeError, match="n-to-m"):
        Problem.full_plane((3, 3), (3, 3), lefts=2, rights=5, rights_per_left=3)


@pytest.mark.parametrize("variant", KERNELS)
@pytest.mark.parametrize("plane", [(1, 1), (63, 63), (1023, 3), (3, 1023), (4095, 4095)])
def test_every_launch_of_a_huge_batch_fits_the_grid(variant, plane):
    batch = {"lefts": 3, "rights": 70_000_000, "rights_per_left": 70_000_000}
    problem = Problem((2048, 2048), (2048, 2048), (-plane[0] // 2, -plane[1] // 2), plane, **batch)
    most = max_pairs(variant, problem)
    assert most >= 1
    first = next(problem.parts(most))
    if KERNELS[variant].accepts(first.problem, DeviceLimits()) is not None:
        with pytest.raises(ArgumentError):
            KERNELS[variant].launch(first.problem)
        return
    launch = KERNELS[variant].launch(first.problem)
    while launch:
        assert launch.blocks * launch.threads < 2**31 * 32
        assert launch.blocks < 2**31
        assert launch.shared_bytes <= 99 * 1024
        assert launch.threads <= 1024
        launch = launch.then


@pytest.mark.parametrize("variant", KERNELS)
@pytest.mark.parametrize("kilobytes", [64, 99, 163, 227])
def test_every_launch_fits_the_shared_memory_of_its_device(variant, kilobytes):
    """Small matrices in large windows too, where sums take more room than what they are made of."""
    device = DeviceLimits(shared_bytes=kilobytes * 1024)
    shapes, windows = ((1, 3), (4, 4), (9, 16), (33, 64), (100, 100)), ((9, 17), (33, 33), (65, 40), (127, 65))
    for shape, window in product(shapes, windows):
        first = -(window[0] // 2), -(window[1] // 2)
        problem = Problem(shape, shape, first, window, lefts=5000, rights=5000)
        if KERNELS[variant].accepts(problem, device) is None:
            assert KERNELS[variant].launch(problem, device=device).shared_bytes <= device.shared_bytes


def test_a_plane_too_large_for_one_launch_is_refused():
    problem = Problem((2**16, 2**16), (2**16, 2**16), (0, 0), (2**16, 2**16))
    with pytest.raises(ArgumentError, match="smaller window"):
        max_pairs("overlap-wise", problem)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"left_type": "float64"}, "convert the matrices"),
        ({"variant": "combined", "tuning": {"TILE_X": 7, "WARPS_X": 2}}, "multiple of 4"),
        ({"variant": "row-product", "tuning": {"PAIRS": 3}}, "1, 2, 4 or 8"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    arguments = {"variant": "combined", "problem": Problem.full_plane((9, 9), (9, 9)), **arguments}
    with pytest.raises(ArgumentError, match=message):
        KERNELS[arguments.pop("variant")].launch(**arguments)


def test_an_unknown_variant_is_named():
    with pytest.raises(ArgumentError, match="unknown variant 'fft'; choose from overlap-wise"):
        plan_of(Problem.full_plane((9, 9), (9, 9)), "fft")


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
        problem = replace(batch(frames), canonical_batch=batch(number))
        assert [kind(launch) for launch in CHOICES[name](problem)] == expected


@pytest.fixture(scope="module")
def probe(host_builds):
    return build(host_builds, SHIM / "distribution_probe.cpp", {})


@pytest.mark.parametrize("rows", [1, 3, 32, 1000])
def test_root_is_exact_at_the_borders_of_large_runs(probe, rows):
    """Float cannot hold these worker numbers: the integer correction must."""
    before = ctypes.c_int()
    for height in (*range(1, 40), *range(20_000, 20_040), 30_000 // rows * rows, 30_000 // rows * rows + 1):
        start, end = probe.probe_tasks_up_to(height - 1, rows), probe.probe_tasks_up_to(height, rows)
        # The definition: one more ceil(height / rows) than all heights below.
        assert end - start == -(-height // rows)
        for worker in (start, end - 1):
            assert probe.probe_height(worker, rows, ctypes.byref(before)) == height
            assert before.value == start
