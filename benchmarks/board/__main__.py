"""``python -m benchmarks.board``."""

from benchmarks.board.command import main

main()
