"""What the project itself puts on the Hub: evaluate modules and the front end as Spaces, readers as models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evidep.errors import SettingError
from evidep.hub.client import Hub, Repo, RepoType
from evidep.hub.content import Content
from evidep.hub.data_files import front_matter
from evidep.hub.errors import MissingRepoError
from evidep.version import __version__

README: Final = "README.md"
REQUIREMENTS: Final = "requirements.txt"


@dataclass(frozen=True, slots=True)
class Publication:
    """A repository as it should be.

    Attributes:
        name: ORG/NAME.
        kind: Space or model.
        sdk: What a Space runs on; None for a model.
        files: Path in the repository to content.
    """

    name: str
    kind: RepoType
    sdk: str | None
    files: Mapping[str, Content]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What publishing means, or meant.

    Attributes:
        publication: What is published.
        created: Whether the repository is (or was) not there yet.
        changed: Paths that are new or different.
        unchanged: Paths that are already as they should be.
        foreign: Paths in the repository that are none of ours; they are left alone.
        sent: Whether it was sent.
    """

    publication: Publication
    created: bool
    changed: tuple[str, ...]
    unchanged: tuple[str, ...]
    foreign: tuple[str, ...]
    sent: bool


def space(folder: Path, namespace: str) -> Publication:
    """A folder with README.md (front matter with sdk), app and requirements as a Space of the folder's name.

    Raises:
        SettingError: No README, no sdk in it, or requirements that do not pin this release of evidep.
    """
    files = dict(_files(folder))
    sdk = front_matter(_content(files, README, folder)).get("sdk")
    if not isinstance(sdk, str):
        raise SettingError(f"{folder / README} has no sdk in its front matter, so it is no Space; add sdk: gradio")
    _check_pin(_content(files, REQUIREMENTS, folder), folder / REQUIREMENTS)
    return Publication(f"{namespace}/{folder.name}", "space", sdk, files)


def reader_model(folder: Path, namespace: str, trained: Path | None = None) -> Publication:
    """A reader's recipe and model card, with the weights that `readers/train.py` wrote, as a model repository.

    Args:
        folder: readers/NAME with its recipe.
        namespace: User or organisation.
        trained: Folder that readers/train.py wrote. Its card goes before one in `folder`.

    Raises:
        SettingError: No recipe, or no model card in either folder.
    """
    files = dict(_files(folder))
    _content(files, "recipe.yaml", folder)
    if trained is not None:
        if not trained.is_dir():
            raise SettingError(f"{trained} is no folder; readers/train.py --out writes one")
        files |= dict(_files(trained))
    if README not in files:
        raise SettingError(
            f"the reader {folder.name} has no model card: train it (readers/train.py --out DIR/{folder.name}) and name "
            "DIR with --trained"
        )
    return Publication(f"{namespace}/evidep-{folder.name.replace('_', '-')}", "model", None, files)


def publish(publication: Publication, *, send: bool = False, hub: Hub | None = None) -> Outcome:
    """Compare a repository with what it should be, and create or update it where that is asked for.

    What is already right is not sent again, and files of others in the repository stay.

    Args:
        publication: What should be there.
        send: False only compares.
        hub: Connection to use.

    Raises:
        HubError: No token, no right, two changes by others in a row, or a Hub that stays unreachable.
        SettingError: This is no released version.
    """
    hub = Hub() if hub is None else hub
    check_release(__version__)
    if send:
        hub.user(f"{publication.kind} {publication.name}", writes=True)
    hub.refuse_token(publication.files)
    created = False

    def once() -> Outcome:
        nonlocal created
        try:
            repo = hub.read(publication.name, publication.kind)
        except MissingRepoError:
            if not send:
                return _outcome(publication, None, set(), created=True, sent=False)
            hub.create(publication.name, publication.kind, publication.sdk)
            created, repo = True, hub.read(publication.name, publication.kind)
        same = hub.same(repo, publication.files)
        changed = {path: content for path, content in publication.files.items() if path not in same}
        if changed and send:
            hub.commit(repo, changed, title=f"evidep {__version__}", description="")
        return _outcome(publication, repo, same, created=created, sent=send and bool(changed))

    return hub.persistently(once)


def check_release(version: str) -> None:
    """Make sure that a version is one that users can install by its number.

    Raises:
        SettingError: A development, pre- or local version.
    """
    from packaging.version import Version

    found = Version(version)
    if found.is_prerelease or found.local:
        raise SettingError(f"evidep {version} is no release: what is published pins a version that people can install")


def _outcome(publication: Publication, repo: Repo | None, same: set[str], *, created: bool, sent: bool) -> Outcome:
    ours = set(publication.files)
    there = set() if repo is None else set(repo.files)
    return Outcome(
        publication,
        created,
        tuple(sorted(ours - same)),
        tuple(sorted(same)),
        tuple(sorted(there - ours - {".gitattributes"})),
        sent,
    )


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    """Path in the repository and file, of everything but caches and hidden files."""
    if not folder.is_dir():
        raise SettingError(f"{folder} is no folder")
    for file in sorted(folder.rglob("*")):
        path = file.relative_to(folder)
        if file.is_file() and not any(part.startswith(".") or part == "__pycache__" for part in path.parts):
            yield path.as_posix(), file


def _content(files: Mapping[str, Content], path: str, folder: Path) -> bytes:
    content = files.get(path)
    if content is None:
        raise SettingError(f"{folder} has no {path}")
    return content if isinstance(content, bytes) else content.read_bytes()


def _check_pin(requirements: bytes, file: Path) -> None:
    from packaging.requirements import InvalidRequirement, Requirement

    wanted = f"=={__version__}"
    for line in requirements.decode("utf-8").splitlines():
        text = line.partition("#")[0].strip()
        if not text:
            continue
        try:
            requirement = Requirement(text)
        except InvalidRequirement as error:
            raise SettingError(f"{file}: {text!r} is no requirement ({error})") from error
        if requirement.name == "evidep":
            if str(requirement.specifier) == wanted:
                return
            raise SettingError(f"{file} asks for {text}; it must pin this release: evidep{wanted}")
    raise SettingError(f"{file} does not ask for evidep; add evidep{wanted}")
