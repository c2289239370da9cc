"""A visitor in the other tabs: predictions, packets, leaderboard."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from report_packet import small_packet
from test_leaderboard_tab import scores_file


def test_template_to_scores(visit: Any, shots: Path, tmp_path: Path) -> None:
    page = visit(viewport={"width": 1200, "height": 900}).open("?tab=predictions")
    page.wait_for_selector("#template-make")
    page.locator("#template-world input").click()
    page.get_by_role("option", name="matching").click()
    page.wait_for_selector("#template-query input")
    page.wait_for_function("document.querySelector('#template-query input').value === 'query'")
    page.click("#template-make")
    with page.expect_download() as started:
        page.click("#template-file a[download]")
    path = tmp_path / "template.csv"
    started.value.save_as(path)
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 200
    for row in rows:
        row["prediction"] = row["label"]
        for k in range(1, 21):
            row[f"prediction_{k}"] = rows[int(row[f"donor_{k}"])]["label"]
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    page.set_input_files("#filled-upload input[type=file]", path)
    page.wait_for_selector("#filled-upload td[aria-label='template.csv']")  # the text alone shows only while it travels
    page.click("#filled-run")
    page.wait_for_selector("#filled-verdict >> text=These predictions need the evidence")
    page.wait_for_selector("#filled-plot .js-plotly-plot .scatterlayer")
    page.wait_for_timeout(500)
    page.screenshot(path=shots / "predictions.png", full_page=True)


def test_packet_alone_and_compared(visit: Any, shots: Path, tmp_path: Path) -> None:
    paths = []
    for seed in (0, 1):
        paths.append(tmp_path / f"packet{seed}.json")
        paths[-1].write_text(small_packet("nq", seed).to_json(), encoding="utf-8")
    page = visit(viewport={"width": 1200, "height": 900}).open("?tab=packet")
    broken = tmp_path / "x.json"
    broken.write_text("[" * 50_000, encoding="utf-8")
    page.set_input_files("#packet-new input[type=file]", broken)
    page.wait_for_selector("#packet-status .ev-error >> text=x.json is no audit packet")
    page.locator("#packet-new button[aria-label='Remove this file'], #packet-new button[aria-label='Clear']").click()
    page.set_input_files("#packet-new input[type=file]", paths[1])
    page.wait_for_selector("#packet-verdict .ev-verdict")
    page.set_input_files("#packet-old input[type=file]", paths[0])
    page.wait_for_selector("#packet-comparison >> text=Region: direct coupling, as before.")
    page.wait_for_selector("#packet-map .js-plotly-plot .scatterlayer")
    page.wait_for_timeout(500)
    page.screenshot(path=shots / "packet.png", full_page=True)


def test_leaderboard(visit: Any, shots: Path, tmp_path: Path) -> None:
    page = visit(viewport={"width": 1200, "height": 900}).open("?tab=leaderboard")
    page.wait_for_selector("#scores-run")
    page.click("#scores-run")
    page.wait_for_selector("#scores-status .ev-error >> text=no scores yet")
    page.set_input_files("#scores-upload input[type=file]", scores_file(tmp_path))
    page.wait_for_selector("#scores-upload td[aria-label='s.csv']")
    page.click("#scores-run")
    page.wait_for_selector("#scores-verdict .ev-verdict", timeout=60_000)
    assert page.locator("#scores-figures img[alt]").count() == 4
    with page.expect_download() as started:
        page.click("#scores-files a[download='aggregate.json']")
    assert '"sys3"' in Path(started.value.path()).read_text(encoding="utf-8")
    page.wait_for_timeout(300)
    page.screenshot(path=shots / "leaderboard.png", full_page=True)
    page.get_by_role("tab", name="For programs").click()
    page.wait_for_selector("text=/gradio_api/mcp/")
    page.screenshot(path=shots / "programs.png", full_page=True)
