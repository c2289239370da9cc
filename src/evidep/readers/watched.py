"""How far a long computation inside a reader is: a bar where a person watches, words for a log."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass


@dataclass(slots=True)
class _Running:
    what: str
    unit: str = ""
    done: int = 0
    total: int = 0


_running: list[_Running] = []


def running() -> str:
    """What this process computes, outermost first, as "fold 2 of 5, fine-tuning 148 of 222 steps"; "" for nothing."""
    return ", ".join(
        f"{one.what} {one.done:,} of {one.total:,} {one.unit}s" if one.unit else one.what for one in list(_running)
    )


@contextmanager
def named(what: str) -> Iterator[None]:
    """A part of a longer work that has a name only, as "fold 2 of 5"."""
    with _listed(_Running(what)):
        yield


@contextmanager
def counted(what: str, unit: str, total: int, *, done: int = 0, shown: bool = True) -> Iterator[Callable[[int], None]]:
    """A computation of `total` units, with a bar on a terminal; gives the function that says how many more are done.

    Args:
        what: Its name, as "fine-tuning".
        unit: One of what is counted, as "step".
        total: How many there are.
        done: How many were done before.
        shown: Whether this process shows a bar at all.
    """
    from tqdm import tqdm

    one = _Running(what, unit, done, total)
    disable = None if shown else True  # None: on a terminal only
    with (
        _listed(one),
        tqdm(total=total, initial=done, desc=what, unit=unit, disable=disable, leave=False) as bar,
    ):

        def advance(more: int) -> None:
            one.done += more
            bar.update(more)

        yield advance


@contextmanager
def _listed(one: _Running) -> Iterator[None]:
    _running.append(one)
    try:
        yield
    finally:
        # By identity: two computations may say the same of themselves.
        _running[:] = [other for other in _running if other is not one]
