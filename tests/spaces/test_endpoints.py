"""The Space for programs: gradio_client, MCP, several visitors at once, and what none of them may get."""

from __future__ import annotations

import asyncio
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from report_packet import small_packet

from evidep.audit.packet import check_document
from evidep.data.synthetic import planted_world

NAMES = {
    "audit_rows", "audit_planted_world", "audit_hub_dataset", "score_predictions", "read_packet", "compare_packets",
    "aggregate_scores",
}  # fmt: skip


@pytest.fixture(scope="module")
def client(space_url: str) -> Any:
    return pytest.importorskip("gradio_client").Client(space_url, verbose=False)


def test_only_the_typed_endpoints_are_offered(client: Any) -> None:
    named = client.view_api(return_format="dict")["named_endpoints"]
    assert {name.removeprefix("/") for name in named} == NAMES
    arguments = {a["parameter_name"]: a for a in named["/audit_planted_world"]["parameters"]}
    assert arguments["k"]["type"] == {"type": "integer"}
    assert arguments["k"]["parameter_default"] == 20
    assert "nq" in arguments["world"]["type"]["enum"]


def test_audit_of_rows(client: Any) -> None:
    world = planted_world("nq", n_train=0, n_eval=200, seed=0)
    result = client.predict(
        rows=world.evaluation, query="query", evidence="evidence", label="label", metadata=list(world.metadata),
        api_name="/audit_rows",
    )  # fmt: skip
    assert result["region"] == result["packet"]["diagnosis"]["region"]
    assert result["packet"]["data"]["rows"] == 200
    check_document(result["packet"])


def test_planted_world_is_the_packages_own_audit(client: Any) -> None:
    result = client.predict(world="nq", items=200, api_name="/audit_planted_world")
    assert result["packet"] == small_packet("nq").to_dict()
    assert "direct coupling" in result["planted"]


def test_scores_of_predictions(client: Any) -> None:
    references = ["a", "b"] * 50
    shuffled = [["a"] * 100 for _ in range(20)]
    result = client.predict(
        predictions_full=references, references=references, shuffled_predictions=shuffled,
        metadata={"m": references}, api_name="/score_predictions",
    )  # fmt: skip
    assert result["delta_evi"]["delta_evi"] == pytest.approx(1 - 0.5)  # "a" is right for half of the items
    assert result["delta_evi"]["p_value"] == pytest.approx(1 / 21)
    assert result["mpds"]["mpds"] == pytest.approx(1.0)  # the metadata name the label


def test_packets_and_scores(client: Any) -> None:
    first, second = small_packet("nq", 0).to_dict(), small_packet("nq", 1).to_dict()
    assert client.predict(packet=first, api_name="/read_packet")["verdict"] == "direct coupling"
    compared = client.predict(old=first, new=second, api_name="/compare_packets")
    assert "Region: direct coupling, as before." in compared["markdown"]
    rows = [{"system": s, "task": t, "score": v} for s, v in (("x", 0.9), ("y", 0.4)) for t in "abc"]
    result = client.predict(rows=rows, api_name="/aggregate_scores")
    assert result["result"]["systems"] == ["x", "y"]


COLUMNS = {"query": "q", "evidence": "e", "label": "l"}


@pytest.mark.parametrize(
    ("api_name", "arguments", "words"),
    [
        ("/audit_planted_world", {"world": "nowhere"}, "no planted example|not in|Value"),
        ("/audit_planted_world", {"items": 10**6}, "items: expected 50 to 2000"),
        ("/audit_planted_world", {"k": 5}, "K must be a whole number from 19"),
        ("/audit_rows", {"rows": [], **COLUMNS}, "expected a list of objects"),
        ("/audit_rows", {"rows": [{"q": "x" * 60_000}], **COLUMNS}, "the cell has"),
        ("/audit_hub_dataset", {"dataset_id": "/etc", **COLUMNS}, "dataset id"),
        (
            "/audit_hub_dataset",
            {"dataset_id": "a/b", "query": "q", "evidence": "e", "label": "l"},
            "could not be loaded",
        ),
        ("/read_packet", {"packet": {}}, "no schema_version"),
        (
            "/score_predictions",
            {"predictions_full": ["a"], "references": ["a"], "shuffled_predictions": [["a"]]},
            "K must",
        ),
    ],
)
def test_errors_reach_the_client_in_words(client: Any, api_name: str, arguments: dict[str, Any], words: str) -> None:
    from gradio_client.exceptions import AppError

    with pytest.raises((AppError, ValueError), match=words):
        client.predict(**arguments, api_name=api_name)


