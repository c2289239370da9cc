"""What the Hub answers, as one line that says what to do. Tokens never enter a message."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from evidep.errors import EvidepError

HIDDEN: Final = "***"
_TOKEN: Final = re.compile(r"\b(hf|api_org|hf_oauth)_[A-Za-z0-9_.-]{8,}")
_MOST: Final = 300


class HubError(EvidepError):
    """The Hub refused, could not be reached, or answered something that makes no sense."""


class TransientHubError(HubError):
    """The Hub failed in a way that may be over in a moment (server error, time-out, rate limit)."""


class MissingRepoError(HubError):
    """The repository does not exist, or this token may not see it."""


class StaleParentError(HubError):
    """Somebody else committed between reading and sending."""


def scrub(text: object, token: str | None = None) -> str:
    """The text on one line, without the token and without anything that looks like one."""
    line = " ".join(str(text).split())
    if token:
        line = line.replace(token, HIDDEN)
    line = _TOKEN.sub(HIDDEN, line)
    return line if len(line) <= _MOST else line[: _MOST - 1] + "…"


@contextmanager
def hub_errors(repo: str, token: str | None) -> Iterator[None]:
    """Turn everything that the Hub's client raises into a `HubError` about a repository.

    The original exception is dropped on purpose: its request holds the token.

    Args:
        repo: What the call is about, as people write it ("dataset org/name").
        token: The token in use, to be kept out of messages.
    """
    try:
        yield
    except HubError:
        raise
    except Exception as error:
        translated = _translated(error, repo, token)
        if translated is None:
            raise
        raise translated from None


def _translated(error: Exception, repo: str, token: str | None) -> HubError | None:
    from huggingface_hub import errors as hub

    root = error
    if isinstance(error, hub.LocalEntryNotFoundError) and isinstance(error.__cause__, Exception):
        root = error.__cause__  # a failed look-up of a file is reported as "not in the local cache"
    if isinstance(root, hub.OfflineModeIsEnabled):
        return HubError(f"{repo}: HF_HUB_OFFLINE is set, so nothing is read or sent; unset it")
    if isinstance(root, hub.LocalTokenNotFoundError):
        return HubError(no_token(repo))
    if isinstance(root, hub.HFValidationError):
        return HubError(f"{repo}: no name of a repository on the Hub ({scrub(root, token)}); write it as ORG/NAME")
    if isinstance(root, hub.HfHubHTTPError):
        return _http(root, repo, token)
    if isinstance(root, TimeoutError) or _named(root, "TimeoutException"):
        return TransientHubError(f"{repo}: the Hub did not answer in time; try again later, or give it longer")
    if isinstance(root, hub.LocalEntryNotFoundError | ConnectionError) or _named(root, "HTTPError"):
        return TransientHubError(f"{repo}: the Hub cannot be reached ({scrub(root, token)}); check the network")
    if isinstance(root, json.JSONDecodeError | KeyError):
        return TransientHubError(
            f"{repo}: the answer is none that the Hub gives; is a proxy in between? try again later"
        )
    if isinstance(root, ValueError) and "metadata" in str(root).lower():
        return HubError(f"{repo}: the Hub refuses the card's metadata ({scrub(root, token)}); repair its YAML first")
    return None


def _named(error: Exception, name: str) -> bool:
    """Whether a class of the HTTP library is among the error's; which library that is depends on huggingface_hub."""
    return any(base.__name__ == name for base in type(error).__mro__)


def no_token(repo: str) -> str:
    """What to say where a token is needed and none is there."""
    return f"{repo}: no Hugging Face token was found; run `hf auth login` or set HF_TOKEN"


def _http(error: Exception, repo: str, token: str | None) -> HubError:
    from huggingface_hub import errors as hub

    assert isinstance(error, hub.HfHubHTTPError)
    status = error.response.status_code
    told = scrub(error.server_message or "", token)
    said = f" ({told})" if told else ""
    if isinstance(error, hub.GatedRepoError):
        return HubError(f"{repo} is gated and this token has no access{said}; ask for it on the dataset's page")
    if isinstance(error, hub.DisabledRepoError):
        return HubError(f"{repo} has been disabled{said}; nothing can be read or sent")
    if isinstance(error, hub.RevisionNotFoundError):
        return HubError(f"{repo}: no such revision{said}")
    if status == 401 and token is not None and not isinstance(error, hub.RepositoryNotFoundError):
        return HubError(f"{repo}: the token was not accepted{said}; log in again with `hf auth login`")
    if isinstance(error, hub.RepositoryNotFoundError):
        why = "or it is private and this token may not see it" if token else "or it is private and no token is set"
        return MissingRepoError(f"{repo} does not exist, {why}; check the name")
    if status in (401, 403):
        return HubError(f"{repo}: this token has no right to do that{said}; use one that may write there")
    if status in (409, 412):
        return StaleParentError(
            f"{repo} was changed by somebody else in the meantime, twice{said}; run the command again"
        )
    if status == 429:
        return TransientHubError(f"{repo}: too many requests{said}; try again later")
    if status == 408 or status >= 500:
        return TransientHubError(f"{repo}: the Hub failed with status {status}{said}; try again later")
    return HubError(f"{repo}: the Hub answered {status}{said}")
