"""What would run on devices that are known, and what each candidate is expected to take: no device is needed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from xcorr_app.decision import Decision
from xcorr_app.gpu.runtime.limits import KNOWN_DEVICES
from xcorr_app.registration.moving.interpolation import ORDERS
from xcorr_app.registration.moving.moving_choice import decide_moving
from xcorr_app.tuning.domains import DOMAINS, domains_named

_PROBLEMS = 40


def _decided(domain: str, device: str) -> list[Any]:
    (known,) = domains_named([domain], KNOWN_DEVICES[device])
    rng = np.random.default_rng(11)
    problems = known.problems(rng, _PROBLEMS)
    return [{"problem": str(problem), **_told(known.decision(problem))} for problem in problems]


def _told(decision: Decision) -> dict[str, Any]:
    times = [-1.0 if one.microseconds is None else one.microseconds for one in decision.candidates]
    names = ", ".join(one.name for one in decision.candidates)
    return {"runs": decision.name, "of": names, "microseconds": np.array(times), "why": decision.reason}


def _moving() -> dict[str, Any]:
    return {
        f"{order} {dtype} {count} {shape}": _told(decide_moving(shape, count, dtype, order, KNOWN_DEVICES["h200"]))
        for order in ORDERS
        for dtype in ("uint8", "float32", "float64")
        for count, shape in ((1, (300, 200)), (500, (512, 512)), (16, (2048, 2100)))
    }


def cases() -> dict[str, Callable[[], Any]]:
    """Every domain on two devices."""
    found: dict[str, Callable[[], Any]] = {
        f"choice-{domain}-{device}": partial(_decided, domain, device)
        for domain in DOMAINS
        for device in ("h200", "t4")
    }
    found["choice-moving"] = _moving
    return found
