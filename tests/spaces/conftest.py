"""The Space as a server in a process of its own, and a headless Chromium that visits it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SPACE = ROOT / "spaces" / "evidence_audit"
sys.path[:0] = [str(SPACE), str(Path(__file__).parent)]
FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="session")
def space_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The temporary folder of the Space's process: nothing but its file store may stay there."""
    return tmp_path_factory.mktemp("space-tmp")


@pytest.fixture(scope="session")
def space_url(space_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The Space, served by the same command as `make space`."""
    pytest.importorskip("gradio", reason="the Space needs gradio: pip install 'evidep[space]'")
    port = free_port()
    log = (tmp_path_factory.mktemp("space-log") / "server.log").open("w+")
    environment = {key: value for key, value in os.environ.items() if key != "GRADIO_TEMP_DIR"} | {
        "GRADIO_SERVER_PORT": str(port),
        "GRADIO_SERVER_NAME": "127.0.0.1",
        "TMPDIR": str(space_folder),
        "GRADIO_ANALYTICS_ENABLED": "False",
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "EVIDEP_SPACE_WORLD_ROWS": "200",
    }
    server = subprocess.Popen([sys.executable, str(SPACE / "app.py")], env=environment, stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 240
        while True:
            try:
                urllib.request.urlopen(url, timeout=5).read()
                break
            except OSError as error:
                log.seek(0)
                if server.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"the Space did not start: {log.read()[-2000:]}") from error
                time.sleep(0.3)
        yield url
    finally:
        server.terminate()
        try:
            server.wait(15)
        except subprocess.TimeoutExpired:
            server.kill()
        log.close()
    assert list(space_folder.glob("evidep-space-*")) == []  # uploads and results go with the process


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A headless Chromium with a fresh profile."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="browser tests: pip install playwright")
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    if path is None:
        pytest.skip("browser tests need Chromium: apt-get install chromium (or name one in CHROMIUM)")
    with sync_api.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, headless=True, args=list(FLAGS))
        yield browser
        browser.close()


class Visit:
    """One visitor's page, with all that it asked for and complained about."""

    def __init__(self, browser: Any, url: str, **context: Any) -> None:
        self.url = url
        self.context = browser.new_context(accept_downloads=True, **context)
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.requests: list[str] = []
        self.console: list[str] = []
        self.dialogs: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.console.append(message.text) if message.type == "error" else None)
        self.page.on("pageerror", lambda error: self.console.append(str(error)))
        self.page.on("dialog", self._dialog)

    def _dialog(self, dialog: Any) -> None:
        self.dialogs.append(dialog.message)
        dialog.dismiss()

    def open(self, query: str = "") -> Any:
        self.page.goto(f"{self.url}/{query}")
        self.page.wait_for_selector("#run", state="attached")
        return self.page

    @property
    def outside(self) -> list[str]:
        """Requests that left this machine's server."""
        return [u for u in self.requests if not u.startswith((self.url, "data:", "blob:", "about:"))]

    def close(self) -> None:
        self.context.close()


@pytest.fixture
def visit(chromium: Any, space_url: str) -> Iterator[Any]:
    """Opens pages; at the end of the test none may have asked elsewhere, shown a dialog or logged an error."""
    opened: list[Visit] = []

    def visitor(**context: Any) -> Visit:
        opened.append(Visit(chromium, space_url, **context))
        return opened[-1]

    yield visitor
    problems = [(v.outside, v.console, v.dialogs) for v in opened]
    for one in opened:
        one.close()
    assert problems == [([], [], [])] * len(problems)


@pytest.fixture(scope="session")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go: EVIDEP_SHOTS, else a temporary folder."""
    named = os.environ.get("EVIDEP_SHOTS")
    folder = Path(named) if named else tmp_path_factory.mktemp("shots")
    folder.mkdir(parents=True, exist_ok=True)
    return folder
