"""The one choice of correlation: pure functions of problem and limits, held to what was measured on an H200."""

from __future__ import annotations

import numpy as np
import pytest

from xcorr_app.correlation.arrangement import plane_dtype
from xcorr_app.correlation.choice import decide_peaks, decide_planes
from xcorr_app.correlation.engines.direct import DirectEngine
from xcorr_app.correlation.standardize import working_dtype
from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.direct.kernels import KERNELS
from xcorr_app.gpu.direct.options import KernelOptions
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES
from xcorr_app.gpu.tensor.kernels import FP16_SUMS

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
        (FULL((32, 32), (32, 32), **each(4096)), "tensor:small-planes"),  # 197 us measured, 281 by kernels
        (FULL((16, 16), (16, 16)), "tensor:small-planes"),  # calls of such pairs: 8 to 10 us, 10 to 17 by kernels
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
        ({"options": KernelOptions(precision="int8")}, "tensor:hankel-bytes", "exact sums of bytes"),
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


def test_sums_of_float64_come_from_a_kernel_that_reads_such_matrices():
    options, dtypes = KernelOptions(sums="float64"), ("float64", "float64")
    for batch in (each(1), many(9), each(9), {"lefts": 3, "rights": 4, "rights_per_left": 4}):
        problem = FULL((40, 33), (31, 37), **batch)
        decided = decide_planes(problem, dtypes=dtypes, options=options, limits=H200)
        assert decided == decide_peaks(problem, dtypes=dtypes, options=options, limits=H200)
        types = {"left_type": "float64", "right_type": "float64", "sum_type": options.sum_type}
        assert KERNELS[decided.kernel].launch(problem, **types).defines["SUM_TYPE"] == "double"


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "float64", "int32"])
def test_planes_are_of_the_type_that_is_summed_in(dtype):
    matrix, double = np.ones((3, 3), dtype), KernelOptions(sums="float64")
    assert plane_dtype(matrix, matrix, double) == np.float64
    assert plane_dtype(matrix, matrix, KernelOptions("combined")) == working_dtype(matrix)
    assert DirectEngine(double).reads(matrix.dtype) == (dtype != "int32")
    assert DirectEngine().reads(matrix.dtype) == (dtype not in ("int32", "float64"))


def test_an_engine_that_is_asked_for_leaves_the_choice_of_its_kernel():
    problem = FULL((256, 256), (256, 256), **each(256))
    assert decide_planes(problem, engine="direct", limits=H200).name == "direct:row-product"
    assert decide_planes(problem, engine="tensor", limits=H200).name == "tensor:hankel"
    fp16 = decide_planes(problem, options=KernelOptions(precision="fp16"), limits=H200)
    assert {candidate.kernel for candidate in fp16.candidates} <= set(FP16_SUMS)


@pytest.mark.parametrize(
    ("problem", "normalize", "tensor"),
    [
        (square(1024, 16, **many(1)), True, True),
        (square(1024, 16, **many(2)), True, True),
        (square(512, 16, **many(3)), True, True),
        (square(512, 16, **many(64)), True, True),
        (square(64, 4, **many(1)), True, False),
        (square(128, 4, **many(1)), True, False),
        (square(512, 16, **each(16)), True, True),
        (square(64, 16, **each(16384)), False, True),
        (
            square(16, 4, **each(1)),
            False,
            True,
        ),  # the host needs one launch; of 64 pairs 6.4 us measured, 9.4 by kernels
        (square(65, 16, **each(16384)), False, False),  # no block holds such matrices
    ],
)
def test_peaks(problem, normalize, tensor):
    assert (decide_peaks(problem, normalize=normalize, limits=H200).engine == "tensor") == tensor


def test_peaks_of_plain_sums_are_left_to_the_kernel_that_marks_what_it_cannot_decide():
    small = of(decide_peaks(square(64, 16, **each(100)), normalize=False, limits=H200))
    assert [name for name in small if name.startswith("tensor")] == ["tensor:small-peaks"]
    large = of(decide_peaks(square(512, 16, **many(100)), normalize=False, limits=H200))
    assert not any(name.startswith("tensor") for name in large)


def test_every_kernel_with_a_cost_is_one_that_can_be_asked_for():
    for name, entry in KERNELS.items():
        assert KernelOptions(name).engine == "direct"
        assert entry.accepts(LEFT_300X200, H200) is None or entry.accepts(LEFT_300X200, H200)
    with pytest.raises(ArgumentError, match="unknown kernel variant"):
        KernelOptions("combined-peak")
