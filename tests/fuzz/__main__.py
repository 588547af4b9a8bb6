"""``python -m tests.fuzz``: many changed files of every kind, by several processes; exit code 1 where one is wrong."""

import argparse
import json
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from multiprocessing import get_context
from pathlib import Path

from tests.fuzz.judge import job, limit
from tests.fuzz.targets import NOT_HERE, TARGETS

_STEP = 1000


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--count", type=int, default=100_000, help="files in all")
    parser.add_argument("--seed", type=int, default=1, help="another one makes other files")
    parser.add_argument("--workers", type=int, default=os.cpu_count(), help="processes; the files are the same")
    parser.add_argument("--keep", type=Path, help="folder for files that were met wrongly")
    parser.add_argument("--json", type=Path, help="file for the results")
    parser.add_argument("targets", nargs="*", default=[*TARGETS], help="kinds of file")
    chosen = parser.parse_args()
    if chosen.keep is not None:
        chosen.keep.mkdir(parents=True, exist_ok=True)
    each = -(-chosen.count // len(chosen.targets))
    jobs = [
        (name, min(_STEP, each - start), chosen.seed * 1_000_000 + start, chosen.keep)
        for start in range(0, each, _STEP)
        for name in chosen.targets
    ]
    begin = time.monotonic()
    outcomes = {name: Counter() for name in chosen.targets}
    wrong = 0
    with ProcessPoolExecutor(chosen.workers, get_context("spawn"), limit) as pool:
        for name, found, findings in pool.map(job, jobs):
            outcomes[name] += found
            wrong += len(findings)
            for finding in findings:
                print(*finding, flush=True)
    for name, counts in outcomes.items():
        print(f"{name:18}", "  ".join(f"{kind} {number}" for kind, number in sorted(counts.items())))
    if NOT_HERE:
        print("not here, for lack of a library:", *NOT_HERE)
    total = sum((counts for counts in outcomes.values()), Counter())
    print(f"{'all':18}", "  ".join(f"{kind} {number}" for kind, number in sorted(total.items())))
    if chosen.json is not None:
        seconds = round(time.monotonic() - begin)
        record = {"date": datetime.now(UTC).date().isoformat(), "seed": chosen.seed, "count": total.total()}
        record |= {"wrong": wrong, "not_here": NOT_HERE, "seconds": seconds, "processes": chosen.workers}
        chosen.json.write_text(json.dumps(record | {"kinds": outcomes}, indent=1) + "\n")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
