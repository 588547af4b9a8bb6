"""Options and tables of kernels: what they turn into, complete, true to the sources; what is refused."""

import numpy as np
import pytest

from xcorr_app import KernelOptions
from xcorr_app.correlation.engines import ENGINES, choose_engine
from xcorr_app.errors import ArgumentError
from xcorr_app.filtering import named
from xcorr_app.gpu.direct.kernels import KERNELS
from xcorr_app.gpu.direct.options import PRECISIONS
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.im2win import problem as im2win
from xcorr_app.gpu.pointwise import kernels as pointwise
from xcorr_app.gpu.pointwise.problem import PointwiseProblem
from xcorr_app.gpu.stencil import kernels as stencil
from xcorr_app.gpu.stencil.kernels import FilterTask
from xcorr_app.gpu.stencil.problem import FilterProblem

DISTRIBUTED = "warp-shuffle-distributed"


@pytest.mark.parametrize(
    ("options", "macros"),
    [
        (KernelOptions(), {}),
        (KernelOptions("combined"), {}),
        (KernelOptions(DISTRIBUTED, distribution="none"), {"DISTRIBUTION": 0}),
        (KernelOptions(DISTRIBUTED, "rectangle", 3), {"DISTRIBUTION": 1, "MAX_ROWS": 3}),
        (KernelOptions(DISTRIBUTED, distribution="triangle"), {"DISTRIBUTION": 2}),
        (KernelOptions("multi-left-right", lefts=2, rights=np.int64(3)), {"LEFTS": 2, "RIGHTS": 3}),
        (KernelOptions("multi-row", shifts=4, left_rows=2), {"SHIFTS": 4, "LEFT_ROWS": 2}),
        (KernelOptions(precision="fp16"), {}),
        (KernelOptions("multi-row", phases=True, warps=2), {"PHASES": 1, "WARPS": 2}),
        (KernelOptions("overlap-wise", threads=64), {"THREADS": 64}),
    ],
)
def test_options_become_macros(options, macros):
    assert options.tuning() == macros
    if options.variant != "auto":
        launch = KERNELS[options.variant].launch(Problem.full_plane((9, 9), (9, 9)), tuning=options.tuning())
        assert macros.items() <= launch.defines.items()


def test_the_engine_that_has_what_is_asked_for():
    assert KernelOptions().engine is None
    assert KernelOptions("combined").engine == "direct"
    assert all(KernelOptions(precision=precision).engine == "tensor" for precision in PRECISIONS)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"variant": "fft"}, "unknown kernel variant 'fft': use auto or one of overlap-wise"),
        ({"variant": []}, r"unknown kernel variant \[\]: use auto or"),
        ({"variant": None}, "unknown kernel variant None"),
        ({"variant": np.array(["auto", "combined"])}, "unknown kernel variant array"),
        ({"variant": DISTRIBUTED, "distribution": []}, r"unknown distribution \[\]: use none, rectangle, tri"),
        ({"variant": DISTRIBUTED, "distribution": np.array(["none", "none"])}, "unknown distribution array"),
        (
            {"variant": "combined", "rights": 4},
            "rights belongs to kernel variant multi-right, multi-left-right and combined-shuffle",
        ),
        (
            {"rights": 4},
            "rights belongs to kernel variant multi-right, multi-left-right and combined-shuffle, not to 'auto'",
        ),
        (
            {"variant": "multi-right", "lefts": 2},
            "lefts belongs to kernel variant multi-left-right and combined-shuffle, not to",
        ),
        ({"variant": "warp-shuffle", "distribution": "none"}, "distribution belongs to kernel variant warp-shuffle-d"),
        ({"variant": "overlap-wise", "rows_per_worker": 2}, "rows_per_worker belongs to"),
        ({"variant": "multi-row", "rows_per_worker": 2}, "leave out rows_per_worker, or ask for another"),
        ({"variant": "multi-right", "phases": True}, "phases belongs to kernel variant multi-row and combined-shuffle"),
        ({"variant": "multi-row", "phases": 1}, "phases is 1: say True or False"),
        ({"variant": "combined", "warps": 4}, "warps belongs to kernel variant warp-shuffle, warp-"),
        ({"variant": "multi-row", "warps": 9}, "warps is 9: multi-row takes 1 to 8"),
        ({"variant": "warp-shuffle", "threads": 64}, "threads belongs to kernel variant overlap-wise, not to"),
        ({"variant": "shift-per-warp", "shifts_per_block": 0}, "shift-per-warp takes 1 to 16"),
        ({"variant": DISTRIBUTED, "shifts": 2}, "shifts belongs to kernel variant multi-row and combined-shuffle, not"),
        ({"variant": DISTRIBUTED, "distribution": "square"}, "unknown distribution 'square': use none, rectangle, tri"),
        ({"variant": DISTRIBUTED, "distribution": "none", "rows_per_worker": 4}, "leave out rows_per_worker"),
        ({"variant": DISTRIBUTED, "rows_per_worker": 0}, "takes 1 to 65536"),
        ({"variant": "multi-right", "rights": 9}, "rights is 9: multi-right takes 1 to 8"),
        ({"variant": "multi-left-right", "rights": 5}, "rights is 5: multi-left-right takes 1 to 4"),
        ({"variant": "multi-left-right", "lefts": 5}, "takes 1 to 4"),
        ({"variant": "multi-row", "shifts": 9}, "takes 1 to 8"),
        ({"variant": "multi-row", "left_rows": 9}, "takes 1 to 8"),
        ({"variant": "multi-row", "shifts": -1}, "takes 1 to 8"),
        ({"variant": "multi-row", "shifts": 2.0}, "shifts is 2.0"),
        ({"variant": "multi-row", "shifts": True}, "shifts is True"),
        ({"precision": "fp32"}, "unknown precision 'fp32': use fp16, fp16x2"),
        ({"precision": ["fp16"]}, r"unknown precision \['fp16'\]"),
        (
            {"precision": "fp16", "variant": "combined"},
            "belongs to engine 'tensor', kernel variant 'combined' to 'direct'",
        ),
        ({"precision": "fp16", "rights": 4}, "rights belongs to kernel variant"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, message):
    with pytest.raises(ArgumentError, match=message):
        KernelOptions(**arguments)


