"""The Hub's own client, with a time limit, a token that stays out of sight, and work that is tried again."""

from __future__ import annotations

import logging
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from evidep.errors import SettingError
from evidep.hub.content import Content, blob_id, contains, sha256
from evidep.hub.errors import HubError, StaleParentError, TransientHubError, hub_errors, no_token
from evidep.version import __version__

if TYPE_CHECKING:
    from huggingface_hub import CommitInfo, HfApi

RepoType = Literal["dataset", "model", "space"]
Answer = TypeVar("Answer")
TIMEOUT: Final = 60.0
"""Seconds that the Hub may take for one answer. (The client of huggingface_hub waits for ever.)"""
WAITS: Final = (1.0, 3.0, 9.0)
"""Seconds before the second, third and fourth try."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Repo:
    """A repository as it was read.

    Attributes:
        name: ORG/NAME.
        kind: Dataset, model or Space.
        revision: Branch or pull request that was read.
        head: Commit that it pointed to.
        files: Paths of all files.
    """

    name: str
    kind: RepoType
    revision: str
    head: str
    files: tuple[str, ...]


def quiet_unless_watched() -> None:
    """Switch the client's progress bars off for this process, unless a person watches stderr."""
    from huggingface_hub.utils import disable_progress_bars  # type: ignore[attr-defined]

    if not sys.stderr.isatty():
        disable_progress_bars()


