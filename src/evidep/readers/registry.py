"""Readers by name. Nothing heavy is imported before a reader is asked for."""

from __future__ import annotations

import copy
import difflib
import importlib
import inspect
import re
from collections.abc import Callable
from importlib.resources import files
from typing import Any, Final

from evidep.errors import MissingExtraError, ReaderError, SettingError
from evidep.readers.protocol import Reader

Factory = Callable[..., Reader]
"""Keyword settings -> an unfitted reader. A class is one."""

_BUILT_IN: Final = {
    "majority": "evidep.readers.baseline:MajorityReader",
    "metadata": "evidep.readers.baseline:MetadataReader",
    "tfidf_lr": "evidep.readers.tfidf:TfidfReader",
    "tfidf_lr_joined": "evidep.readers.tfidf_joined:JoinedTfidfReader",
    "tfidf_lr_overlap": "evidep.readers.tfidf_overlap:TfidfOverlapReader",
    "minilm_lr": "evidep.readers.embedding:EmbeddingReader",
    "minilm": "evidep.readers.transformer:TransformerReader",
    "distilbert": "evidep.readers.transformer:TransformerReader",
    "electra_small": "evidep.readers.transformer:TransformerReader",
    "bert": "evidep.readers.transformer:TransformerReader",
    "scibert": "evidep.readers.transformer:TransformerReader",
    "causal_lm": "evidep.readers.causal_lm:CausalLMReader",
}
_HUB_PREFIX: Final = "hf:"
_FIRST_SETTING: Final = re.compile(r":\s*[A-Za-z_]\w*\s*=")
_TRANSFORMERS_EXTRA: Final = ("accelerate", "safetensors", "tokenizers", "torch", "transformers")
_REGISTERED: dict[str, Factory] = {}


def reader_names() -> tuple[str, ...]:
    """Names that `make_reader` knows: the built-in readers from weak to strong, then the registered ones."""
    return (*_BUILT_IN, *_REGISTERED)


def register_reader(name: str, factory: Factory, *, replace: bool = False) -> None:
    """Make a reader of your own known by a name, for this process.

    Args:
        name: Letters, digits, `_`, `-` and `.`.
        factory: Takes settings as keywords and returns an unfitted reader; called anew for every fit.
        replace: Allow a registered name to be given again. Built-in names cannot be taken.

    Raises:
        SettingError: The name is taken or not of that form, or the factory cannot be called.
    """
    if (
        not isinstance(name, str)
        or not name
        or not name.replace("_", "a").replace("-", "a").replace(".", "a").isalnum()
    ):
        raise SettingError(f"name: expected letters, digits, '_', '-' and '.', got {name!r}")
    if name in _BUILT_IN or (name in _REGISTERED and not replace):
        hint = "choose another" if name in _BUILT_IN else "choose another, or pass replace=True"
        raise SettingError(f"name: a reader {name!r} exists already; {hint}")
    if not callable(factory):
        raise SettingError(f"factory: expected a class or function that returns a reader, got {factory!r}")
    _REGISTERED[name] = factory


