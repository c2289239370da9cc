"""`evidep.audit`: the main job in one call."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evidep.audit.packet import AuditPacket
from evidep.errors import CacheError
from evidep.readers.protocol import Reader
from evidep.types import ColumnRoles

if TYPE_CHECKING:
    from evidep.audit.results import AuditResults
    from evidep.audit.runner import Progress

RUN_FILE: Final = "run.json"


def audit(
    dataset: Any,
    *,
    train: Any = None,
    roles: ColumnRoles | Mapping[str, Any] | None = None,
    readers: Sequence[str | Reader] | str | Reader = ("tfidf_lr",),
    shuffles: Sequence[str] = (),
    k: int = 20,
    seed: int = 0,
    margin: float = 0.02,
    alpha: float = 0.05,
    out: str | os.PathLike[str] | None = None,
    config: str | None = None,
    split: str | None = None,
    train_split: str | None = None,
    revision: str | None = None,
    reader_seeds: int = 1,
    ablations: Sequence[str] = ("query-only", "evidence-only"),
    mpds_high: float = 0.9,
    n_folds: int = 5,
    max_items: int | None = None,
    max_train_items: int | None = None,
    controls: bool = False,
    diagnostics: bool = False,
    auto_metadata: bool = False,
    name: str | None = None,
    progress: Progress | None = None,
) -> AuditPacket:
    """Audit how far a benchmark's labels depend on its evidence.

    Args:
        dataset: A `datasets.Dataset` or `DatasetDict`, a Hub dataset id, a `save_to_disk` folder, a data frame, a list
            of dicts, or a csv/tsv/json/jsonl/parquet file (.gz too).
        train: The same for the data that readers are fitted on. None: a train split of `dataset`, else out of fold.
        roles: Which column is what; inferred from conventional names where left out.
        readers: Registry names or objects with the reader protocol, weakest first.
        shuffles: Families of evidence shuffles among global, within-label, within-metadata, near-miss. Empty: all but
            near-miss, as far as they apply.
        k: Shuffles per family.
        seed: Seed of shuffles, folds and fits; the same seed gives the same numbers.
        margin: Largest ΔEvi that counts as none, declared beforehand.
        alpha: Level of the tests; intervals have level 1 - alpha.
        out: Folder for packet, per-item results, finished cells and fine-tuned readers with their cards. An audit that
            was stopped goes on from there.
        config: Configuration of a Hub dataset.
        split: Split to audit (default: test, else validation).
        train_split: Split to fit on (default: train where there is one).
        revision: Revision of a Hub dataset.
        reader_seeds: Fits per reader, with seeds seed, seed + 1, ...
        ablations: Retrained controls among query-only, evidence-only, shuffled-training.
        mpds_high: MPDS from which metadata counts as predicting the labels.
        n_folds: Folds of an audit without a train split.
        max_items: Audit a uniform sample of so many evaluation items; None: all.
        max_train_items: Fit on a uniform sample of so many train items; None: all.
        controls: Also refit the readers on labels that are a function of the evidence alone and of the query alone:
            what this audit finds on these very texts when the answer is known.
        diagnostics: Also measure what a metadata shift costs, how many answers flip with one metadata field, and what
            filtering by metadata does to the shift. Needs metadata columns.
        auto_metadata: Also screen the labels against features derived from the texts (lengths, overlap, negation, ...).
        name: What the dataset is called in the packet.
        progress: Called with (stage, steps done, steps in all).

    Returns:
        The packet, also saved under `out` where that is given.

    Raises:
        EvidepError: Anything the caller can fix, in one line.
    """
    import pyarrow as pa

    from evidep.audit.assemble import assemble
    from evidep.audit.cache import CellStore
    from evidep.audit.plan import AuditSettings
    from evidep.audit.reader_cards import write_reader_cards
    from evidep.audit.runner import run_audit
    from evidep.audit.sample import limit_items
    from evidep.data.loading import load_audit_data

    started = time.monotonic()
    several = [readers] if isinstance(readers, str) or not isinstance(readers, Sequence) else readers
    settings = AuditSettings(
        readers=tuple(several),
        shuffles=tuple(shuffles),
        k=k,
        seed=seed,
        reader_seeds=reader_seeds,
        margin=margin,
        alpha=alpha,
        mpds_high=mpds_high,
        n_folds=n_folds,
        ablations=tuple(ablations),
        controls=controls,
        diagnostics=diagnostics,
        auto_metadata=auto_metadata,
    )
    folder = None if out is None else Path(out)
    store = CellStore(None if folder is None else folder / "cells")
    data = load_audit_data(
        dataset,
        train=train,
        config=config,
        split=split,
        train_split=train_split,
        revision=revision,
        roles=roles,
    )
    pa.default_memory_pool().release_unused()  # what parsing left behind counts against the audit
    results = run_audit(
        limit_items(data, max_items=max_items, max_train_items=max_train_items, seed=seed),
        settings,
        store=store,
        workdir=None if folder is None else folder / "readers",
        progress=progress,
    )
    packet = assemble(results, name=name or dataset_name(dataset))
    if folder is not None:
        packet.save(folder)
        source = dataset if train is None else train
        called = packet["data"]["name"] if train is None else dataset_name(train)
        write_reader_cards(folder / "readers", packet.document, train_name=called, datasets=hub_ids(source))
        _write_run(folder, results, time.monotonic() - started)
    return packet


def _write_run(folder: Path, results: AuditResults, seconds: float) -> None:
    """What this run did. Kept apart from the packet, which must not depend on when and how often it was started."""
    counts: dict[str, Any] = {"cells_computed": results.cells_computed, "cells_reused": results.cells_reused}
    if results.costs:
        counts["automatic_metadata_seconds"] = {name: round(cost, 4) for name, cost in results.costs.items()}
    text = json.dumps(counts | {"seconds": round(seconds, 2)}, indent=2)
    try:
        (folder / RUN_FILE).write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise CacheError(f"cannot write {folder / RUN_FILE}: {error.strerror or error}") from error


def dataset_name(dataset: Any) -> str:
    """A short name for a dataset: its Hub id, the stem of its file, its info name, or "dataset"."""
    if isinstance(dataset, str | os.PathLike):
        text = os.fspath(dataset)
        path = Path(text)
        if path.exists():
            return path.resolve().name.removesuffix(".gz").rsplit(".", 1)[0]
        return text
    info = getattr(dataset, "info", None)
    return str(getattr(info, "dataset_name", None) or "dataset")


def hub_ids(dataset: Any) -> tuple[str, ...]:
    """The dataset's id on the Hub, or nothing where it is a file, a folder or in memory."""
    return (dataset,) if isinstance(dataset, str) and not Path(dataset).expanduser().exists() else ()
