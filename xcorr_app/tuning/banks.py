"""Domain of filter banks: many filters over images of one or several channels."""

from __future__ import annotations

import importlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from xcorr_app.decision import Decision
from xcorr_app.filtering.array_choice import decide_bank
from xcorr_app.filtering.bank_device import at_once, one_by_one
from xcorr_app.filtering.bank_request import checked_bank
from xcorr_app.gpu.im2win.bank_run import KernelBank
from xcorr_app.gpu.runtime.launch import Launch
from xcorr_app.gpu.runtime.limits import DeviceLimits
from xcorr_app.tuning.domain import ANY_SIZE, Run, Sizes, drawn
from xcorr_app.tuning.filters import worth_timing

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

    def __init__(self, limits: DeviceLimits, sizes: Sizes = ANY_SIZE) -> None:
        self._limits, self._sizes = limits, sizes

    def problems(self, rng: np.random.Generator, count: int) -> Sequence[BankCase]:
        """Draw sizes, each evenly on a logarithmic scale; half have one channel."""

        def any_size() -> tuple[int, int]:
            return round(2 ** rng.uniform(5, 11)), round(2 ** rng.uniform(5, 11))

        def draw() -> BankCase | None:
            channels = 1 if rng.random() < 0.5 else round(2 ** rng.uniform(1, 6))
            height, width = self._sizes.draw(rng, any_size)
            side = round(2 ** rng.uniform(1, 5))
            other = side if rng.random() < 0.6 else round(2 ** rng.uniform(1, 5))
            shape = (round(2 ** rng.uniform(0, 5)), channels, height, width)
            bank_shape = (round(2 ** rng.uniform(0, 7)), channels, side, other)
            results = shape[0] * height * width * bank_shape[0]
            if 4 * results > _MAX_BYTES or results * math.prod(bank_shape[1:]) > _MAX_PRODUCTS:
                return None
            return BankCase(shape, bank_shape, str(rng.choice(["float32", "uint16", "uint8"])))

        return drawn(draw, count)

    def candidates(self, problem: BankCase) -> Mapping[str, Run]:
        """All filters at once by each kernel, and one after the other."""
        cupy = importlib.import_module("cupy")
        images = (255 * cupy.random.default_rng(1).random(problem.shape, dtype="float32")).astype(problem.dtype)
        bank = np.random.default_rng(2).standard_normal(problem.bank_shape)
        out = cupy.empty((problem.shape[0], problem.bank_shape[0], *problem.shape[2:]), "float32")
        request = checked_bank(problem.shape, np.dtype(problem.dtype), bank, "reflect", 0.0, 1, "auto")
        taps = KernelBank.of(request.filters)
        found: dict[str, Run] = {}
        for name in worth_timing(self.decision(problem)):
            engine, _, kernel = name.partition(":")
            if engine == "im2win":
                found[name] = partial(at_once, kernel, images, taps, request, out)
            else:
                found[name] = partial(one_by_one, images, request, out)
        return found

    def decision(self, problem: BankCase) -> Decision:
        """Ask the product."""
        return decide_bank(problem.shape, np.dtype(problem.dtype), problem.bank_shape, self._limits)

    def launches(self, problem: Any) -> Iterable[Launch]:
        """List nothing: parts and their launches follow from the memory, and kernels are compiled where they run."""
        return ()
