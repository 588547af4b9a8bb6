"""Launch parameters of the kernels that move and sum up frames, and their table."""

from __future__ import annotations

import pytest

from xcorr_app.errors import ArgumentError, ShapeError
from xcorr_app.gpu.resample.kernels import KERNELS
from xcorr_app.gpu.resample.problem import PIXEL_TYPES, TAPS, TranslationProblem
from xcorr_app.gpu.resample.translation import translation_argument, translation_launch
from xcorr_app.gpu.runtime.compile import kernel_root
from xcorr_app.gpu.runtime.launch import WARP, ceil_div
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES

H200, T4 = KNOWN_DEVICES["h200"], KNOWN_DEVICES["t4"]


@pytest.mark.parametrize("method", TAPS)
@pytest.mark.parametrize("dtype", PIXEL_TYPES)
@pytest.mark.parametrize("shape", [(512, 512), (17, 1023), (1, 1), (2000, 3)])
def test_threads_cover_every_pixel_once(shape, dtype, method):
    for count in (1, 7, 512):
        launch = translation_launch(TranslationProblem(shape, count, dtype, method), H200)
        groups, blocks, rows = launch.extra
        columns, threads = launch.defines["COLUMNS"], launch.threads
        assert groups == ceil_div(shape[1], columns)
        assert launch.blocks == count * blocks
        assert threads % WARP == 0
        strips = ceil_div(shape[0], rows)
        assert (blocks - 1) * threads < groups * strips <= blocks * threads


def test_clipped_pixels_are_counted_only_where_there_can_be_any():
    for method, dtype, wanted in (("cubic", "uint8", 1), ("linear", "uint8", 0), ("cubic", "float32", 0)):
        launch = translation_launch(TranslationProblem((64, 64), 1, dtype, method, counts=True))
        assert launch.defines["COUNTS"] == wanted
    assert translation_launch(TranslationProblem((64, 64), 1, "uint8", "cubic")).defines["COUNTS"] == 0


def test_the_argument_holds_sizes_and_the_pixel_outside():
    problem = TranslationProblem((33, 70), 5, "uint16")
    launch = translation_launch(problem)
    packed = translation_argument(problem, launch, b"\x34\x12")
    assert packed.nbytes == 32
    assert packed["outside"] == 0x1234
    assert (packed["height"], packed["width"], packed["fills_outside"]) == (33, 70, 1)
    assert (packed["groups"], packed["blocks"], packed["rows"]) == launch.extra


@pytest.mark.parametrize("name", KERNELS)
def test_each_kernel_takes_its_method_and_says_what_it_costs(name):
    entry, problem = KERNELS[name], TranslationProblem((512, 512), 512, method=name)
    assert entry.name == name
    assert entry.document
    assert entry.accepts(problem, H200) is None
    other = TranslationProblem((512, 512), 512, method="cubic" if name == "linear" else "linear")
    assert name in entry.accepts(other, H200)
    launch = entry.launch(problem, H200, {"ROWS": 16})
    assert launch.kernel in entry.sources
    assert launch.extra[2] == 16
    assert problem.moved_bytes / 4.2e6 < entry.cost(problem, H200) < entry.cost(problem, T4)
    with pytest.raises(ArgumentError, match="has no tunable NOTHING"):
        entry.launch(problem, H200, {"NOTHING": 1})
    text = (kernel_root() / "resample" / "translate.cu").read_text()
    assert all(f"#ifndef {macro}" in text for macro in entry.tunables - {"ROWS"})


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"frame_shape": (0, 4)}, ShapeError, "2\\^27"),
        ({"dtype": "int64"}, ArgumentError, "int64"),
        ({"method": "spline"}, ArgumentError, "spline"),
    ],
)
def test_unknown_problems_are_refused(change, error, message):
    with pytest.raises(error, match=message):
        TranslationProblem(**{"frame_shape": (4, 4), **change})


def test_unfit_tunables_are_refused():
    problem = TranslationProblem((64, 64))
    for tuning in ({"COLUMNS": 3}, {"ROWS": 0}):
        with pytest.raises(ArgumentError, match="must be"):
            translation_launch(problem, tuning=tuning)
    with pytest.raises(ArgumentError, match="more than one launch"):
        translation_launch(TranslationProblem((2**20, 2**20), 2**12))
