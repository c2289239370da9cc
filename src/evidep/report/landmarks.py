"""Published results that the diagnostic map shows for orientation: Shao, arXiv 2605.23701."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

SOURCE: Final = "Shao, arXiv 2605.23701"


@dataclass(frozen=True, slots=True)
class Landmark:
    """A published audit: its MPDS (None where the paper gives none) and its ΔEvi."""

    name: str
    mpds: float | None
    delta_evi: float


LANDMARKS: Final = (
    Landmark("HotpotQA synthetic", 0.643, 0.0),
    Landmark("NQ synthetic", 1.0, 0.0),
    Landmark("TriviaQA synthetic", None, 0.808),
    Landmark("FEVER, BERT", None, 0.681),
    Landmark("SNLI, BERT", None, 0.367),
    Landmark("FEVER, light", None, 0.13),
    Landmark("SNLI, light", None, 0.0),
)