@pytest.mark.parametrize("name", ["fft", "definition"])
def test_options_need_the_engine_that_has_them(name):
    with pytest.raises(ArgumentError, match=f"belong to engine 'direct', not to '{name}'"):
        choose_engine(name, np, None, KernelOptions("combined"))
    assert choose_engine(name, np, None, KernelOptions()) is ENGINES[name]


FAMILIES = {"stencil": stencil.WHY_NOT, "pointwise": pointwise.WHY_NOT, "im2win": im2win.WHY_NOT}
GAUSSIAN = named.gaussian(8.0)


def gaussian_task(side, taps=65):
    terms = GAUSSIAN.terms if taps == 65 else named.gaussian(taps / 8).terms
    problem = FilterProblem((1024, 1024), tuple(len(axis) for axis in terms[0]), 64)
    return FilterTask(problem, terms=terms, sigmas=(side, side))


def task_of(family, name):
    if family == "im2win":
        return im2win.LAYERS[7]
    if family == "pointwise":
        return PointwiseProblem(16, 32, 32, 2**16)
    if name.startswith(("reuse", "exchange")):
        return FilterTask(FilterProblem((1024, 1024), (5, 5), 64), "uint16", "uint16")
    return gaussian_task(8.0)


@pytest.mark.parametrize(("family", "name"), [(family, name) for family, table in FAMILIES.items() for name in table])
def test_each_kernel_takes_what_it_is_for(family, name):
    assert FAMILIES[family][name](task_of(family, name)) is None


def test_kernels_say_why_they_do_not_take_a_problem():
    why_not = stencil.WHY_NOT
    task = gaussian_task(8.0)
    assert "up to 63 x 63" in why_not["reuse_wide"](task)
    assert "up to 63 x 63" in why_not["exchange"](task)
    dense = FilterTask(FilterProblem((99, 99), (3, 3)))
    assert "rank 1 or 2" in why_not["separable"](dense)
    assert "centred Gaussians" in why_not["sliding"](dense)
    assert "reach 8 pixels" in why_not["sliding"](gaussian_task(1.0))
    floats = PointwiseProblem(16, 48, 48, 2**16, density=True)
    refused = {name: why_not(floats) for name, why_not in pointwise.WHY_NOT.items()}
    assert {name for name, why in refused.items() if why is None} == {"blocking"}