def make_reader(spec: str | Reader, **settings: Any) -> Reader:
    """Build an unfitted reader.

    Args:
        spec: One of
            - a name from `reader_names()`, with settings if wanted: `tfidf_lr:C=0.3,min_df=1`;
            - `module:object`, an importable class, function or reader object: `my_readers:RuleReader`;
            - `hf:ID` or `hf:PATH`, a sequence classification or encoder model to fine-tune, from the Hub or a folder;
            - an object with the reader protocol. A trainable one is copied, so that several fits do not disturb each
              other.
        settings: Settings of the reader; they go before those in `spec`, and those before the recipe's.

    Raises:
        ReaderError: The reader is unknown, cannot be imported or copied, or is no reader.
        SettingError: A setting is unknown to the reader or out of its range.
        MissingExtraError: The reader needs packages that are not installed.
    """
    if not isinstance(spec, str):
        if settings:
            raise SettingError(
                f"settings {', '.join(settings)} were given with a reader object; set them when building it"
            )
        return _own(spec, repr(spec))
    name, written = parse_spec(spec)
    settings = {**written, **settings}
    if name.startswith(_HUB_PREFIX):
        model = name.removeprefix(_HUB_PREFIX)
        if not model:
            raise ReaderError(
                "hf: names no model; write hf:ID or hf:PATH, for example hf:google/electra-small-discriminator"
            )
        return _build(name, _BUILT_IN["bert"], {"name": name, "model": model, **settings})
    if name in _REGISTERED:
        return _call(name, _REGISTERED[name], settings)
    if name in _BUILT_IN:
        return _build(name, _BUILT_IN[name], {"name": name, **_recipe(name), **settings})
    if ":" in name:
        found = _load(name, name)
        if callable(found) and not _is_reader(found):
            return _call(name, found, settings)
        if settings:
            raise SettingError(f"settings {', '.join(settings)} were given, but {name} is a reader object, not a class")
        return _own(found, name)
    close = difflib.get_close_matches(name, reader_names(), 1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise ReaderError(
        f"unknown reader {name!r}: {hint}Known are {', '.join(reader_names())}, module:object and hf:MODEL"
    )


def parse_spec(spec: str) -> tuple[str, dict[str, Any]]:
    """Name and settings of `name:key=value,key=value`; the settings begin at the first `:key=`.

    Values are read as YAML: numbers, true, null, [lists], "quoted texts", where backslash n is a line break. Keys and
    values of a {mapping} are texts as they stand. A text that has commas, brackets or braces needs quotes around it.

    Raises:
        SettingError: A setting has no key or value, cannot be read, or is given twice.
    """
    import yaml

    spec = spec.strip()
    start = _FIRST_SETTING.search(spec, len(_HUB_PREFIX) if spec.startswith(_HUB_PREFIX) else 0)
    name, colon, tail = (spec[: start.start()], ":", spec[start.start() + 1 :]) if start else spec.partition(":")
    if not start and not (colon and name in reader_names()):
        return spec, {}
    settings: dict[str, Any] = {}
    for part in _split(tail):
        key, equals, value = (text.strip() for text in part.partition("="))
        if not key.isidentifier() or not equals or not value:
            raise SettingError(f"reader {spec!r}: expected key=value after the colon, got {part.strip()!r}")
        if key in settings:
            raise SettingError(f"reader {spec!r}: {key} is given twice; leave one of them out")
        try:
            settings[key] = _value(value)
        except yaml.YAMLError:
            raise SettingError(
                f"reader {spec!r}: cannot read the value of {key}: {value!r}; close its brackets or quote it"
            ) from None
    return name.strip(), settings


def split_specs(text: str) -> tuple[str, ...]:
    """The specs in a comma-separated list: `majority,tfidf_lr:C=1,min_df=3,minilm_lr` names three readers."""
    specs: list[str] = []
    for part in _split(text):
        if specs and "=" in part and ":" not in part.split("=")[0]:
            specs[-1] += f",{part.strip()}"
        elif part.strip():
            specs.append(part.strip())
    return tuple(specs)


def _split(text: str) -> list[str]:
    """The text split at commas that are outside [...], {...} and quotes; a quote opens only where a value begins."""
    pieces = re.findall(r"""(?<=[=:,\[{])\s*(?:"(?:\\.|[^"\\])*"|'(?:''|[^'])*')|.""", text, re.DOTALL)
    parts, depth = [""], 0
    for piece in pieces:  # one character, or a whole quoted text
        depth += (piece in "[{") - (piece in "]}")
        if piece == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += piece
    return parts


def _value(text: str) -> Any:
    """A setting's value; a plain text that YAML would take for a mapping (`a: b`) stays a text."""
    import yaml

    if text.startswith("{"):
        return yaml.load(text, Loader=yaml.BaseLoader)  # builds texts only: a label no is not false
    value = yaml.safe_load(text)
    return text if isinstance(value, dict) else _number(value)


def _recipe(name: str) -> dict[str, Any]:
    """Settings that the reader is published with (readers/NAME/recipe.yaml), {} where it has no recipe."""
    import yaml

    recipe = files("evidep.readers_hub") / name / "recipe.yaml"
    if not recipe.is_file():
        return {}
    settings = yaml.safe_load(recipe.read_text(encoding="utf-8"))
    if not isinstance(settings, dict):
        raise ReaderError(f"{recipe}: expected a mapping of settings, got {type(settings).__name__}")
    return {key: _number(value) for key, value in settings.items()}


def _number(value: Any) -> Any:
    """A text like 1e-3, which YAML 1.1 does not take for a number, as a number."""
    if not isinstance(value, str) or not value[:1].isdigit():
        return value
    try:
        return float(value)
    except ValueError:
        return value


def _build(name: str, path: str, settings: dict[str, Any]) -> Reader:
    return _call(name, _load(name, path), settings)


def _load(name: str, path: str) -> Any:
    """The object at `module:attribute`."""
    module_name, _, attribute = path.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing in _TRANSFORMERS_EXTRA:
            raise MissingExtraError(missing, "transformers", f"the reader {name!r}") from error
        raise ReaderError(
            f"reader {name!r}: cannot import {module_name!r} (no module {error.name!r}); it must be installed, or in a "
            f"folder of PYTHONPATH"
        ) from error
    found = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise ReaderError(f"reader {name!r}: {module_name} has no {attribute!r}")
        found = getattr(found, part)
    return found


def _call(name: str, factory: Factory, settings: dict[str, Any]) -> Reader:
    target = factory.__init__ if inspect.isclass(factory) else factory
    parameters = inspect.signature(target).parameters.values()
    if not any(p.kind is p.VAR_KEYWORD for p in parameters):
        known = [p.name for p in parameters if p.name != "self" and p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
        for key in settings:
            if key not in known:
                close = difflib.get_close_matches(key, known, 1)
                hint = f"did you mean {close[0]!r}? " if close else ""
                raise SettingError(f"reader {name}: unknown setting {key!r}: {hint}It has {', '.join(known) or 'none'}")
    return _checked(factory(**settings), name)


def _is_reader(thing: Any) -> bool:
    return isinstance(thing, Reader) and not inspect.isclass(thing)


def _checked(thing: Any, name: str) -> Reader:
    if not _is_reader(thing):
        lacking = [
            member for member in ("info", "fingerprint", "fit", "encode", "scores") if not hasattr(thing, member)
        ]
        what = f"lacks {', '.join(lacking)}" if lacking else "is a class, not an object"
        raise ReaderError(
            f"reader {name}: {type(thing).__name__} {what}; a reader has info, fingerprint, fit, encode and scores "
            "(evidep.readers.protocol.Reader), or is made by evidep.from_callable"
        )
    if not isinstance(thing.info.name, str) or not thing.info.name:
        raise SettingError(f"reader {name}: expected a text as its name, got {thing.info.name!r}; put quotes around it")
    return thing  # type: ignore[no-any-return]


def _own(thing: Any, name: str) -> Reader:
    """The reader itself where it cannot be trained, else a copy."""
    reader = _checked(thing, name)
    if not getattr(reader, "trainable", True):
        return reader
    try:
        return copy.deepcopy(reader)
    except (TypeError, copy.Error, RecursionError) as error:
        raise ReaderError(
            f"reader {reader.info.name}: cannot be copied ({error}), and every fit needs its own reader; register a "
            "function that builds it (evidep.register_reader), or set trainable = False if fit does nothing"
        ) from error
