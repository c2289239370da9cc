"""Fine-tune a reader on one or many processes and save it with its model card.

One process:    python readers/train.py --reader minilm --data train_and_test.jsonl --out my-reader
Two CPU ranks:  ACCELERATE_USE_CPU=true torchrun --nproc_per_node 2 readers/train.py ...
GPUs:           accelerate launch --config_file readers/configs/many_gpus.yaml readers/train.py ...

With --workdir a run that was killed goes on from its last checkpoint when the same command is given again.
"""

from __future__ import annotations

import argparse
import json
import logging
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evidep.errors import EvidepError, PacketError, ReaderError, SettingError

if TYPE_CHECKING:
    from evidep.readers.saved import Fitted


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    which = made.add_mutually_exclusive_group()
    which.add_argument("--reader", default="minilm", help="registry name, with settings if wanted: minilm:epochs=2")
    which.add_argument("--recipe", type=Path, help="a YAML file of settings instead of a registry name")
    made.add_argument("--data", required=True, help="Hub id, folder or file with the items")
    made.add_argument("--train", help="other data to fit on; by default the train split of --data")
    made.add_argument("--split", help="split to evaluate on")
    made.add_argument("--train-split", help="split to fit on")
    for role in ("query", "evidence", "label", "group"):
        made.add_argument(f"--{role}", help=f"column of the {role}, where its name does not say so")
    made.add_argument("--metadata", nargs="*", help="metadata columns")
    made.add_argument("--seed", type=int, default=0)
    made.add_argument("--out", type=Path, required=True, help="folder for the model and its card")
    made.add_argument("--workdir", type=Path, help="folder for checkpoints, shared by all hosts")
    evaluation = made.add_mutually_exclusive_group()
    evaluation.add_argument("--packet", type=Path, help="packet.json of an audit of this reader, for the card")
    evaluation.add_argument("--audit-k", type=int, help="audit the fitted weights with so many shuffles, for the card")
    made.add_argument("--data-name", help="what the card calls the evaluation data")
    made.add_argument("--train-name", help="what the card calls the training data")
    made.add_argument("--train-licence", help="licence of the training data, for the card")
    return made


def main(arguments: list[str] | None = None) -> int:
    """Run the command; 0, or 2 after one line on what to change."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    options = parser().parse_args(arguments)
    try:
        run(options)
    except EvidepError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def run(options: argparse.Namespace) -> None:
    """Fit, save and describe one reader."""
    from evidep.data.loading import load_audit_data
    from evidep.readers.batching import make_accelerator
    from evidep.readers.saved import CARD, Fitted, save_target
    from evidep.readers.transformer import TransformerReader
    from evidep.report.model_card import model_card

    if options.seed < 0:
        raise SettingError(f"--seed: expected a whole number of at least 0, got {options.seed}")
    out = save_target(options.out)  # refused before the fit, not after it
    if options.workdir is not None and options.workdir.expanduser().resolve().is_relative_to(out):
        raise SettingError(f"--workdir {options.workdir}: lies in --out {options.out}, which is replaced; name another")
    reader = _reader(options)
    packet = _packet(options.packet)
    if options.audit_k is not None:
        from evidep.audit.plan import AuditSettings

        AuditSettings(k=options.audit_k)  # a K that cannot work is refused before the fit, not after it
    named = {role: getattr(options, role) for role in ("query", "evidence", "label", "group", "metadata")}
    source = {
        "train": options.train,
        "split": options.split,
        "train_split": options.train_split,
        "roles": {role: column for role, column in named.items() if column},
    }
    data = load_audit_data(options.data, **source)
    if data.train is None:
        raise SettingError(f"--data {options.data} has no train split; give --train or --train-split")
    if packet is not None:
        _check_same_fit(options, packet, Fitted(reader.fingerprint, data.train.fingerprint, options.seed))
    reader.workdir = options.workdir
    reader.fit(data.train, seed=options.seed)
    main_process = make_accelerator(reader.precision).is_main_process
    if main_process:
        reader.save(out)
    make_accelerator(reader.precision).wait_for_everyone()
    if options.audit_k is not None:
        from evidep.audit.api import audit

        reader = TransformerReader.load(out)
        name = options.data_name
        document = audit(options.data, readers=[reader], k=options.audit_k, seed=options.seed, name=name, **source)
        packet = document.to_dict()
    if main_process:
        card = model_card(reader, packet, **_named_train(options))
        (out / CARD).write_text(card, encoding="utf-8")
        print(json.dumps({"out": str(options.out), **reader.report.as_dict()}, indent=2))


def _named_train(options: argparse.Namespace) -> dict[str, Any]:
    """What the card says of the training data: its name, its licence, and its id where it is from the Hub."""
    from evidep.audit.api import dataset_name, hub_ids

    source = options.train or options.data
    name = options.train_name or (options.data_name if options.train is None else None) or dataset_name(source)
    return {"train_name": name, "train_licence": options.train_licence, "datasets": hub_ids(source)}


def _check_same_fit(options: argparse.Namespace, packet: Mapping[str, Any], fitted: Fitted) -> None:
    from evidep.report.model_card import audited_fit

    if not audited_fit(packet, fitted):
        held = ", ".join(f"{row['reader']} with seed {row['seed']}" for row in packet["readers"])
        raise PacketError(
            f"--packet {options.packet}: holds no audit of this reader, training data and seed {options.seed} (but "
            f"{held}, fitted on {packet['data']['train_fingerprint'] or 'folds'}); audit the same, or give --audit-k"
        )


def _reader(options: argparse.Namespace) -> Any:
    from evidep.readers.registry import make_reader
    from evidep.readers.transformer import TransformerReader

    if options.recipe is None:
        reader = make_reader(options.reader)
    else:
        import yaml

        try:
            settings = yaml.safe_load(options.recipe.read_text(encoding="utf-8"))
        except (OSError, UnicodeError, yaml.YAMLError) as error:
            raise SettingError(f"--recipe {options.recipe}: cannot be read ({error.__class__.__name__})") from error
        if not isinstance(settings, dict) or not all(isinstance(key, str) for key in settings):
            raise SettingError(f"--recipe {options.recipe}: expected a mapping of settings (name: value)")
        reader = TransformerReader(**{"name": options.recipe.resolve().parent.name or options.recipe.stem, **settings})
    if not isinstance(reader, TransformerReader) or not reader.trainable:
        raise ReaderError(
            f"reader {reader.info.name} is not fine-tuned, so there is nothing to train; give minilm or another "
            "of the fine-tuned readers in docs/readers.md"
        )
    return reader


def _packet(path: Path | None) -> dict[str, Any] | None:
    from evidep.audit.packet import AuditPacket

    return None if path is None else AuditPacket.load(path).to_dict()


if __name__ == "__main__":
    sys.exit(main())
