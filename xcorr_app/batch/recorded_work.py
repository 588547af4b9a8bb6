"""What commands have in common whose result for a stack is all in ``run.json``."""

from __future__ import annotations

from typing import Any

from xcorr_app.io import SeriesSpec
from xcorr_app.pipeline.resources import StackResources
from xcorr_app.pipeline.work import Finished

Facts = dict[str, Any]
"""What is known of a stack: counts, times, notes."""


class RecordedWork:
    """The part of `Work` that is the same for all of them."""

    less_memory = "use a machine with more"

    def ahead(self, spec: SeriesSpec, resources: StackResources) -> None:
        """See `Work`: nothing is, unless a command says so."""

    def restored(self, name: str, record: dict[str, Any]) -> Facts:
        """See `Work`."""
        facts: Facts = record["facts"]
        return facts

    def is_flagged(self, finished: Finished[Facts]) -> bool:
        """See `Work`: nothing is, unless a command says so."""
        return False
