"""The planner of the pointwise convolution: limits kept, everything covered, the best of what there is."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from xcorr_app.errors import ArgumentError
from xcorr_app.gpu.pointwise import planner as pointwise_planner
from xcorr_app.gpu.pointwise.blocking_options import BlockingOptions
from xcorr_app.gpu.pointwise.planner import candidates, plan_pointwise
from xcorr_app.gpu.runtime.limits import DeviceLimits

H200 = DeviceLimits(132, 232448, 65536, 255, 233472, 1024)
T4 = DeviceLimits(40, 65536, 65536, 255, 65536, 0)

sizes = st.one_of(
    st.integers(1, 64), st.integers(1, 4096), st.sampled_from([23, 24, 47, 48, 511, 512, 513, 1023, 2049, 4095, 4096])
)
pixel_counts = st.one_of(st.integers(1, 300), st.integers(1, 2**31))
shapes = st.tuples(sizes, sizes, pixel_counts)
ODD = DeviceLimits(7, 50000, 60000, 255, 100000, 512)
devices = st.sampled_from([H200, T4, ODD])


def up(amount, part):
    return math.ceil(amount / part) if amount < 2**50 else -(-amount // part)


def registers_and_bytes(plan):
    """By the formulas of the method: R_o + R_f + R_i + R_tmpf + R_tmpi + const; both buffers."""
    fetched = up(plan.channel_count * plan.block_filters, 128) + up(plan.channel_count * plan.block_pixels, 128)
    outputs = plan.thread_filters * plan.thread_pixels
    registers = outputs + plan.thread_filters + plan.thread_pixels + fetched + pointwise_planner.REGISTERS_BESIDES
    return registers, (plan.block_filters + plan.block_pixels) * plan.channel_count * 4 * 2, outputs, fetched


@settings(max_examples=150, deadline=None)
@given(shapes, devices)
def test_every_candidate_keeps_the_limits_and_covers_the_output(shape, limits):
    filters, channels, pixels = shape
    for plan in candidates(*shape, limits):
        blocks = plan.blocks_per_multiprocessor
        registers, shared, outputs, fetched = registers_and_bytes(plan)
        assert (plan.registers, plan.shared_bytes) == (registers, shared)
        assert blocks in (2, 4)
        assert registers <= 255
        assert registers * 128 * blocks <= limits.registers
        assert (shared + limits.shared_bytes_reserved) * blocks <= limits.shared_bytes_per_multiprocessor
        assert shared <= limits.shared_bytes
        assert plan.channel_count in (1, 2, 4, 8, 16, 32)
        assert plan.channel_count == 1 or plan.channel_count < 2 * channels
        share = up(up(filters * pixels, limits.multiprocessors), plan.block_filters * blocks)
        assert plan.tiles_per_block == up(share, plan.block_pixels)
        assert plan.intensity == pytest.approx(outputs * up(share, 32) / fetched)

        assert plan.layout == ("L1" if filters >= 48 else "L2")
        along_pixels, along_filters = plan.grid
        halved = filters >= (512 if plan.layout == "L1" else 24)
        assert along_filters == (2 if halved else 1)
        assert along_filters * plan.block_filters >= filters
        assert along_pixels * plan.tiles_per_block * plan.block_pixels >= pixels
        assert (along_pixels - 1) * plan.tiles_per_block * plan.block_pixels < pixels
        assert plan.channel_steps * plan.channel_count >= channels
        spread, held = ("filters", "pixels") if plan.layout == "L1" else ("pixels", "filters")
        in_lanes = plan.lane_groups * getattr(plan, f"thread_{spread}")
        assert 0 <= in_lanes - getattr(plan, f"warp_{spread}") < plan.lane_groups
        assert getattr(plan, f"thread_{held}") == getattr(plan, f"warp_{held}")
        assert plan.thread_pixels <= min(16, plan.thread_filters)


def every_choice(filters, channels, pixels, limits):
    """A second, plain enumeration: (intensity, tiles, registers) of all that fits."""
    found = []
    layout = "L1" if filters >= 48 else "L2"
    block_filters = up(filters, 2) if filters >= {"L1": 512, "L2": 24}[layout] else filters
    warp_filters = up(block_filters, 2)
    for blocks in (2, 4):
        free = up(up(filters * pixels, limits.multiprocessors), 2 * warp_filters * blocks)
        for exponent in range(6):
            count, groups = 2**exponent, 32 // 2**exponent
            if count >= 2 * channels and count > 1:
                continue
            for wide in range(1, 17):
                if layout == "L1":
                    tile, warp_pixels = up(warp_filters, groups) * wide, wide
                    high = up(warp_filters, groups)
                    fits = wide <= up(min(free, 32), 2)
                else:
                    tile, warp_pixels = warp_filters * wide, wide * groups
                    high = warp_filters
                    fits = wide <= up(up(min(free, 32 * groups), 2), groups)
                fetched = up(count * 2 * warp_filters, 128) + up(count * 2 * warp_pixels, 128)
                registers = tile + high + wide + fetched + pointwise_planner.REGISTERS_BESIDES
                shared = (2 * warp_filters + 2 * warp_pixels) * count * 8
                most = min(limits.registers_per_thread, limits.registers // (blocks * 128) // 8 * 8)
                room = min(
                    limits.shared_bytes, limits.shared_bytes_per_multiprocessor // blocks - limits.shared_bytes_reserved
                )
                if not fits or wide > high or registers > most or shared > room:
                    continue
                intensity = tile * up(free, 32) / fetched
                tiles = up(up(pixels, limits.multiprocessors), 2 * warp_pixels) * up(filters, 2 * warp_filters)
                found.append((intensity, tiles * limits.multiprocessors, registers))
    return found


@settings(max_examples=150, deadline=None)
@example((58, 64, 2402), H200)  # of two that are close and have as many tiles, one takes fewer registers
@given(shapes, devices)
def test_the_choice_is_the_best_of_all_that_fit(shape, limits):
    plan = plan_pointwise(*shape, limits)
    every = every_choice(*shape, limits)
    assert sorted(every) == sorted((p.intensity, p.block_tiles, p.registers) for p in candidates(*shape, limits))
    largest = max(intensity for intensity, _, _ in every)
    assert plan.intensity >= 0.99 * largest
    close = [(tiles, registers) for intensity, tiles, registers in every if intensity >= 0.99 * largest]
    assert (plan.block_tiles, plan.registers) == min(close)


def test_limits_decide():
    roomy = plan_pointwise(256, 256, 10**6, H200)
    tight = replace(H200, registers_per_thread=120)
    assert roomy.registers > 120
    assert plan_pointwise(256, 256, 10**6, tight).registers <= 120
    little = replace(H200, shared_bytes=5000)
    assert roomy.shared_bytes > 5000
    assert plan_pointwise(256, 256, 10**6, little).shared_bytes <= 5000
    with pytest.raises(ArgumentError, match="no tiles for 256 filters fit"):
        plan_pointwise(256, 256, 10**6, replace(H200, registers_per_thread=40))


def test_every_block_loses_what_the_system_reserves_of_its_share():
    assert pointwise_planner.shared_for(H200, 2) == 233472 // 2 - 1024
    assert pointwise_planner.shared_for(H200, 4) == 233472 // 4 - 1024
    assert pointwise_planner.shared_for(T4, 1) == 65536
    assert pointwise_planner.shared_for(H200, 2, BlockingOptions(shared_bytes=48 * 1024)) == 24 * 1024


@pytest.mark.parametrize("shape", [(0, 1, 1), (1, 0, 1), (1, 1, 0), (4097, 1, 1), (1, 4097, 1)])
def test_sizes_out_of_range(shape):
    with pytest.raises(ArgumentError, match="1 to 4096"):
        plan_pointwise(*shape, H200)
