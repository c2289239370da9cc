"""Failures on demand."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass


@dataclass
class Fault:
    """Answers requests that match with a failure, `times` times.

    Attributes:
        where: Regular expression on "METHOD /path".
        status: Status of the answer; 0 only waits.
        times: How often it strikes.
        message: Body of the answer, as a server would explain itself.
        delay: Seconds before anything happens.
        afterwards: Whether the request is carried out first, and only its answer lost.
    """

    where: str
    status: int = 500
    times: int = 1
    message: str = "Internal error"
    delay: float = 0.0
    afterwards: bool = False

    def strikes(self, request: str) -> bool:
        if self.times <= 0 or not re.search(self.where, request):
            return False
        self.times -= 1
        return True

    async def wait(self) -> None:
        if self.delay:
            await asyncio.sleep(self.delay)
