"""Traces of earlier runs: they hold as long as neither program nor tests change."""

from __future__ import annotations

import hashlib
import pickle
import sys
from pathlib import Path

from tests.kernels.build_cache import cache_folder
from tests.mutate.choice import Traces
from tests.mutate.nearest import ROOT


def kept_traces() -> Traces | None:
    """What an earlier run saw of the same tree."""
    place = _place()
    return pickle.loads(place.read_bytes()) if place.exists() else None  # noqa: S301 - written below


def keep_traces(traces: Traces) -> None:
    """Keep them for the next run, and none of other trees."""
    place = _place()
    for other in place.parent.glob("traces-*"):
        other.unlink()
    place.write_bytes(pickle.dumps(traces))


def _place() -> Path:
    known = hashlib.sha256(sys.version.encode())
    for folder in ("xcorr_app", "tests"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if "mutate" not in path.parts:
                known.update(path.read_bytes())
    return cache_folder() / f"traces-{known.hexdigest()}"
