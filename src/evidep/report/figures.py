"""Every figure of a packet, and the files they are saved to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evidep.audit.packet import AuditPacket
from evidep.errors import SettingError
from evidep.report.figures_arms import arms
from evidep.report.figures_ladder import ladder
from evidep.report.figures_map import diagnostic_map
from evidep.report.figures_shuffles import shuffle_distribution
from evidep.report.style import FORMATS, save

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["FIGURES", "arms", "diagnostic_map", "ladder", "save_figures", "shuffle_distribution"]

FIGURES: Final[dict[str, Callable[[AuditPacket], Figure]]] = {
    "diagnostic_map": diagnostic_map,
    "ladder": ladder,
    "arms": arms,
    "shuffle_distribution": shuffle_distribution,
}


def save_figures(packet: AuditPacket, folder: str | Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write every figure of a packet into a folder, the same bytes for the same packet and matplotlib release.

    Returns:
        The files, NAME.FORMAT for each name of `FIGURES` and each format.

    Raises:
        SettingError: An unknown format.
        CacheError: A file cannot be written.
    """
    for kind in formats:
        if kind not in FORMATS:
            raise SettingError(f"formats: {kind!r} is unknown; choose from {', '.join(FORMATS)}")
    written: list[Path] = []
    for name, draw in FIGURES.items():
        figure = draw(packet)
        written.extend(save(figure, Path(folder) / f"{name}.{kind}") for kind in formats)
    return written
