"""Runs ``xcorr`` in children of a process that has everything imported, and kills some of them.

Each line of standard input is JSON: arguments, at which step to send SIGKILL (null: never), whether charts are left
out of the report, which error the step meets instead, and whether all later ones do. Each line of output is JSON:
seconds the child ran, its exit code (negative: the signal that ended it), and its steps.
"""

import json
import os
import sys
import time

import pytest

import xcorr_app.batch.align.run
import xcorr_app.batch.filter.run
import xcorr_app.cli.printing.align_table
import xcorr_app.cli.printing.progress
import xcorr_app.cli.printing.tables
import xcorr_app.report.views  # noqa: F401 - commands would import these in every child
from tests.batch.short_report import shorten_report
from tests.batch.steps import Steps
from xcorr_app.cli import main


def run(
    arguments: list[str],
    kill_at: int | None,
    short: bool,
    failing: int | None,
    lasting: bool,
) -> tuple[float, int, int]:
    begin = time.monotonic()
    counted, count = os.pipe()
    child = os.fork()
    if child == 0:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        if short:
            shorten_report(pytest.MonkeyPatch())
        steps = Steps(sys.argv[1], kill_at, failing, lasting=lasting)
        code = 70
        try:
            main(arguments, prog_name="xcorr")
        except SystemExit as end:
            code = int(end.code or 0)
        finally:
            os.write(count, str(steps.count).encode())
            os._exit(code)
    os.close(count)
    _, status = os.waitpid(child, 0)
    with os.fdopen(counted, "rb") as stream:
        return time.monotonic() - begin, os.waitstatus_to_exitcode(status), int(stream.read() or 0)


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(run(*json.loads(line))), flush=True)
