"""``python -m benchmarks``: the project beside its peers, on this machine."""

from __future__ import annotations

from benchmarks.commands import bench

bench(prog_name="python -m benchmarks")
