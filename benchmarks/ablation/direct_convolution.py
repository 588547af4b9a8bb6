"""Direct convolution, the simplest of Im2win's peers: a thread sums one output element straight from the images."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.harness.contender import Attempt, rotating
from benchmarks.im2win.data import Expected, Im2winCase, LayerData

_THREADS = 256
SOURCE = r"""
extern "C" __global__ void direct_convolution(const float* images, const float* filters, float* out, int channels,
    int height, int width, int count, int filter_height, int filter_width, int stride, int out_height, int out_width,
    long long elements) {
    const long long index = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= elements) return;
    const int x = index % out_width, y = index / out_width % out_height;
    const int filter = index / ((long long)out_width * out_height) % count;
    const long long image = index / ((long long)out_width * out_height * count);
    float sum = 0;
    for (int c = 0; c < channels; ++c) {
        const float* plane = images + ((image * channels + c) * height + y * stride) * width + x * stride;
        const float* taps = filters + ((long long)filter * channels + c) * filter_height * filter_width;
        for (int v = 0; v < filter_height; ++v)
            for (int u = 0; u < filter_width; ++u) sum += plane[v * width + u] * taps[v * filter_width + u];
    }
    out[index] = sum;
}
"""


def direct_attempts(case: Im2winCase, data: LayerData) -> Iterator[Attempt]:
    """Make the attempt of a layer; the result is new at every call, as those of its peers are."""
    cupy, p = importlib.import_module("cupy"), case.problem
    elements = p.filters * p.columns
    sizes = (p.channels, p.height, p.width, p.filters, p.filter_height, p.filter_width, p.stride)
    numbers = (*map(np.int32, (*sizes, p.out_height, p.out_width)), np.int64(elements))
    blocks = -(-elements // _THREADS)

    def work(images: Any, filters: Any) -> Any:
        out = cupy.empty((p.images, p.filters, p.out_height, p.out_width), np.float32)
        _kernel()((blocks,), (_THREADS,), (images, filters, out, *numbers))
        return out

    works = [
        functools.partial(work, images, filters) for images, filters in zip(data.images, data.filters, strict=True)
    ]
    yield rotating(works, Expected.read_row)


@functools.cache
def _kernel() -> Any:
    return importlib.import_module("cupy").RawKernel(SOURCE, "direct_convolution")
