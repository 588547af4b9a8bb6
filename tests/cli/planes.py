"""Running ``xcorr correlate`` on small files, and reading the table it prints."""

import numpy as np

from tests.batch.movies import xcorr
from tests.io.samples import write_plain


def correlate(left, right, out, *options):
    """``xcorr correlate`` on the CPU."""
    return xcorr("correlate", "--device", "cpu", left, right, "-o", out, *options)


def write_operand(path, array):
    if path.suffix == ".npy":
        np.save(path, array)
    else:
        write_plain(path, array)
    return path


def rows_of(run):
    """Lines of the table, cut into words."""
    lines = run.stdout.splitlines()
    start = next(i for i, line in enumerate(lines) if line.split()[:2] == ["left", "right"])
    words = [line.replace("(", " ").replace(")", " ").replace(",", " ").split() for line in lines[start + 1 :]]
    return [row for row in words if row[:1] and row[0].isdecimal() and row[1].isdecimal()]
