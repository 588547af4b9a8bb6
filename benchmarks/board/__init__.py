"""The board of cases: registration as a user calls it, on one scene for each thing that may happen to a series.

    python -m benchmarks.board [--cases NAME ...] [--seeds N] [--first-seed N] [--jobs N] [--json FILE]
                               [--compare FILE]

Scenes are in :mod:`~benchmarks.board.scenes` and :mod:`~benchmarks.board.textures`, real sets in
:mod:`~benchmarks.board.real`, the table of them, and what is asked of each, in :mod:`~benchmarks.board.cases`.
"""
