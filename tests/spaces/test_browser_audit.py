"""A visitor audits: planted world, upload, cancel; on a phone, in the dark, by keyboard."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def run_world(page: Any) -> None:
    page.wait_for_selector("#rows-message .ev-notice")
    page.click("#run")
    page.wait_for_selector("#verdict .ev-verdict", timeout=90_000)


def test_planted_world_from_choice_to_download(visit: Any, shots: Path, tmp_path: Path) -> None:
    one = visit(viewport={"width": 1200, "height": 900})
    page = one.open()
    run_world(page)
    assert "Evidence-sensitive" in page.inner_text("#verdict")
    page.wait_for_selector("#map .js-plotly-plot .scatterlayer")
    page.wait_for_timeout(1000)
    page.screenshot(path=shots / "audit.png", full_page=True)
