"""The console that results are printed to, and which process prints them."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def is_main_process() -> bool:
    """Whether this process is the one that prints. A launcher (torchrun, accelerate) numbers its processes by RANK."""
    return os.environ.get("RANK", "0") in ("", "0")


def results_console() -> Console:
    """A console on stdout, as wide as COLUMNS or the terminal says and 80 columns where neither does.

    The size is given to rich: left to itself it takes 80 columns for a dumb terminal, whatever COLUMNS says.
    """
    from rich.console import Console

    size = shutil.get_terminal_size((80, 25))
    return Console(width=size.columns, height=size.lines)
