"""What the document on pointwise convolution evaluates: channel counts and staging, over 41 layers.

Unmixing, and every layer of three networks at batch 1 to 128: dynamic blocking as planned and with a fixed number of
lanes that share an output's channels, what is chosen today, and the peers. Then the planner's constants, one by one.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.ablation.correlation import CLOCK, QUICK
from benchmarks.harness.contender import Contender
from benchmarks.harness.suite import Suite
from benchmarks.pointwise.cases import PointwiseCase
from benchmarks.pointwise.data import Expected, random_mixing
from benchmarks.pointwise.layers import LAYERS
from benchmarks.pointwise.peers import cupy_contenders, torch_contenders
from benchmarks.pointwise.suite import mixing_attempts
from xcorr_app.gpu.pointwise.blocking_options import BlockingOptions
from xcorr_app.gpu.pointwise.planner import CHANNEL_COUNTS

BATCHES = (1, 8, 32, 128)
_QUICK_BATCHES, _QUICK_EVERY = (1, 32, 128), 12
_NEVER = 8191
PLANNER = {
    **{f"{warps} warp{'s' * (warps > 1)} a block": BlockingOptions(warps=warps) for warps in (1, 2, 8)},
    **{f"{blocks} block{'s' * (blocks > 1)} a multiprocessor": BlockingOptions(blocks=blocks) for blocks in (1, 2, 4)},
    "layout L1": BlockingOptions(filters_for_l1=1),
    "layout L2": BlockingOptions(filters_for_l1=_NEVER),
    "filters halved": BlockingOptions(halved_from_l1=1, halved_from_l2=1),
    "filters not halved": BlockingOptions(halved_from_l1=_NEVER, halved_from_l2=_NEVER),
}
"""The document's 4 warps, 2 or 4 blocks, L1 from 48 filters, and halves from 512 (L1) and 24 (L2)."""
_CONSTANTS = "planner's constants, batch 32"
_CONSTANTS_OF = (
    (32, 16, 112),
    (96, 24, 56),
    (144, 40, 28),
    (384, 64, 14),
    (480, 112, 14),
    (512, 512, 14),
    (1152, 320, 7),
)


def ways_of(case: PointwiseCase) -> dict[str, tuple[str, dict[str, int]]]:
    """Return kernel and macros of every way of computing a layer."""
    found: dict[str, tuple[str, dict[str, int]]] = {"blocking, as planned": ("blocking", {})}
    if case.group == _CONSTANTS:
        return found | {name: ("blocking", options.tuning()) for name, options in PLANNER.items()}
    for count in CHANNEL_COUNTS:
        if count < 2 * case.channels:
            found[f"blocking, channels over {count} lane{'s' * (count > 1)}"] = ("blocking", {"CHANNEL_COUNT": count})
    found["blocking, staged through registers"] = ("blocking", {"REGISTER_STAGING": 1})
    return found


def _cases() -> Iterator[PointwiseCase]:
    for channels in (4, 8, 32):
        yield PointwiseCase(
            name=f"unmixing: {channels} -> {channels}, 16 x 1024^2",
            group="unmixing",
            images=16,
            channels=channels,
            filters=channels,
            side=1024,
            in_quick=channels == 8,
        )
    for channels, filters, side in _CONSTANTS_OF:
        yield PointwiseCase(
            name=f"{_CONSTANTS}: {channels} -> {filters}, {side}^2",
            group=_CONSTANTS,
            images=32,
            channels=channels,
            filters=filters,
            side=side,
        )
    for batch in BATCHES:
        for number, (channels, filters, side) in enumerate(LAYERS):
            yield PointwiseCase(
                name=f"batch {batch}: {channels} -> {filters}, {side}^2",
                group=f"batch {batch}",
                images=batch,
                channels=channels,
                filters=filters,
                side=side,
                in_quick=batch in _QUICK_BATCHES and number % _QUICK_EVERY == 0,
            )


def _own(case: PointwiseCase) -> Iterator[Contender]:
    for name, (kernel, macros) in ways_of(case).items():
        yield Contender(name, mixing_attempts(kernel, macros), choice=name)
    if case.group != _CONSTANTS:
        yield from cupy_contenders(case)


def _of_torch(case: PointwiseCase) -> Iterator[Contender]:
    """The peers, of the larger batches by `python -m benchmarks pointwise`."""
    return torch_contenders(case) if case.group in ("unmixing", "batch 1") else iter(())


SUITE = Suite(
    "ablation-pointwise", __doc__, tuple(_cases()), random_mixing, Expected, _own, _of_torch, clock=CLOCK, quick=QUICK
)
