"""Repositories in memory: commits, branches, pull requests, who may do what."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

BINARY = (".arrow", ".bin", ".eval", ".gz", ".parquet", ".png", ".safetensors", ".zip")
"""Files that the Hub keeps as LFS objects (it decides by .gitattributes; this is the usual one)."""


class Problem(Exception):
    """An answer that is no success, with the headers by which the client knows it."""

    def __init__(self, status: int, code: str = "", message: str = "") -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message


@dataclass(frozen=True)
class User:
    name: str
    role: str  # "write" or "read"


@dataclass(frozen=True)
class Commit:
    id: str
    files: dict[str, bytes]
    title: str
    description: str = ""


@dataclass
class Pull:
    number: int
    title: str
    author: str
    status: str = "open"

    @property
    def ref(self) -> str:
        return f"refs/pr/{self.number}"


@dataclass
class Repo:
    """One repository. `writers` may commit to main; anybody who can read may open a pull request."""

    kind: str  # "datasets", "models", "spaces"
    name: str
    writers: set[str]
    private: bool = False
    allowed: set[str] | None = None  # users with access to a gated repository; None: not gated
    disabled: bool = False
    takes_pulls: bool = True
    sdk: str | None = None
    commits: dict[str, Commit] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    pulls: list[Pull] = field(default_factory=list)

    def commit(self, ref: str, files: dict[str, bytes], title: str = "", description: str = "") -> Commit:
        parent = self.refs.get(ref, "")
        digest = hashlib.sha1(f"{parent}|{ref}|{title}|{len(self.commits)}".encode())
        for path, content in sorted(files.items()):
            digest.update(path.encode() + b"\0" + content)
        made = Commit(digest.hexdigest(), dict(files), title, description)
        self.commits[made.id] = made
        self.refs[ref] = made.id
        return made

    def at(self, revision: str) -> Commit:
        found = self.commits.get(self.refs.get(revision, revision))
        if found is None:
            raise Problem(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return found

    def files(self, revision: str = "main") -> dict[str, bytes]:
        return self.at(revision).files

    def merge(self, number: int) -> None:
        pull = self.pulls[number - 1]
        pull.status = "merged"
        self.commit("main", self.files(pull.ref), pull.title)

    def address(self, base: str) -> str:
        return f"{base}{'' if self.kind == 'models' else self.kind + '/'}{self.name}"


class Store:
    """All repositories, users by token, LFS objects, and a log of requests."""

    def __init__(self) -> None:
        self.repos: dict[tuple[str, str], Repo] = {}
        self.users: dict[str, User] = {}
        self.lfs: dict[str, bytes] = {}
        self.log: list[str] = []

    def add_user(self, token: str, name: str, role: str = "write") -> None:
        self.users[token] = User(name, role)

    def add_repo(self, kind: str, name: str, files: dict[str, bytes], **more: object) -> Repo:
        repo = Repo(kind, name, {name.split("/")[0]}, **more)  # type: ignore[arg-type]
        repo.commit("main", {".gitattributes": b"", **files}, "initial commit")
        self.repos[kind, name] = repo
        return repo

    def user(self, authorization: str | None) -> User | None:
        """Who is calling; an unknown token is refused, none is a visitor."""
        if authorization is None:
            return None
        user = self.users.get(authorization.removeprefix("Bearer "))
        if user is None:
            raise Problem(401, "", "Invalid credentials in Authorization header")
        return user

    def readable(self, kind: str, name: str, user: User | None) -> Repo:
        """The repository, if this user may read it. What may not be seen does not exist."""
        repo = self.repos.get((kind, name))
        who = None if user is None else user.name
        if repo is None or (repo.private and who not in repo.writers):
            raise Problem(401 if user is None else 404, "RepoNotFound", "Repository not found")
        if repo.disabled:
            raise Problem(403, "", "Access to this resource is disabled.")
        if repo.allowed is not None and who not in repo.allowed | repo.writers:
            message = f"Access to dataset {name} is restricted and you are not in the authorized list."
            raise Problem(401 if user is None else 403, "GatedRepo", message)
        return repo

    def writable(self, kind: str, name: str, user: User | None, *, as_pull: bool, revision: str = "main") -> Repo:
        repo = self.readable(kind, name, user)
        if user is None:
            raise Problem(401, "", "Invalid username or password.")
        if user.role != "write":
            raise Problem(403, "", "You don't have the required permissions to perform this action")
        own_pull = any(pull.ref == revision and pull.author == user.name for pull in repo.pulls)
        if as_pull and not repo.takes_pulls:
            raise Problem(403, "", "Discussions are disabled for this repo")
        if not (as_pull or own_pull or user.name in repo.writers):
            raise Problem(403, "", "Authorization error: you don't have write access")
        return repo

    def writes(self) -> list[str]:
        """Requests that would have changed something (questions asked by POST are none)."""
        harmless = ("/api/validate-yaml", "/preupload/", "/paths-info/", "/info/lfs/objects/batch")
        return [
            line for line in self.log if not line.startswith(("GET ", "HEAD ")) and not any(x in line for x in harmless)
        ]


def blob_id(content: bytes) -> str:
    """Git's id of a file."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def is_lfs(path: str) -> bool:
    return path.endswith(BINARY)


def checksum(path: str, content: bytes) -> str:
    """By what the Hub knows a file's content: SHA-256 of an LFS object, git's id of any other file."""
    return hashlib.sha256(content).hexdigest() if is_lfs(path) else blob_id(content)
