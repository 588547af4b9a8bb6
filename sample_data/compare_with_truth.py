"""Compare the shifts that ``xcorr align`` found in the sample stacks with the truth they were made with."""

from __future__ import annotations

import csv
import math
import sys
from pathlib import Path

TOLERANCE = 0.1
"""Pixels. The cells of the movie also move by themselves, up to 0.07 px on average over the frame."""


def main(out: Path) -> int:
    """Print the largest error of every stack; exit code 1 if one exceeds the tolerance."""
    truth: dict[str, dict[int, tuple[float, float]]] = {}
    with (Path(__file__).parent / "truth.csv").open(newline="") as stream:
        for row in csv.DictReader(stream):
            truth.setdefault(row["stack"], {})[int(row["frame"])] = (float(row["dy"]), float(row["dx"]))
    worst = 0.0
    for stack, frames in truth.items():
        with (out / stack / "shifts.csv").open(newline="") as stream:
            found = {int(row["frame"]): (float(row["dy"]), float(row["dx"])) for row in csv.DictReader(stream)}
        if found.keys() != frames.keys():
            print(f"{stack}: {len(found)} frames in the table, {len(frames)} in truth.csv")
            return 1
        error = max(math.dist(found[frame], frames[frame]) for frame in frames)
        print(f"{stack}: largest error {error:.4f} px over {len(frames)} frames")
        worst = max(worst, error)
    print(f"{'within' if worst <= TOLERANCE else 'BEYOND'} the tolerance of {TOLERANCE} px")
    return int(not worst <= TOLERANCE)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python sample_data/compare_with_truth.py OUT")
    sys.exit(main(Path(sys.argv[1])))
