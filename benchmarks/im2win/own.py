"""Im2win by the product, as what it is compared with is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from benchmarks.harness.contender import Attempt, rotating
from benchmarks.im2win.cases import Im2winCase
from benchmarks.im2win.data import Expected, LayerData
from xcorr_app.gpu.im2win.run import im2win_on_device


def layer_attempts(options: dict[str, Any]) -> Callable[[Im2winCase, LayerData], Iterator[Attempt]]:
    """Make attempts of whole calls: transform and convolution, with memory from the pool."""

    def attempts(case: Im2winCase, data: LayerData) -> Iterator[Attempt]:
        works = [
            partial(im2win_on_device, images, filters, case.problem.stride, **options)
            for images, filters in zip(data.images, data.filters, strict=True)
        ]
        yield rotating(works, Expected.read_row)

    return attempts
