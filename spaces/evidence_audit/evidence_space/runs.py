"""One audit on a thread of its own: it tells how far it is, and stops when asked or out of time."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from evidence_space import limits
from evidep.errors import EvidepError, SettingError

T = TypeVar("T")
_TICK: Final = 0.3


class Stopped(EvidepError):
    """The visitor stopped the run, or left."""


class OutOfTime(EvidepError):
    """The run took longer than one visitor may."""


@dataclass(slots=True, eq=False)
class Run(Generic[T]):
    """A run in progress. `progress` is handed to the audit; it raises to end it."""

    seconds: float = limits.MAX_SECONDS
    stop: threading.Event = field(default_factory=threading.Event)
    stage: str = "reading the data"
    done: int = 0
    total: int = 0
    started: float = field(default_factory=time.monotonic)
    outcome: T | None = None
    error: BaseException | None = None

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.started

    def progress(self, stage: str, done: int, total: int) -> None:
        """Note how far the audit is.

        Raises:
            Stopped: The visitor asked for it.
            OutOfTime: The limit is reached.
        """
        if self.stop.is_set():
            raise Stopped("stopped: nothing was kept")
        if self.elapsed > self.seconds:
            raise OutOfTime(
                f"stopped after {self.seconds:.0f} seconds, the most that one run gets here: use fewer rows, shuffles "
                "or readers, or run `evidep audit` on your own machine"
            )
        self.stage, self.done, self.total = stage, done, total

    def follow(self, work: Callable[[Callable[[str, int, int], None]], T]) -> Iterator[tuple[str, int, int, float]]:
        """Do the work, yielding (stage, done, total, seconds) a few times a second; then see `result`.

        A caller that stops iterating stops the work.
        """

        def body() -> None:
            try:
                self.outcome = work(self.progress)
            except BaseException as error:
                self.error = error

        thread = threading.Thread(target=body, daemon=True, name="audit")
        thread.start()
        try:
            while thread.is_alive():
                yield self.stage, self.done, self.total, self.elapsed
                thread.join(_TICK)
        finally:
            if thread.is_alive():
                self.stop.set()

    def result(self) -> T:
        """What the work returned.

        Raises:
            EvidepError: What it raised.
        """
        if self.error is not None:
            raise self.error
        assert self.outcome is not None
        return self.outcome


class Visitors:
    """At most one run for each visitor, found by the session's name to be stopped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: dict[str, Run[Any]] = {}

    def start(self, visitor: str) -> Run[Any]:
        """A new run.

        Raises:
            SettingError: The visitor has one already.
        """
        with self._lock:
            if visitor in self._runs:
                raise SettingError("one of your audits is still running: wait for it, or stop it")
            run: Run[Any] = Run()
            self._runs[visitor] = run
            return run

    def finish(self, visitor: str) -> None:
        """Forget a run."""
        with self._lock:
            self._runs.pop(visitor, None)

    def stop(self, visitor: str) -> bool:
        """Ask a visitor's run to end; False where there is none."""
        with self._lock:
            run = self._runs.get(visitor)
        if run is not None:
            run.stop.set()
        return run is not None