def test_readers_that_would_run_code_are_refused(client: Any) -> None:
    from gradio_client.exceptions import AppError

    rows = planted_world("nq", n_train=0, n_eval=60, seed=0).evaluation
    with pytest.raises(AppError, match="unknown reader"):
        client.predict(
            rows=rows, query="query", evidence="evidence", label="label", readers=["os:system"], api_name="/audit_rows"
        )


def test_mcp_lists_and_runs_the_tools(space_url: str) -> None:
    mcp = pytest.importorskip("mcp")
    from mcp.client.streamable_http import streamablehttp_client

    async def visit() -> tuple[Any, Any]:
        async with (
            streamablehttp_client(f"{space_url}/gradio_api/mcp/") as (read, write, _),
            mcp.ClientSession(read, write) as session,
        ):
            await session.initialize()
            tools = await session.list_tools()
            name = next(tool.name for tool in tools.tools if tool.name.endswith("audit_planted_world"))
            return tools.tools, await session.call_tool(name, {"world": "nq", "items": 200})

    with ThreadPoolExecutor(1) as apart:  # the browser's driver may hold a running loop in this thread
        tools, result = apart.submit(asyncio.run, visit()).result()
    by_name = {tool.name: tool for tool in tools}
    assert {next(n for n in NAMES if name.endswith(n)) for name in by_name} == NAMES
    tool = next(tool for name, tool in by_name.items() if name.endswith("audit_rows"))
    assert "swap evidence between items" in tool.description
    assert tool.inputSchema["properties"]["rows"]["type"] == "array"
    assert "pass" in tool.inputSchema["properties"]["evidence"]["description"]
    assert not result.isError
    assert "direct coupling" in result.content[0].text


def test_eight_visitors_at_once_all_finish(space_url: str) -> None:
    from gradio_client import Client

    def visit(seed: int) -> tuple[str, int]:
        one = Client(space_url, verbose=False)
        result = one.predict(world="triviaqa", items=200, seed=seed, api_name="/audit_planted_world")
        return result["region"], result["packet"]["settings"]["seed"]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(visit, range(8)))
    assert found == [("evidence_sensitive", seed) for seed in range(8)]


def status_of(url: str) -> int:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_files_of_this_machine_are_not_served(space_url: str) -> None:
    root = Path(__file__).resolve().parents[2]
    for path in (
        "/etc/passwd",
        str(root / "spaces/evidence_audit/app.py"),
        str(root / "README.md"),
        "../../etc/passwd",
    ):
        assert status_of(f"{space_url}/gradio_api/file={urllib.parse.quote(path)}") in (403, 404)


def test_a_path_on_this_machine_is_no_upload(space_url: str) -> None:
    """A client that names a file of the server in place of an upload must not get it read."""
    config = json.loads(urllib.request.urlopen(f"{space_url}/config", timeout=10).read())
    chosen = next(
        d for d in config["dependencies"] if d["targets"] and len(d["inputs"]) == 2 and d["api_visibility"] == "private"
    )
    data = [{"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}] * 2
    body = {"data": data, "fn_index": chosen["id"], "session_hash": "probe"}
    request = urllib.request.Request(
        f"{space_url}/gradio_api/queue/join", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    urllib.request.urlopen(request, timeout=10).read()
    time.sleep(0.2)
    stream = urllib.request.urlopen(f"{space_url}/gradio_api/queue/data?session_hash=probe", timeout=20)
    text = stream.read(6000).decode()
    assert "root:" not in text
    assert '"success":false' in text.replace(" ", "")


def test_too_large_an_upload_is_refused_by_the_server(space_url: str) -> None:
    boundary = "x" * 20
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="files"; filename="a.csv"\r\n\r\n'.encode()
    body = head + b"x" * (21 * 1024**2) + f"\r\n--{boundary}--\r\n".encode()
    request = urllib.request.Request(
        f"{space_url}/gradio_api/upload", body, {"Content-Type": f"multipart/form-data; boundary={boundary}"}
    )
    with pytest.raises((urllib.error.HTTPError, urllib.error.URLError)) as caught:
        urllib.request.urlopen(request, timeout=30)
    if isinstance(caught.value, urllib.error.HTTPError):
        assert caught.value.code == 413
