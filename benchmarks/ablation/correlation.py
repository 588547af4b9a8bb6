"""What the document on cross-correlation evaluates: every step of its design, and how the work is distributed.

Groups of cases: the steps from a thread for every shift to register tiles, in three forms and by size; the rows of a
shift shared among workers, by distribution and rows per worker; warps per block; a thread, a warp or a block for every
shift; matrices and rows of a thread; and arrays in registers beside the same arrays indexed by values that are known at
run time only, which a compiler keeps in local memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from benchmarks.ablation.block_per_shift import block_per_shift_attempt
from benchmarks.ablation.local_arrays import local_arrays_attempt
from benchmarks.correlation.cases import Case
from benchmarks.correlation.check import Expected
from benchmarks.correlation.data import Data, random_data
from benchmarks.correlation.suite import timed_variant
from benchmarks.harness.clock import Clock
from benchmarks.harness.contender import Attempt, Contender
from benchmarks.harness.suite import Suite
from xcorr_app.gpu.direct.kernels import KERNELS
from xcorr_app.gpu.direct.options import DISTRIBUTIONS
from xcorr_app.gpu.direct.problem import Problem
from xcorr_app.gpu.runtime.limits import DeviceLimits

CLOCK = Clock(repeats=100, min_seconds=2e-4)
"""A hundred readings: their median and their best."""
QUICK = replace(CLOCK, repeats=20)
FORMS: dict[str, dict[str, int]] = {
    "one-to-one": {},
    "one-to-many, 16 rights": {"rights": 16, "rights_per_left": 16},
    "n-to-m, 4 x 4": {"lefts": 4, "rights": 4, "rights_per_left": 4},
}
SIZES = (16, 32, 64, 128, 256)
_IN_QUICK = {"one-to-one": (16, 64, 256), "n-to-m, 4 x 4": (64, 256)}
ROWS_PER_WORKER = (1, 2, 4, 8, 16, 32)
WARPS = (1, 2, 4, 8, 16)
_SWEPT = (1, 2, 4, 8)


@dataclass(frozen=True)
class Way:
    """One line of a picture: a variant of the kernels with macros of its own."""

    name: str
    variant: str
    macros: tuple[tuple[str, int], ...] = ()
    make: Callable[[Case, Data, str, dict[str, int]], Attempt] = timed_variant


@dataclass(frozen=True, kw_only=True)
class CorrelationCase(Case):
    """Full planes of float32 matrices of one size, and the ways in which they are computed."""

    ways: tuple[Way, ...]


def _steps() -> Iterator[CorrelationCase]:
    ways = [Way(name, name) for name in KERNELS]
    ways += [Way(f"{name}, phases", name, (("PHASES", 1),)) for name in KERNELS if "PHASES" in KERNELS[name].tunables]
    for form in FORMS:
        for size in SIZES:
            yield _case(f"steps, {form}", form, size, tuple(ways))


def _distributions() -> Iterator[CorrelationCase]:
    for variant in (name for name in KERNELS if {"DISTRIBUTION", "MAX_ROWS"} <= KERNELS[name].tunables):
        ways = [Way("none", variant, (("DISTRIBUTION", 0),))]
        for rows in ROWS_PER_WORKER:
            for number in (1, 2):
                name = f"{DISTRIBUTIONS[number]}, {rows} row{'s' * (rows > 1)} a worker"
                ways.append(Way(name, variant, (("DISTRIBUTION", number), ("MAX_ROWS", rows))))
        plain = variant == "warp-shuffle-distributed"
        of = "" if plain else f" of {variant}"
        for form in FORMS:
            for size in SIZES if plain else SIZES[2:]:
                yield _case(f"work distribution{of}, {form}", form, size, tuple(ways), in_quick=plain)


def _warps() -> Iterator[CorrelationCase]:
    for variant in ("warp-shuffle", "multi-row"):
        ways = tuple(Way(f"{count} warp{'s' * (count > 1)} a block", variant, (("WARPS", count),)) for count in WARPS)
        for size in SIZES:
            yield _case(f"warps per block, {variant}", "one-to-one", size, ways)


def _arrays() -> Iterator[CorrelationCase]:
    ways = tuple(
        Way(f"{variant}, arrays in {where}", variant, make=make)
        for variant in ("multi-right", "multi-left-right", "multi-row")
        for where, make in (("registers", timed_variant), ("local memory", local_arrays_attempt))
    )
    for size in SIZES[2:]:
        yield _case("registers or local memory", "n-to-m, 4 x 4", size, ways)


def _occupancy() -> Iterator[CorrelationCase]:
    ways = [Way("a thread for a shift", "overlap-wise")]
    ways += [
        Way(f"a warp for a shift, {n} a block", "shift-per-warp", (("SHIFTS_PER_BLOCK", n),)) for n in (1, *WARPS[2:])
    ]
    for threads in (64, 128, 256):
        name = f"a block of {threads} threads for a shift"
        ways.append(Way(name, "overlap-wise", (("THREADS", threads),), block_per_shift_attempt))
    for size in SIZES:
        yield _case("occupancy", "one-to-one", size, tuple(ways))


def _of_a_thread() -> Iterator[CorrelationCase]:
    sweeps: dict[str, tuple[str, str, list[dict[str, int]]]] = {
        "one-to-many, 16 rights": ("rights", "multi-right", [{"RIGHTS": r} for r in _SWEPT]),
        "n-to-m, 4 x 4": (
            "lefts x rights",
            "multi-left-right",
            [{"LEFTS": n, "RIGHTS": m} for n in _SWEPT[:3] for m in _SWEPT[:3]],
        ),
        "one-to-one": (
            "shifts x left rows",
            "multi-row",
            [{"SHIFTS": s, "LEFT_ROWS": u} for s in _SWEPT for u in _SWEPT],
        ),
    }
    for form, (what, variant, macros) in sweeps.items():
        ways = tuple(Way(" x ".join(map(str, each.values())), variant, tuple(each.items())) for each in macros)
        for size in (64, 256) if form == "one-to-one" else (64, 128):
            yield _case(f"{what} a thread, {form}", form, size, ways)


def _case(group: str, form: str, size: int, ways: tuple[Way, ...], *, in_quick: bool = True) -> CorrelationCase:
    name, problem = f"{group}: {size}^2", Problem.full_plane((size, size), (size, size), **FORMS[form])
    able = tuple(way for way in ways if KERNELS[way.variant].accepts(problem, DeviceLimits()) is None)
    quick = in_quick and size in _IN_QUICK.get(form, ())
    return CorrelationCase(name=name, group=group, in_quick=quick, problem=problem, ways=able)


def _contenders(case: CorrelationCase) -> Iterator[Contender]:
    for way in case.ways:

        def attempts(case: CorrelationCase, data: Data, way: Way = way) -> Iterator[Attempt]:
            yield way.make(case, data, way.variant, dict(way.macros))

        yield Contender(way.name, attempts, choice=way.name)


SUITE = Suite(
    "ablation-correlation",
    __doc__,
    (*_steps(), *_distributions(), *_warps(), *_arrays(), *_occupancy(), *_of_a_thread()),
    lambda case, xp, _copies: random_data(case, xp),
    Expected,
    _contenders,
    clock=CLOCK,
    quick=QUICK,
)
