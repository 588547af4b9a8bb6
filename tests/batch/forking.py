"""A process that runs commands in children of its own, and what it is asked through."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.conftest import ROOT


@contextmanager
def forking(folder: Path) -> Iterator[Callable[..., Any]]:
    """Yield a function that runs a command in a child that can be killed: returns its seconds and its exit code.

    Its ``steps`` is how many changes the last child made to files below `folder`, unless it was killed.
    """
    command = [sys.executable, "-m", "tests.batch.forker", str(folder)]
    with subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:

        def run(arguments, kill_at=None, *, short_report=False, failing=None, lasting=False):
            words = [str(argument) for argument in arguments]
            process.stdin.write(json.dumps([words, kill_at, short_report, failing, lasting]) + "\n")
            process.stdin.flush()
            seconds, code, run.steps = json.loads(process.stdout.readline())
            return seconds, code

        yield run
        process.stdin.close()
