"""Engines: ways to compute the plain sums ``C[dy, dx]``, and the choice between them."""

from __future__ import annotations

from typing import Any

from xcorr_app.correlation.engines.base import Correlator, Engine, Operand
from xcorr_app.correlation.engines.definition import DefinitionEngine
from xcorr_app.correlation.engines.fft import FFTEngine
from xcorr_app.correlation.engines.warp_shuffle import WarpShuffleEngine
from xcorr_app.errors import ArgumentError, DeviceError

__all__ = ["ENGINES", "Correlator", "Engine", "Operand", "choose_engine"]

ENGINES: dict[str, Engine] = {engine.name: engine for engine in (FFTEngine(), WarpShuffleEngine(), DefinitionEngine())}


def choose_engine(name: str, xp: Any) -> Engine:
    """Engine of this name, or for ``"auto"`` the fastest one for arrays of the module `xp`: so far the FFT.

    Raises
    ------
    ArgumentError
        If there is no engine of this name.
    DeviceError
        If it cannot run on such arrays.
    """
    if name == "auto":
        return ENGINES["fft"]
    if name not in ENGINES:
        raise ArgumentError(f"unknown engine {name!r}: use auto or one of {', '.join(ENGINES)}")
    engine = ENGINES[name]
    reason = engine.unavailable(xp)
    if reason is not None:
        raise DeviceError(f"engine {name!r} cannot run on {xp.__name__} arrays: {reason}")
    return engine