class Hub:
    """A connection to the Hub. Every failure is a `HubError` in one line.

    The endpoint is HF_ENDPOINT or the public Hub; the token is the one of `hf auth login` or HF_TOKEN. It is read once
    and handed to the client alone.

    Args:
        timeout: Seconds that the Hub may take for one answer.
        waits: Seconds before each further try after a transient failure.
    """

    def __init__(self, timeout: float = TIMEOUT, waits: tuple[float, ...] = WAITS) -> None:
        from huggingface_hub import HfApi, get_token

        if not timeout > 0:
            raise SettingError(f"timeout: expected a number of seconds above 0, got {timeout}")
        self._timeout, self._waits = timeout, waits
        self._token = get_token()
        self._api: HfApi = HfApi(
            endpoint=os.environ.get("HF_ENDPOINT"),
            token=self._token or False,
            library_name="evidep",
            library_version=__version__,
        )

    def __repr__(self) -> str:
        return f"Hub({self._api.endpoint})"

    @property
    def has_token(self) -> bool:
        """Whether there is a token."""
        return self._token is not None

    def user(self, purpose: str, *, writes: bool) -> str:
        """Name of the token's user.

        Args:
            purpose: What the token is needed for, for messages.
            writes: Whether something is to be sent.

        Raises:
            HubError: No token, one that is not accepted, or one that may only read where it has to write.
        """
        if self._token is None:
            raise HubError(no_token(purpose))
        with self._calling(purpose):
            answer = self._api.whoami()
        role = ((answer.get("auth") or {}).get("accessToken") or {}).get("role")
        if writes and role == "read":
            where = f"{self._api.endpoint}/settings/tokens"
            raise HubError(f"{purpose}: the token may only read; make one that may write at {where}")
        return str(answer["name"])

    def read(self, name: str, kind: RepoType, revision: str = "main") -> Repo:
        """Head and file names of a repository.

        Raises:
            HubError: It does not exist, is gated, or the Hub fails.
        """
        with self._calling(f"{kind} {name}"):
            info: Any = self._api.repo_info(name, repo_type=kind, revision=revision, timeout=self._timeout)
        return Repo(name, kind, revision, str(info.sha), tuple(file.rfilename for file in info.siblings or ()))

    def download(self, repo: Repo, path: str) -> bytes | None:
        """Content of a file at the commit that was read; None where there is no such file."""
        from huggingface_hub import get_session, hf_hub_url
        from huggingface_hub.utils import build_hf_headers, hf_raise_for_status  # type: ignore[attr-defined]

        if path not in repo.files:
            return None
        url = hf_hub_url(repo.name, path, repo_type=repo.kind, revision=repo.head, endpoint=self._api.endpoint)
        with self._calling(f"{repo.kind} {repo.name}"):
            answer = get_session().get(url, headers=build_hf_headers(token=self._token or False))
            hf_raise_for_status(answer)
            return bytes(answer.content)

    def same(self, repo: Repo, files: Mapping[str, Content]) -> set[str]:
        """Which of the files are already there with the same content, by their checksums."""
        there = [path for path in files if path in repo.files]
        if not there:
            return set()
        with self._calling(f"{repo.kind} {repo.name}"):
            infos: list[Any] = self._api.get_paths_info(repo.name, there, repo_type=repo.kind, revision=repo.head)
        found = set()
        for info in infos:
            content = files[info.path]
            if info.blob_id == blob_id(content) if info.lfs is None else info.lfs.sha256 == sha256(content):
                found.add(info.path)
        return found

    def open_pull_request(self, name: str, kind: RepoType, author: str, title: str) -> int | None:
        """Number of the author's latest open pull request whose title starts with `title`, or None."""
        with self._calling(f"{kind} {name}"):
            found = self._api.get_repo_discussions(
                name, repo_type=kind, author=author, discussion_type="pull_request", discussion_status="open"
            )
            numbers = [
                pull.num
                for pull in found
                if pull.author == author and pull.title.startswith(title) and pull.status == "open"
            ]
        return max(numbers, default=None)

    def pull_request_url(self, dataset: str, number: int) -> str:
        """Address of a pull request on a dataset."""
        return f"{self._api.endpoint}/datasets/{dataset}/discussions/{number}"

    def create(self, name: str, kind: RepoType, sdk: str | None) -> None:
        """Create a repository unless it is there."""
        with self._calling(f"{kind} {name}"):
            self._api.create_repo(name, repo_type=kind, space_sdk=sdk, exist_ok=True)

    def commit(
        self, repo: Repo, files: Mapping[str, Content], *, title: str, description: str, new_pull_request: bool = False
    ) -> CommitInfo:
        """Add or replace files in one commit on top of the commit that was read.

        Raises:
            StaleParentError: The repository has moved on since it was read.
            HubError: No right, a refused file, or a failure of the Hub.
        """
        from huggingface_hub import CommitOperationAdd

        self.refuse_token(files)
        with self._calling(f"{repo.kind} {repo.name}"):
            return self._api.create_commit(
                repo.name,
                [CommitOperationAdd(path, content) for path, content in sorted(files.items())],
                commit_message=title,
                commit_description=description,
                repo_type=repo.kind,
                revision=None if repo.revision == "main" else repo.revision,
                parent_commit=repo.head,
                create_pr=new_pull_request,
            )

    def refuse_token(self, files: Mapping[str, Content]) -> None:
        """Make sure that the token is in none of the files.

        Raises:
            HubError: It is.
        """
        for path, content in files.items():
            if self._token is not None and contains(content, self._token.encode()):
                raise HubError(f"{path} holds your Hugging Face token; remove it before anything is sent")

    def persistently(self, work: Callable[[], Answer]) -> Answer:
        """Do work from the start again after transient failures, and once after somebody else's commit.

        The work must begin by reading: a commit whose answer was lost may have happened, and then nothing is left to
        do. (That is why huggingface_hub itself never repeats a commit.)
        """
        waits, reread = list(self._waits), False
        while True:
            try:
                return work()
            except StaleParentError:
                if reread:
                    raise
                reread = True
                logger.info("the repository changed in the meantime: reading it again")
            except TransientHubError as error:
                if not waits:
                    raise
                wait = waits.pop(0)
                logger.warning("%s (trying again in %g s)", error, wait)
                time.sleep(wait)

    @contextmanager
    def _calling(self, purpose: str) -> Iterator[None]:
        from huggingface_hub import get_session

        with hub_errors(purpose, self._token):
            session = get_session()
            before = session.timeout
            session.timeout = self._timeout
            try:
                yield
            finally:
                session.timeout = before
