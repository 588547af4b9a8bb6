"""The product's own contenders in ``python -m benchmarks im2win``: what ships, and each of its forms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from benchmarks.harness.contender import Attempt, Contender, rotating
from benchmarks.im2win.cases import Im2winCase
from benchmarks.im2win.data import Expected, LayerData
from xcorr_app.gpu.im2win.run import FORMS, im2win_on_device


def own_contenders(_: Im2winCase) -> Iterator[Contender]:
    """Yield what the product can do a layer with."""
    yield Contender("im2win_on_device", layer_attempts({}), choice="auto")
    for form in FORMS:
        if form != "im2win-basic":
            yield Contender(f"kernel {form}", layer_attempts({"form": form}), choice=form)


def layer_attempts(options: dict[str, Any]) -> Callable[[Im2winCase, LayerData], Iterator[Attempt]]:
    """Make attempts of whole calls: transform and convolution, with memory from the pool."""

    def attempts(case: Im2winCase, data: LayerData) -> Iterator[Attempt]:
        works = [
            partial(im2win_on_device, images, filters, case.problem.stride, **options)
            for images, filters in zip(data.images, data.filters, strict=True)
        ]
        yield rotating(works, Expected.read_row)

    return attempts
