"""Cards of the readers that an audit fine-tuned, and an index that says which folder holds which."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from evidep.errors import CacheError, ReaderError

logger = logging.getLogger(__name__)
INDEX: Final = "index.json"


def write_reader_cards(
    workdir: Path, packet: Mapping[str, Any], *, train_name: str, datasets: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Write a model card beside the finished weights of each fine-tuned reader, and the index of all of them.

    The fit that the packet's numbers come from gets a card with them. The others (retrained on partial input, on the
    folds of an out-of-fold audit, on planted labels, or of an earlier audit in the same folder) get one that says they
    were not evaluated, unless they have a card.

    Args:
        workdir: Folder of the audit's fits.
        packet: The audit.
        train_name: What the training data is called.
        datasets: Its ids on the Hub.

    Returns:
        The index, also written as JSON: reader, seed, fingerprint of its train table, folder, and whether the packet
        is its audit. Empty, and not written, where nothing was fine-tuned.

    Raises:
        CacheError: The folder cannot be written.
    """
    from evidep.readers.saved import CARD, METADATA, read_notes
    from evidep.report.model_card import audited_fit, model_card

    index = []
    for file in sorted(workdir.glob("**/finished/" + METADATA)):
        try:
            notes = read_notes(file.parent, verify=False)
        except ReaderError as error:
            logger.warning("no card: %s", error)
            continue
        if notes.fitted is None:
            continue
        audited = bool(audited_fit(packet, notes.fitted))
        index.append(
            {
                "reader": notes.settings["name"],
                "seed": notes.fitted.seed,
                "train": notes.fitted.train,
                "audited": audited,
                "folder": file.parent.relative_to(workdir).as_posix(),
            }
        )
        if audited or not (file.parent / CARD).exists():
            card = (
                model_card(notes, packet, train_name=train_name, datasets=datasets)
                if audited
                else model_card(notes, None)
            )
            _write(file.parent / CARD, card)
    index.sort(key=lambda row: (not row["audited"], row["reader"], row["seed"], row["train"]))
    if index:
        _write(workdir / INDEX, json.dumps(index, indent=1) + "\n")
    return index


def _write(file: Path, text: str) -> None:
    partial = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    try:
        partial.write_text(text, encoding="utf-8")
        partial.replace(file)
    except OSError as error:
        raise CacheError(f"cannot write {file}: {error.strerror or error}") from error
