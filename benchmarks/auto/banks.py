"""Domain of filter banks: many filters over images of one or several channels."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.auto.domain import Run
from benchmarks.auto.filters import worth_timing
from xcorr_app.decision import Decision
from xcorr_app.filtering.array_choice import decide_bank
from xcorr_app.filtering.bank_device import at_once, one_by_one
from xcorr_app.gpu.runtime.launch import Launch
from xcorr_app.gpu.runtime.limits import device_limits
from xcorr_app.gpu.runtime.placement import current_device

__all__ = ["BankCase", "Banks"]

_MAX_BYTES, _MAX_PRODUCTS = 1.5e9, 2e11


@dataclass(frozen=True)
class BankCase:
    """Shapes of images and bank, and the images' type."""

    shape: tuple[int, int, int, int]
    bank_shape: tuple[int, int, int, int]
    dtype: str

    def __str__(self) -> str:
        images, bank = (" x ".join(map(str, shape)) for shape in (self.shape, self.bank_shape))
        return f"{images} {self.dtype}, bank {bank}"


class Banks:
    """Images of any sizes, 1 to 64 channels, 1 to 128 filters."""

    name = "banks"

    def problems(self, rng: np.random.Generator, count: int) -> Sequence[BankCase]:
        """Draw sizes, each evenly on a logarithmic scale; half have one channel."""
        found: list[BankCase] = []
        while len(found) < count:
            channels = 1 if rng.random() < 0.5 else round(2 ** rng.uniform(1, 6))
            height, width = (round(2 ** rng.uniform(5, 11)) for _ in range(2))
            side = round(2 ** rng.uniform(1, 5))
            other = side if rng.random() < 0.6 else round(2 ** rng.uniform(1, 5))
            shape = (round(2 ** rng.uniform(0, 5)), channels, height, width)
            bank_shape = (round(2 ** rng.uniform(0, 7)), channels, side, other)
            results = shape[0] * height * width * bank_shape[0]
            if 4 * results <= _MAX_BYTES and results * math.prod(bank_shape[1:]) <= _MAX_PRODUCTS:
                found.append(BankCase(shape, bank_shape, str(rng.choice(["float32", "uint16", "uint8"]))))
        return found

    def candidates(self, problem: BankCase) -> Mapping[str, Run]:
        """All filters at once by each kernel, and one after the other."""
        cupy = importlib.import_module("cupy")
        images = (255 * cupy.random.default_rng(1).random(problem.shape, dtype="float32")).astype(problem.dtype)
        bank = np.random.default_rng(2).standard_normal(problem.bank_shape)
        out = cupy.empty((problem.shape[0], problem.bank_shape[0], *problem.shape[2:]), "float32")
        found: dict[str, Run] = {}
        for name in worth_timing(self.decision(problem)):
            engine, _, kernel = name.partition(":")
            if engine == "im2win":
                found[name] = lambda kernel=kernel: at_once(kernel, images, bank, "reflect", 0.0, out)
            else:
                found[name] = lambda: one_by_one(images, bank, "reflect", 0.0, out)
        return found

    def decision(self, problem: BankCase) -> Decision:
        """Ask the product."""
        limits = device_limits(current_device())
        return decide_bank(problem.shape, np.dtype(problem.dtype), problem.bank_shape, limits)

    def launches(self, problem: Any) -> Iterable[Launch]:
        """List nothing: parts and their launches follow from the memory, and kernels are compiled where they run."""
        return ()
