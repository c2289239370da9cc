"""Which of an audit's readers can be fitted again, for the parts of an audit that need it."""

from __future__ import annotations

from collections.abc import Iterable

from evidep.readers.protocol import Reader
from evidep.readers.registry import make_reader


def refittable(specs: Iterable[str | Reader], part: str) -> tuple[list[tuple[str | Reader, str]], list[str]]:
    """The readers that can be fitted on other labels or other items, and why the others are left out.

    Args:
        specs: The audit's readers.
        part: What they are fitted for, in the plural; it enters the reasons.

    Returns:
        (spec, name) of each reader that can, and one reason for each that cannot.
    """
    usable: list[tuple[str | Reader, str]] = []
    reasons: list[str] = []
    for spec in specs:
        reader = make_reader(spec)
        name = reader.info.name
        if reader.info.strength == "baseline":
            reasons.append(f"{name}: no {part}, it is a baseline that does not read the texts")
        elif not getattr(reader, "trainable", True):
            reasons.append(f"{name}: no {part}, it cannot be fitted on other items or labels")
        else:
            usable.append((spec, name))
    if not usable:
        reasons.append(f"no reader for the {part}: run one that is fitted on texts, for example --readers tfidf_lr")
    return usable, reasons
