"""Which engine ``auto`` takes in registration: one pure function, which the measurement asks."""

from __future__ import annotations

import numpy as np
import pytest

from tests.registration.scenes import drifting
from xcorr_app import KernelOptions, estimate_shifts
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES
from xcorr_app.registration.choice import decide_registration
from xcorr_app.registration.measuring import one_pass
from xcorr_app.registration.settings import Settings

DRIFT = np.array([(0, 0), (1.5, -2.25), (3, 1), (-4.5, 6)])
H200 = KNOWN_DEVICES["h200"]


class Asked(Exception):  # noqa: N818 - it ends the measurement
    pass


@pytest.fixture
def asked(monkeypatch):
    """What a measurement asks of the choice, and the engine that it then takes; an H200 is said to be there."""
    monkeypatch.setattr(one_pass, "limits_of", lambda _: H200)

    def matcher(self, shape, dtype, engine, kernel, **how):
        raise Asked(engine)

    monkeypatch.setattr(one_pass.OnePass, "_matcher", matcher)

    def engine_of(stack, **options):
        with pytest.raises(Asked) as found:
            estimate_shifts(stack, max_shift=16, verify="none", contrast="none", **options)
        return found.value.args[0]

    return engine_of


def large(dtype=np.float32):
    return np.tile(drifting(DRIFT), (1, 16, 16)).astype(dtype)


def test_tensor_cores_where_frames_share_a_reference(asked):
    stack = large()
    assert asked(stack, weighting="none") == "tensor"
    assert asked(stack, weighting="none", engine="fft") == "fft"
    assert asked(stack, weighting="none", reference="previous") != "tensor"


def test_weighted_frames_need_planes(asked, monkeypatch):
    seen = []
    monkeypatch.setattr(
        one_pass, "decide_registration", lambda *given, **how: seen.append(how) or decide_registration(*given, **how)
    )
    stack = drifting(DRIFT)
    noise = np.random.default_rng(2).normal(scale=2 * stack.std(), size=stack.shape)
    asked((stack + noise).astype(np.float32))
    assert seen[-1] == {"weighted": True, "shared_reference": True}


def decided(count, size, dtype="float32", limits=H200, max_shift=16, how=None, **options):
    return decide_registration(
        (size, size), dtype, count, Settings(max_shift=max_shift, **options), limits, **(how or {})
    )


@pytest.mark.parametrize("count", [1, 2, 3, 4, 64])
def test_few_frames_are_enough_where_they_are_large(count):
    assert decided(count, 1024).engine == "tensor"
    assert decided(min(count, 4), 64).engine == "direct"


@pytest.mark.parametrize(
    ("options", "engine", "reason"),
    [
        ({"limits": None}, "fft", "no GPU"),
        ({"normalization": "phase"}, "fft", "phase correlation is computed by the FFT alone"),
        ({"kernel_options": KernelOptions(variant="combined")}, "direct", "asked for"),
        ({"engine": "fft"}, "fft", "asked for"),
        ({"engine": "warp-shuffle"}, "direct", "least expected time"),
        ({"limits": KNOWN_DEVICES["t4"]}, "direct", "least expected time"),
        ({"limits": KNOWN_DEVICES["a100"]}, "direct", "least expected time"),
    ],
)
def test_never_where_they_are_missing_or_other_things_are_asked_for(options, engine, reason):
    found = decided(8, 1024, **options)
    assert found.engine == engine
    assert reason in found.reason


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"subpixel": "dft"}, "sub-pixel method dft"),
        ({"normalization": "none"}, "normalization is none"),
        ({"dtype": "float64"}, "not float64"),
        ({"how": {"weighted": True}}, "frequencies are weighted"),
        ({"max_shift": 300}, "do not fit the shared memory"),
        ({"kernel_options": KernelOptions(precision="fp16x2")}, "precision fp16x2"),
    ],
)
def test_whole_planes_where_peaks_alone_do_not_do(options, reason):
    found = decided(8, 1024, **options)
    assert "whole planes, as " in found.reason
    assert reason in found.reason


def test_every_candidate_is_told():
    found = decided(64, 512)
    assert found.name in {candidate.name for candidate in found.candidates}
    assert {"fft", "direct", "tensor"} == {candidate.engine for candidate in found.candidates}
    assert all(candidate.microseconds > 0 for candidate in found.candidates)
    assert found.name in found.described()


@pytest.mark.parametrize(
    ("options", "name", "planes"),
    [
        (KernelOptions("multi-row", "triangle", phases=True), "direct:multi-row", False),
        (KernelOptions("combined-shuffle"), "direct:combined-shuffle", False),
        (KernelOptions(sums="float64"), "direct:combined", True),
        (KernelOptions("warp-shuffle", sums="float64"), "direct:warp-shuffle", True),
    ],
)
def test_a_variant_or_sums_that_are_asked_for(options, name, planes):
    decided = decide_registration((256, 256), "uint16", 64, Settings(kernel_options=options), H200)
    assert decided.name == name
    assert ("sums of float64 are those of planes" in decided.reason) == planes
