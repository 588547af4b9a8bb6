"""Run the ways of an ablation once each, for a profiler: ``python -m benchmarks.ablation.once DOCUMENT [TEXT]``.

`benchmarks/ncu.sh` runs it below Nsight Compute. Only cases whose name contains the text are run.
"""

from __future__ import annotations

import importlib
import sys
from contextlib import suppress

from benchmarks.harness.record import require_device
from benchmarks.suites import DOCUMENTS
from xcorr_app.errors import ArgumentError


def main(document: str, text: str = "") -> None:
    """Run them, the product's own and CuPy's; say on a line each what runs, in the order of the profiler's rows.

    Everything is compiled by a run before, and only the second one is profiled.
    """
    require_device()
    cupy, suite = importlib.import_module("cupy"), DOCUMENTS[document]
    profile = importlib.import_module("cupyx.profiler").profile
    for case in suite.cases:
        if text in case.name:
            data = suite.data(case, cupy, 1)
            for contender in suite.contenders(case):
                with suppress(ArgumentError):  # a way that this device has no room for
                    for attempt in contender.attempts(case, data):
                        attempt.run()
                        print(f"{case.name} | {contender.name}", flush=True)
                        with profile():
                            attempt.run()
                            cupy.cuda.Device().synchronize()


if __name__ == "__main__":
    main(*sys.argv[1:])
