"""What the device can do at most, measured in the same run: multiply-adds, copying, and starting an empty kernel."""

from __future__ import annotations

import importlib
from dataclasses import dataclass

from benchmarks.harness.clock import Clock

_FMA_SOURCE = r"""
extern "C" __global__ void __launch_bounds__(256) fma_rate(float* out, float a, float b, int rounds) {
    float s[32];
    #pragma unroll
    for (int i = 0; i < 32; ++i) s[i] = threadIdx.x + i;
    for (int r = 0; r < rounds; ++r) {
        #pragma unroll
        for (int k = 0; k < 8; ++k)
            #pragma unroll
            for (int i = 0; i < 32; ++i) s[i] = fmaf(s[i], a, b);
    }
    float t = 0;
    #pragma unroll
    for (int i = 0; i < 32; ++i) t += s[i];
    out[blockIdx.x * 256 + threadIdx.x] = t;
}
"""
_FMA_A_ROUND = 8 * 32
_COPY_SOURCE = r"""
extern "C" __global__ void __launch_bounds__(256) copied(const float4* source, float4* target) {
    const size_t i = blockIdx.x * (size_t)1024 + threadIdx.x;
    float4 v[4];
    #pragma unroll
    for (int k = 0; k < 4; ++k) v[k] = __ldcs(source + i + 256 * k);
    #pragma unroll
    for (int k = 0; k < 4; ++k) __stcs(target + i + 256 * k, v[k]);
}
"""
_COPY_BYTES = 2**30


@dataclass(frozen=True)
class DeviceRates:
    """Ceilings of the device.

    Attributes
    ----------
    fma : float
        FP32 multiply-adds a second, sustained.
    copy : float
        Bytes read and written a second by a copy within device memory.
    empty : float
        Seconds of a kernel that does nothing, replayed from a graph: the floor of the smallest cases.
    """

    fma: float
    copy: float
    empty: float


def measure_rates(clock: Clock, multiprocessors: int) -> DeviceRates:
    """Measure the ceilings of the current device.

    Parameters
    ----------
    clock : Clock
        With which everything else is timed.
    multiprocessors : int
        Of the device.

    Returns
    -------
    DeviceRates
        About a second of work.
    """
    cupy = importlib.import_module("cupy")
    kernel = cupy.RawKernel(_FMA_SOURCE, "fma_rate")
    blocks, rounds = multiprocessors * 8 * 16, 400
    out = cupy.empty(blocks * 256, "float32")
    arguments = (out, cupy.float32(0.999), cupy.float32(0.001), cupy.int32(rounds))
    fma = clock.on_device(lambda: kernel((blocks,), (256,), arguments))
    source = cupy.random.default_rng(1).random(_COPY_BYTES // 4, dtype="float32")
    target = cupy.empty_like(source)
    copied = cupy.RawKernel(_COPY_SOURCE, "copied")
    copy = clock.on_device(lambda: copied((_COPY_BYTES // (16 * 1024),), (256,), (source, target)))
    nothing = cupy.RawKernel('extern "C" __global__ void empty() {}', "empty")
    empty = clock.on_device(lambda: nothing((64,), (128,), ()))
    return DeviceRates(
        blocks * 256 * rounds * _FMA_A_ROUND / fma.seconds, 2 * _COPY_BYTES / copy.seconds, empty.seconds
    )
