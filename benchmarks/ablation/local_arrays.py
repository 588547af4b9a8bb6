"""The penalty that the document describes: arrays of a thread that are indexed by values known at run time only.

The kernels' loops over their arrays are unrolled, so every index is a constant and every element has a register. Here
the same text is compiled with the loops left as loops: the compiler then keeps the arrays in local memory.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from benchmarks.correlation.cases import Case
from benchmarks.correlation.data import Data
from benchmarks.harness.contender import Attempt, plane_at
from xcorr_app.gpu.direct.kernels import KERNELS
from xcorr_app.gpu.runtime.compile import compiler_options, kernel_root, kernel_source
from xcorr_app.gpu.runtime.launch import Launch
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.placement import current_device


def with_loops(source: str, folder: Path) -> str:
    """Return the text of a kernel, with the headers of its family's folder, in which no loop is unrolled."""
    included: set[str] = set()

    def text_of(found: re.Match[str]) -> str:
        header = folder / found[1]
        if not header.exists():
            return found[0]
        text = "" if found[1] in included else header.read_text(encoding="utf-8").replace("#pragma once", "")
        included.add(found[1])
        return inlined(text)

    def inlined(text: str) -> str:
        return re.sub(r'#include "([^"]+)"', text_of, text)

    return re.sub(r"#pragma unroll.*", "#pragma unroll 1", inlined(source))


def local_arrays_attempt(case: Case, data: Data, variant: str, macros: Mapping[str, int]) -> Attempt:
    """Make a variant ready whose arrays are in local memory; one launch."""
    limits = device_limits(current_device())
    launch = KERNELS[variant].launch(case.problem, tuning=dict(macros), device=limits)
    folder = kernel_root() / launch.kernel.partition("/")[0]
    return attempt_of_source(with_loops(kernel_source(launch.kernel, launch.defines), folder), launch, case, data)


def attempt_of_source(source: str, launch: Launch, case: Case, data: Data) -> Attempt:
    """Make a kernel of correlation ready whose text is no file of the product's, started as a launch says."""
    cupy, problem = importlib.import_module("cupy"), case.problem
    module = cupy.RawModule(code=source, options=compiler_options(launch.kernel))
    kernel = module.get_function(launch.kernel.rpartition("/")[2])
    planes = cupy.full((problem.pairs, *problem.plane_shape), np.nan, np.float32)
    numbers = tuple(np.int32(number) for number in (*problem.arguments(), *launch.extra))
    arguments = (data.lefts, data.rights, planes, *numbers)

    def run() -> object:
        if launch.zero_first:
            planes.fill(0)
        kernel((launch.blocks,), (launch.threads,), arguments, shared_mem=launch.shared_bytes)
        return planes

    return Attempt(run, plane_at, registers=kernel.num_regs, local_bytes=kernel.local_size_bytes)
