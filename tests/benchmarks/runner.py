"""``python -m benchmarks`` run in this process."""

from benchmarks.commands import bench
from tests.batch.movies import Run, invoke


def run_benchmarks(*arguments: object) -> Run:
    """Run a benchmark; an exception that reaches the user fails the test."""
    return invoke(bench, "python -m benchmarks", *arguments)
