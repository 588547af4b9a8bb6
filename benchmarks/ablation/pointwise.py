"""What the document on pointwise convolution evaluates: channel counts and staging, over 41 layers.

Unmixing, and every layer of three networks at batch 1 to 128: dynamic blocking as planned and with a fixed number of
lanes that share an output's channels, what is chosen today, and the peers.
"""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.ablation.correlation import CLOCK
from benchmarks.harness.contender import Contender
from benchmarks.pointwise.cases import PointwiseCase
from benchmarks.pointwise.cupy_peers import cupy_contenders
from benchmarks.pointwise.data import Expected, random_mixing
from benchmarks.pointwise.layers import LAYERS
from benchmarks.pointwise.own import mixing_attempts
from benchmarks.pointwise.torch_peers import torch_contenders
from benchmarks.work.suite import Suite
from xcorr_app.gpu.pointwise.blocking import BLOCKING_TUNABLES
from xcorr_app.gpu.pointwise.planner import CHANNEL_COUNTS

__all__ = ["POINTWISE", "ways_of"]

BATCHES = (1, 8, 32, 128)
_QUICK_BATCHES, _QUICK_EVERY = (1, 32, 128), 12


def ways_of(case: PointwiseCase) -> dict[str, tuple[str, dict[str, int]]]:
    """Return kernel and macros of every way of computing a layer."""
    found: dict[str, tuple[str, dict[str, int]]] = {"blocking, as planned": ("blocking", {})}
    for count in CHANNEL_COUNTS:
        if count < 2 * case.channels:
            found[f"blocking, channels over {count} lane{'s' * (count > 1)}"] = ("blocking", {"CHANNEL_COUNT": count})
    if "REGISTER_STAGING" in BLOCKING_TUNABLES:
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
    yield Contender("as chosen", mixing_attempts("auto", {}), choice="auto")
    yield from cupy_contenders(case)


POINTWISE = Suite("ablation-pointwise", tuple(_cases()), random_mixing, Expected, _own, torch_contenders, clock=CLOCK)
