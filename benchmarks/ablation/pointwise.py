"""What the document on pointwise convolution evaluates: channel counts, segments and tile levels, over 41 layers.

Unmixing, and every layer of three networks at batch 1 to 128: dynamic blocking as planned and with a fixed number of
lanes that share an output's channels, the ordinary tiled product by levels of tiles and with channels split among
blocks, what is chosen today, and the peers.
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
from xcorr_app.gpu.pointwise.planner import CHANNEL_COUNTS
from xcorr_app.gpu.pointwise.tile_shapes import ProductTile
from xcorr_app.gpu.pointwise.tiles import BLOCKING_TUNABLES

__all__ = ["POINTWISE", "ways_of"]

BATCHES = (1, 8, 32, 128)
_QUICK_BATCHES, _QUICK_EVERY = (1, 32, 128), 12
SEGMENTS = (1, 2, 4, 8)
TILES = {
    "4 x 4 sums a thread, 1 warp": ProductTile(4, 1, 1, 1, 4, 4),
    "8 x 8 sums a thread, 1 warp": ProductTile(4, 1, 1),
    "8 x 8 sums, 2 x 2 warps": ProductTile(4, 2, 2),
    "8 x 8 sums, 4 x 2 warps": ProductTile(4, 4, 2),
}
"""What a thread, a warp and a block hold: one level more, or a larger one, each time."""
_ONE_DEPTH = {"TILE_K": 8, "BUFFERS": 2, "PLANE": 0, "SEGMENTS": 1}


def ways_of(case: PointwiseCase) -> dict[str, tuple[str, dict[str, int]]]:
    """Return kernel and macros of every way of computing a layer."""
    found: dict[str, tuple[str, dict[str, int]]] = {"blocking, as planned": ("blocking", {})}
    for count in CHANNEL_COUNTS:
        if count < 2 * case.channels:
            found[f"blocking, channels over {count} lane{'s' * (count > 1)}"] = ("blocking", {"CHANNEL_COUNT": count})
    if "REGISTER_STAGING" in BLOCKING_TUNABLES:
        found["blocking, staged through registers"] = ("blocking", {"REGISTER_STAGING": 1})
    for name, tile in TILES.items():
        found[f"tiled, {name}"] = ("tiled", tile.defines() | _ONE_DEPTH)
    for segments in SEGMENTS:
        found[f"tiled, {segments} segment{'s' * (segments > 1)}"] = ("tiled", {"SEGMENTS": segments})
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
