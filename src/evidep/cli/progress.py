"""How far an audit is, on stderr: a bar where a person watches, now and then a line where a log does."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TextIO

from evidep.cli.console import is_main_process
from evidep.readers.watched import running

FIRST_LINE_AFTER: Final = 20.0
"""Seconds; what is done sooner says nothing. The wait doubles after each line, so that there are few."""
LONGEST_WAIT: Final = 3600.0

Show = Callable[[str, int, int], None]


@contextmanager
def progress_bar() -> Iterator[Show | None]:
    """A function (stage, done, total) that shows how far the work is; None in all but one of several processes."""
    if not is_main_process():
        yield None
    elif sys.stderr.isatty():
        with _bar() as show:
            yield show
    else:
        with plain_lines(sys.stderr) as show:
            yield show


@contextmanager
def plain_lines(stream: TextIO, first: float = FIRST_LINE_AFTER) -> Iterator[Show]:
    """Lines with the present stage and what a reader computes in it.

    The first comes after `first` seconds, each later one after twice the wait before it.
    """
    now = ["reading the data"]
    stop, started = threading.Event(), time.monotonic()

    def show(stage: str, done: int, total: int) -> None:
        now[0] = f"{stage} ({done} of {total} steps done)"

    def write() -> None:
        wait = first
        while not stop.wait(wait):
            try:
                inside = running()
                what = f"{now[0]}: {inside}" if inside else now[0]
                stream.write(f"evidep: after {time.monotonic() - started:.0f} s: {what}\n")
                stream.flush()
            except OSError:  # nobody listens any more, which the work itself need not mind
                return
            wait = min(2.0 * wait, LONGEST_WAIT)

    # A thread, because a fit may take an hour without a word.
    teller = threading.Thread(target=write, name="evidep-progress", daemon=True)
    teller.start()
    try:
        yield show
    finally:
        stop.set()
        teller.join()


@contextmanager
def _bar() -> Iterator[Show]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading the data", total=None)

        def show(stage: str, done: int, total: int) -> None:
            bar.update(task, description=stage, completed=done, total=total)

        yield show
