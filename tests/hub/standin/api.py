"""What the client asks about repositories: who am I, create, info, tree, checksums, pull requests, cards."""

from __future__ import annotations

from typing import Any

import yaml
from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse
from hub.standin.store import Problem, Pull, Repo, Store, User, blob_id, is_lfs

KINDS = {"model": "models", "dataset": "datasets", "space": "spaces"}


def routes(store: Store) -> APIRouter:
    router = APIRouter()

    def caller(request: Request) -> User | None:
        return store.user(request.headers.get("authorization"))

    @router.get("/api/whoami-v2")
    def whoami(request: Request) -> dict[str, Any]:
        user = caller(request)
        if user is None:
            raise Problem(401, "", "Invalid username or password.")
        return {"type": "user", "name": user.name, "orgs": [], "auth": {"accessToken": {"role": user.role}}}

    @router.post("/api/repos/create")
    async def create(request: Request) -> dict[str, Any]:
        user, asked = caller(request), await request.json()
        if user is None or user.role != "write":
            raise Problem(403 if user else 401, "", "You don't have the rights to create a repo")
        namespace = asked.get("organization") or user.name
        if namespace != user.name:
            raise Problem(403, "", f"You don't have the rights to create a repo under the namespace {namespace!r}")
        kind, name = KINDS[asked.get("type") or "model"], f"{namespace}/{asked['name']}"
        if (kind, name) in store.repos:
            raise Problem(409, "", "You already created this repo")
        made = store.add_repo(kind, name, {}, sdk=asked.get("sdk"))
        return {"url": made.address(str(request.base_url)), "name": name, "id": name}

    @router.post("/api/validate-yaml")
    async def validate(request: Request) -> JSONResponse:
        asked = await request.json()
        text = asked["content"].removeprefix("\ufeff").replace("\r\n", "\n")
        errors = []
        try:
            head = yaml.safe_load(text.split("---\n")[1]) if text.startswith("---\n") else {}
            if asked["repoType"] == "space" and not (head or {}).get("sdk"):
                errors = ['"sdk" is required']
        except (yaml.YAMLError, IndexError) as error:
            errors = [str(error)]
        answer = {"errors": [{"message": message} for message in errors], "warnings": []}
        return JSONResponse(answer, 400 if errors else 200)

    @router.get("/api/{kind}/{space}/{name}/tree/{revision}")
    @router.get("/api/{kind}/{space}/{name}/tree/{revision}/{path:path}")
    def tree(
        request: Request, kind: str, space: str, name: str, revision: str, path: str = "", recursive: bool = False
    ) -> list[dict[str, Any]]:
        files = store.readable(kind, f"{space}/{name}", caller(request)).files(unquoted(revision))
        start = f"{path.strip('/')}/" if path.strip("/") else ""
        found: dict[str, dict[str, Any]] = {}
        for file, content in sorted(files.items()):
            if not file.startswith(start):
                continue
            folder, nested, _ = file.removeprefix(start).partition("/")
            if nested and not recursive:
                found[start + folder] = {"type": "directory", "oid": "0" * 40, "size": 0, "path": start + folder}
            else:
                found[file] = described(file, content)
        if start and not found:
            raise Problem(404, "EntryNotFound", f"{path} does not exist on {revision!r}")
        return list(found.values())

    @router.post("/api/{kind}/{space}/{name}/paths-info/{revision:path}")
    async def paths_info(request: Request, kind: str, space: str, name: str, revision: str) -> list[dict[str, Any]]:
        files = store.readable(kind, f"{space}/{name}", caller(request)).files(revision)
        if "json" in request.headers.get("content-type", ""):
            paths = (await request.json())["paths"]
        else:
            paths = (await request.form()).getlist("paths")
        return [described(path, files[path]) for path in paths if path in files]

    @router.get("/api/{kind}/{space}/{name}/refs")
    def refs(request: Request, kind: str, space: str, name: str) -> dict[str, Any]:
        repo = store.readable(kind, f"{space}/{name}", caller(request))
        main = {"name": "main", "ref": "refs/heads/main", "targetCommit": repo.refs["main"]}
        return {"branches": [main], "tags": [], "converts": []}

    @router.get("/api/{kind}/{space}/{name}/discussions")
    def discussions(
        request: Request, kind: str, space: str, name: str, p: int = 0, author: str = "", status: str = "all"
    ) -> dict[str, Any]:
        repo = store.readable(kind, f"{space}/{name}", caller(request))
        found = [
            discussion(pull)
            for pull in reversed(repo.pulls)
            if author in ("", pull.author) and status in ("all", pull.status)
        ]
        return {"discussions": found if p == 0 else [], "count": len(found), "start": 0}

    @router.get("/api/{kind}/{space}/{name}")
    @router.get("/api/{kind}/{space}/{name}/revision/{revision:path}")
    def info(request: Request, kind: str, space: str, name: str, revision: str = "main") -> dict[str, Any]:
        repo = store.readable(kind, f"{space}/{name}", caller(request))
        return information(repo, revision)

    return router


def unquoted(revision: str) -> str:
    return revision.replace("%2F", "/")


def described(path: str, content: bytes) -> dict[str, Any]:
    """A file in a listing; a large one with its LFS checksum."""
    import hashlib

    entry: dict[str, Any] = {"type": "file", "oid": blob_id(content), "size": len(content), "path": path}
    if is_lfs(path):
        entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
    return entry


def discussion(pull: Pull) -> dict[str, Any]:
    return {
        "num": pull.number,
        "title": pull.title,
        "status": pull.status,
        "author": {"name": pull.author},
        "isPullRequest": True,
        "createdAt": "2026-01-01T00:00:00.000Z",
        "repo": {"name": "", "type": ""},
    }


def information(repo: Repo, revision: str) -> dict[str, Any]:
    commit = repo.at(unquoted(revision))
    return {
        "_id": "0" * 24,
        "id": repo.name,
        "modelId": repo.name,
        "author": repo.name.split("/")[0],
        "sha": commit.id,
        "private": repo.private,
        "gated": repo.allowed is not None,
        "disabled": repo.disabled,
        "downloads": 0,
        "likes": 0,
        "tags": [],
        "sdk": repo.sdk,
        "siblings": [{"rfilename": path} for path in commit.files],
    }
