"""Content: how a file is uploaded, committed (to a branch or as a pull request), and downloaded again."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

from fastapi import APIRouter, Request, Response
from hub.standin.api import unquoted
from hub.standin.store import Problem, Pull, Repo, Store, User, blob_id, checksum, is_lfs


def routes(store: Store) -> APIRouter:
    router = APIRouter()

    def caller(request: Request) -> User | None:
        return store.user(request.headers.get("authorization"))

    @router.post("/api/{kind}/{space}/{name}/preupload/{revision:path}")
    async def preupload(request: Request, kind: str, space: str, name: str, revision: str) -> dict[str, Any]:
        as_pull = bool(request.query_params.get("create_pr"))
        repo = store.writable(kind, f"{space}/{name}", caller(request), as_pull=as_pull, revision=revision)
        files, asked = repo.files(revision), await request.json()
        return {
            "files": [
                {
                    "path": file["path"],
                    "uploadMode": "lfs" if is_lfs(file["path"]) else "regular",
                    "shouldIgnore": False,
                    "oid": checksum(file["path"], files[file["path"]]) if file["path"] in files else None,
                }
                for file in asked["files"]
            ]
        }

    @router.post("/{repo:path}.git/info/lfs/objects/batch")
    async def lfs_batch(request: Request, repo: str) -> dict[str, Any]:
        if caller(request) is None:
            raise Problem(401, "", "Invalid username or password.")
        asked = await request.json()
        objects = []
        for item in asked["objects"]:
            known = item["oid"] in store.lfs
            actions = {} if known else {"upload": {"href": f"{request.base_url}lfs/{item['oid']}", "header": {}}}
            objects.append({"oid": item["oid"], "size": item["size"], **({"actions": actions} if actions else {})})
        return {"transfer": "basic", "objects": objects}

    @router.put("/lfs/{oid}")
    async def lfs_upload(request: Request, oid: str) -> dict[str, Any]:
        content = await request.body()
        if hashlib.sha256(content).hexdigest() != oid:
            raise Problem(400, "", "content does not match its oid")
        store.lfs[oid] = content
        return {}

    @router.post("/api/{kind}/{space}/{name}/commit/{revision:path}")
    async def commit(request: Request, kind: str, space: str, name: str, revision: str) -> dict[str, Any]:
        as_pull, user = bool(request.query_params.get("create_pr")), caller(request)
        repo = store.writable(kind, f"{space}/{name}", user, as_pull=as_pull, revision=revision)
        assert user is not None
        lines = [json.loads(line) for line in (await request.body()).splitlines()]
        header = next(line["value"] for line in lines if line["key"] == "header")
        parent = header.get("parentCommit")
        if parent not in (None, repo.refs[revision]):
            raise Problem(412, "", "A commit has happened since. Please refresh and try again.")
        files = _changed(dict(repo.files(revision)), lines, store)
        pull_url = None
        if as_pull:
            pull = Pull(len(repo.pulls) + 1, header["summary"], user.name)
            repo.pulls.append(pull)
            revision = pull.ref
            pull_url = f"{repo.address(str(request.base_url))}/discussions/{pull.number}"
        made = repo.commit(revision, files, header["summary"], header.get("description", ""))
        return {
            "success": True,
            "commitOid": made.id,
            "commitUrl": f"{repo.address(str(request.base_url))}/commit/{made.id}",
            "hookOutput": "",
            "pullRequestUrl": pull_url,
        }

    def content(repo: Repo, revision: str, path: str) -> Response:
        commit = repo.at(unquoted(revision))
        if path not in commit.files:
            raise Problem(404, "EntryNotFound", f"{path} does not exist on {revision!r}")
        body = commit.files[path]
        headers = {"ETag": f'"{blob_id(body)}"', "X-Repo-Commit": commit.id, "Content-Length": str(len(body))}
        return Response(body, headers=headers, media_type="application/octet-stream")

    @router.api_route("/{kind}/{space}/{name}/resolve/{revision}/{path:path}", methods=["GET", "HEAD"])
    def resolve(request: Request, kind: str, space: str, name: str, revision: str, path: str) -> Response:
        return content(store.readable(kind, f"{space}/{name}", caller(request)), revision, path)

    @router.api_route("/{space}/{name}/resolve/{revision}/{path:path}", methods=["GET", "HEAD"])
    def resolve_model(request: Request, space: str, name: str, revision: str, path: str) -> Response:
        return content(store.readable("models", f"{space}/{name}", caller(request)), revision, path)

    return router


def _changed(files: dict[str, bytes], lines: list[dict[str, Any]], store: Store) -> dict[str, bytes]:
    for line in lines:
        value = line["value"]
        if line["key"] == "file":
            files[value["path"]] = base64.b64decode(value["content"])
        elif line["key"] == "lfsFile":
            files[value["path"]] = store.lfs[value["oid"]]
        elif line["key"] in ("deletedFile", "deletedFolder"):
            gone = value["path"].rstrip("/")
            files = {path: body for path, body in files.items() if path != gone and not path.startswith(f"{gone}/")}
    return files
