"""The tables of kernels of the filters' families: complete, true to the sources, and downwards only."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from xcorr_app.errors import ArgumentError
from xcorr_app.filtering import named
from xcorr_app.gpu.im2win import kernels as im2win
from xcorr_app.gpu.im2win.problem import LAYERS
from xcorr_app.gpu.pointwise import kernels as pointwise
from xcorr_app.gpu.pointwise.kernels import MixingTask
from xcorr_app.gpu.pointwise.problem import PointwiseProblem
from xcorr_app.gpu.runtime.compile import kernel_root
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES
from xcorr_app.gpu.stencil import kernels as stencil
from xcorr_app.gpu.stencil.kernels import FilterTask
from xcorr_app.gpu.stencil.problem import FilterProblem

H200, T4 = KNOWN_DEVICES["h200"], KNOWN_DEVICES["t4"]
FAMILIES = {"stencil": stencil.KERNELS, "pointwise": pointwise.KERNELS, "im2win": im2win.KERNELS}
ENTRIES = [entry for table in FAMILIES.values() for entry in table.values()]
OF_PLANNER = {
    "CHANNEL_COUNT",
    "WARPS",
    "REGISTERS",
    "SHARED_BYTES",
    "FILTERS_FOR_L1",
    "HALVED_FROM_L1",
    "HALVED_FROM_L2",
}
"""Constants of the planner of dynamic blocking, from which macros follow."""
OF_LAUNCHERS = {"BLOCK_ROWS", "SHARE", "SEGMENTS"}
"""Tunables that are no macros."""
GAUSSIAN = named.gaussian(8.0)


def gaussian_task(side, taps=65):
    terms = GAUSSIAN.terms if taps == 65 else named.gaussian(taps / 8).terms
    problem = FilterProblem((1024, 1024), tuple(len(axis) for axis in terms[0]), 64)
    return FilterTask(problem, terms=terms, sigmas=(side, side))


def task_of(family, name):
    if family == "im2win":
        return LAYERS[7]
    if family == "pointwise":
        return MixingTask(PointwiseProblem(16, 32, 32, 2**16))
    if name.startswith(("reuse", "exchange")):
        return FilterTask(FilterProblem((1024, 1024), (5, 5), 64), "uint16", "uint16")
    return gaussian_task(8.0)


def macros_of(source: Path) -> set[str]:
    """Macros with a default in a kernel or in what it includes."""
    text = source.read_text()
    included = [next(kernel_root().rglob(name)) for name in re.findall(r'#include "([^"]+)"', text)]
    return set(re.findall(r"#ifndef (\w+)", text)).union(*map(macros_of, included))


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_tunables_are_macros_of_the_sources(entry):
    known = set().union(*(macros_of(kernel_root() / f"{source}.cu") for source in entry.sources))
    assert entry.tunables <= known | OF_LAUNCHERS | OF_PLANNER | {"START_CHUNK"}
    assert entry.document


@pytest.mark.parametrize(("family", "name"), [(family, name) for family, table in FAMILIES.items() for name in table])
def test_each_kernel_takes_what_it_is_for(family, name):
    entry, task = FAMILIES[family][name], task_of(family, name)
    assert entry.name == name
    assert entry.accepts(task, H200) is None
    launch = entry.launch(task, H200)
    assert launch.kernel in entry.sources
    with pytest.raises(ArgumentError, match="has no tunable NOTHING"):
        entry.launch(task, H200, {"NOTHING": 1})


def test_kernels_say_why_they_do_not_take_a_problem():
    accepts = {name: entry.accepts for name, entry in stencil.KERNELS.items()}
    task = gaussian_task(8.0)
    assert "up to 63 x 63" in accepts["reuse_wide"](task, H200)
    assert "up to 63 x 63" in accepts["exchange"](task, H200)
    dense = FilterTask(FilterProblem((99, 99), (3, 3)))
    assert "rank 1 or 2" in accepts["separable"](dense, H200)
    assert "centred Gaussians" in accepts["sliding"](dense, H200)
    assert "reach 8 pixels" in accepts["sliding"](gaussian_task(1.0), H200)
    floats = MixingTask(PointwiseProblem(16, 48, 48, 2**16, density=True))
    refused = {name: entry.accepts(floats, H200) for name, entry in pointwise.KERNELS.items()}
    assert {name for name, why in refused.items() if why is None} == {"shallow", "blocking"}
