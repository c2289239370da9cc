"""What a sentence-transformers folder says of itself, and the stacks of modules that its own package must run."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evidep.errors import ReaderError
from evidep.readers.weights import Weights, first_line, quiet

_POOLINGS: Final = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_cls": "cls",
}


@dataclass(frozen=True, slots=True)
class Pooling:
    """How token vectors become one text vector: mean or first token, then optionally scaled to length 1."""

    mode: str
    normalise: bool
    max_length: int | None


def pool(hidden: Any, mask: Any, pooling: Pooling) -> Any:
    """Text vectors [B, d] of token vectors [B, L, d]; `mask` [B, L] is None where nothing is padded."""
    import torch

    if pooling.mode == "cls":
        vectors = hidden[:, 0]
    elif mask is None:
        vectors = hidden.mean(dim=1)
    else:
        weight = mask.unsqueeze(-1).to(hidden.dtype)
        vectors = (hidden * weight).sum(dim=1) / weight.sum(dim=1)
    return torch.nn.functional.normalize(vectors, dim=-1) if pooling.normalise else vectors


def read_pooling(weights: Weights) -> Pooling | None:
    """The pooling that a sentence-transformers folder declares; None where the model is more than encoder and pooling.

    Raises:
        ReaderError: A file that describes the modules is damaged, or a module is of another package.
    """
    modules = _read_json(weights, "modules.json", list)
    if modules is None:
        return Pooling("mean", False, None)
    if not all(
        isinstance(m, dict) and isinstance(m.get("type"), str) and isinstance(m.get("path"), str) for m in modules
    ):
        raise ReaderError(
            f"modules.json of {weights.source!r}: expected a list of modules with a type and a path each, got "
            f"{first_line(repr(modules))}"
        )
    for module in modules:
        if not module["type"].startswith("sentence_transformers."):
            raise ReaderError(
                f"modules.json of {weights.source!r}: the module {module['type']!r} is code of another package, which "
                "is not run; use an encoder of sentence_transformers modules"
            )
    own = _read_json(weights, "sentence_bert_config.json", dict) or {}
    whole = _read_json(weights, "config_sentence_transformers.json", dict) or {}
    length = own.get("max_seq_length")
    if length is not None and (not isinstance(length, int) or isinstance(length, bool) or length < 1):
        raise ReaderError(
            f"sentence_bert_config.json of {weights.source!r}: expected max_seq_length to be a whole number of at "
            f"least 1, got {length!r}"
        )
    kinds = [module["type"].rsplit(".", 1)[-1] for module in modules]
    plain = kinds in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]) and not modules[0]["path"]
    if not plain or own.get("do_lower_case") or whole.get("default_prompt_name"):
        return None
    config = _read_json(weights, f"{modules[1]['path']}/config.json", dict) or {}
    modes = [name for name, on in config.items() if name.startswith("pooling_mode_") and on is True] or [
        f"pooling_mode_{config.get('pooling_mode', 'mean')}"
    ]
    if len(modes) != 1 or modes[0] not in _POOLINGS:
        return None
    return Pooling(_POOLINGS[modes[0]], kinds[-1] == "Normalize", length)


def load_stack(weights: Weights, device: str) -> Any:
    """A model of the sentence-transformers package, from safetensors only.

    Raises:
        ReaderError: The package is not installed, or files are missing, damaged or pickled.
    """
    if importlib.util.find_spec("sentence_transformers") is None:
        raise ReaderError(
            f"the encoder {weights.source!r} has modules that need the package sentence-transformers, which is not "
            "installed: pip install sentence-transformers"
        )
    from sentence_transformers import SentenceTransformer

    folder = weights.folder or _download(weights)
    pickled = [
        file
        for file in sorted(folder.rglob("*.bin"))
        if file.name.startswith("pytorch_model") and not any(file.parent.glob("*.safetensors"))
    ]
    if pickled:
        raise ReaderError(
            f"the encoder {weights.source!r} keeps {pickled[0].relative_to(folder)} as a pickle, which is not loaded; "
            "save it anew as safetensors with SentenceTransformer.save_pretrained"
        )
    try:
        with quiet():
            return SentenceTransformer(
                str(folder),
                device=device,
                local_files_only=True,
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True},
            ).eval()
    except MemoryError:
        raise
    except Exception as error:  # modules meet damaged files with errors of every kind
        raise ReaderError(f"the modules of {weights.source!r} cannot be loaded: {first_line(error)}") from error


def _download(weights: Weights) -> Path:
    """Folder in the Hub cache with the model's files of exactly the commit that was resolved, pickles left out."""
    from huggingface_hub import snapshot_download

    try:
        with quiet():
            commit = weights.digest.rpartition("@")[2]
            patterns = ["*.json", "*.txt", "*.model", "*.safetensors"]
            return Path(snapshot_download(weights.source, revision=commit, allow_patterns=patterns))
    except (OSError, ValueError) as error:
        raise ReaderError(f"the modules of {weights.source!r} cannot be fetched: {first_line(error)}") from error


def _read_json(weights: Weights, name: str, kind: type) -> Any:
    """The content of a JSON file of the model, None where there is no such file."""
    from transformers.utils import cached_file

    try:
        if weights.folder is not None:
            file = weights.folder / name
            if not file.is_file():
                return None
        else:
            with quiet():
                found = cached_file(
                    weights.source,
                    name,
                    revision=weights.revision,
                    _raise_exceptions_for_missing_entries=False,
                    _raise_exceptions_for_connection_errors=False,
                )
            if found is None:
                return None
            file = Path(found)
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReaderError(f"{name} of {weights.source!r} cannot be read: {first_line(error)}") from error
    if not isinstance(content, kind):
        raise ReaderError(
            f"{name} of {weights.source!r}: expected a JSON {'array' if kind is list else 'object'}, got "
            f"{first_line(repr(content))}"
        )
    return content
