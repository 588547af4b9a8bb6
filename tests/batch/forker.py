"""Runs ``xcorr`` in children of a process that has everything imported, and kills some of them.

Each line of standard input is JSON: arguments, and after how many seconds to send SIGKILL (null: never). Each line of
output is JSON: seconds the child ran, and its exit code (negative: the signal that ended it).
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

import xcorr_app.batch.align.run
import xcorr_app.batch.filter.run
import xcorr_app.cli.align_table
import xcorr_app.cli.filter_table
import xcorr_app.cli.progress
import xcorr_app.report.views  # noqa: F401 - commands would import these in every child
from xcorr_app.cli import main


def run(arguments: list[str], kill_after: float | None) -> tuple[float, int]:
    begin = time.monotonic()
    child = os.fork()
    if child == 0:
        silence = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silence, 1)
        os.dup2(silence, 2)
        try:
            main(arguments, prog_name="xcorr")
        except SystemExit as end:
            os._exit(int(end.code or 0))
        finally:
            os._exit(70)
    if kill_after is not None:
        time.sleep(kill_after)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    return time.monotonic() - begin, os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(run(*json.loads(line))), flush=True)
