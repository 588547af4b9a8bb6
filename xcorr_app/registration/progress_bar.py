"""A progress bar for who asks for ``progress=True`` and has no callable of their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from xcorr_app.registration.stack.passes import Progress


@contextmanager
def shown(progress: Progress | bool | None) -> Iterator[Progress | None]:
    """Yield what to call with progress: a callable as it is, a bar on the terminal for True, None for nothing."""
    if progress is not True:
        yield progress or None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns) as bar:
        task = bar.add_task("", total=None)
        yield lambda stage, done, total: bar.update(task, completed=done, total=total, description=stage)
