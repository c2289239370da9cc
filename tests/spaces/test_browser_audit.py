"""A visitor audits: planted world, upload, cancel; on a phone, in the dark, by keyboard."""

from __future__ import annotations

import csv
import json
import os
from pathlib import Path
from typing import Any

from evidep.audit.packet import AuditPacket
from evidep.data.synthetic import planted_world


def run(page: Any) -> None:
    page.wait_for_selector("#rows-message .ev-notice")
    page.click("#run")
    page.wait_for_selector("#verdict .ev-verdict", timeout=180_000)
    page.wait_for_selector("#map .js-plotly-plot .scatterlayer")


def download(page: Any, box: str, name: str, folder: Path) -> Path:
    with page.expect_download() as started:
        page.click(f"{box} a[download='{name}']")
    path = folder / name
    started.value.save_as(path)
    return path


def upload(page: Any, path: Path, content: bytes) -> None:
    path.write_bytes(content)
    other = page.locator("#upload button[aria-label='Remove this file'], #upload button[aria-label='Clear']")
    if other.count():
        other.first.click()
    page.set_input_files("#upload input[type=file]", path)


def nasty_file(folder: Path) -> Path:
    """A csv of 200 items whose texts are HTML, scripts, templates, formulas and control characters."""
    nasty = (
        "<img src=x onerror=alert(1)>", "<script>alert(2)</script>", "${alert(3)}", "{{7*7}}", "=1+1", "\u202egnp.exe",
        "[x](javascript:alert(4))", "<b>bold</b>", "$$x$$", "| a | b |",
    )  # fmt: skip
    path = folder / "na<b>sty.csv"
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["question", "context", "label", "<i>meta</i>"])
        for at in range(200):
            label = "<u>yes</u>" if at % 2 else "no"
            text = f"{nasty[at % 10]} item {at} {'good' if at % 2 else 'bad'}"
            writer.writerow([f"{nasty[(at + 3) % 10]} {at}", text, label, nasty[at % 3]])
    return path


def test_planted_world_from_choice_to_download(visit: Any, shots: Path, tmp_path: Path) -> None:
    page = visit(viewport={"width": 1200, "height": 900}).open("?world=nq")
    page.wait_for_selector("#rows-message >> text=planted nq")
    run(page)
    assert "Direct coupling" in page.inner_text("#verdict")
    assert page.locator("#map .scatterlayer .trace").count() == 8  # seven landmarks and one reader
    packet = AuditPacket.load(download(page, "#files", "packet.json", tmp_path))
    assert packet.region == "direct_coupling"
    assert download(page, "#files", "diagnostic_map.png", tmp_path).read_bytes().startswith(b"\x89PNG")
    assert "Direct coupling" in download(page, "#files", "card.md", tmp_path).read_text(encoding="utf-8")
    page.wait_for_timeout(500)
    page.screenshot(path=shots / "audit.png", full_page=True)
    figure = os.environ.get("EVIDEP_SPACE_FIGURE")  # docs/figures/space.png is made so
    page.set_viewport_size({"width": 1000, "height": 700})
    page.evaluate("document.querySelector('#verdict').scrollIntoView()")
    page.wait_for_timeout(500)
    page.screenshot(path=Path(figure) if figure else shots / "space.png")


def test_an_upload_full_of_markup_is_shown_as_text(visit: Any, shots: Path, tmp_path: Path) -> None:
    page = visit(viewport={"width": 1200, "height": 900}).open()
    page.wait_for_selector("#rows-message >> text=planted")
    page.get_by_label("A file of mine").check()
    page.set_input_files("#upload input[type=file]", nasty_file(tmp_path))
    page.wait_for_selector("#rows-message >> text=guessed")
    assert page.locator("#query input").input_value() == "question"
    assert page.locator("#evidence input").input_value() == "context"
    page.locator("#metadata input").click()
    page.get_by_role("option", name="<i>meta</i>").click()
    page.keyboard.press("Escape")
    run(page)
    page.click("text=Card, as it would stand")
    page.wait_for_timeout(500)
    for tag in ("b >> text=bold", "i >> text=meta", "u >> text=yes", "img[src='x']"):
        assert page.locator(f"#result {tag}").count() == 0
        assert page.locator(f"#rows {tag}").count() == 0
    assert page.locator("a[href^='javascript']").count() == 0
    assert "49 " not in page.inner_text("#items")
    page.screenshot(path=shots / "nasty.png", full_page=True)


def test_errors_in_words_and_a_run_that_is_stopped(visit: Any, tmp_path: Path) -> None:
    page = visit().open()
    page.wait_for_selector("#rows-message >> text=planted")
    page.get_by_label("A file of mine").check()
    page.wait_for_selector("#rows-message >> text=no file yet")
    page.click("#run")
    page.wait_for_selector("#status .ev-error")
    upload(page, tmp_path / "plain.json", json.dumps([{"a": "x", "b": "y", "c": "z"}] * 3).encode())
    page.wait_for_selector("#rows-message >> text=Choose the columns")
    page.click("#run")
    page.wait_for_selector("#status >> text=choose the column of the query and of the evidence and of the label")
    upload(page, tmp_path / "bad.csv", b"PK\x03\x04xxxx")
    page.wait_for_selector("#rows-message >> text=zip archive")
    rows = planted_world("matching", n_train=0, n_eval=6000, seed=0).evaluation
    upload(page, tmp_path / "large.json", json.dumps(rows).encode())
    page.wait_for_selector("#rows-message >> text=6,000")
    page.click("text=Shuffles, readers, seed")
    page.locator("#k input").fill("200")
    page.get_by_label("near-miss").check()
    page.click("#run")
    page.wait_for_selector("#status progress")
    page.click("#cancel")
    page.wait_for_selector("#status >> text=Stopped", timeout=60_000)
    assert page.is_enabled("#run")
    assert not page.is_visible("#verdict")


def test_phone_in_the_dark(visit: Any, shots: Path) -> None:
    one = visit(viewport={"width": 390, "height": 844}, color_scheme="dark", has_touch=True, is_mobile=True)
    page = one.open("?world=hotpotqa")
    page.wait_for_selector("#rows-message >> text=hotpotqa")
    run(page)
    page.wait_for_timeout(800)
    assert page.evaluate("document.documentElement.scrollWidth") <= 391
    assert page.evaluate("document.body.classList.contains('dark')")
    page.screenshot(path=shots / "phone.png", full_page=True)


def test_keyboard_alone_runs_an_audit_and_controls_have_names(visit: Any) -> None:
    page = visit().open("?world=<script>alert(1)</script>&tab=nowhere")  # a strange link shows the default
    page.wait_for_selector("#rows-message >> text=planted triviaqa")
    assert page.get_by_role("tab", name="Audit a dataset").get_attribute("aria-selected") == "true"
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "run":
            break
    assert page.evaluate("document.activeElement.id") == "run"
    page.keyboard.press("Enter")
    page.wait_for_selector("#verdict .ev-verdict", timeout=180_000)
    nameless = page.evaluate(
        """() => [...document.querySelectorAll('button, input, select, textarea')]
            .filter(e => e.offsetParent !== null && e.type !== 'hidden')
            .filter(e => !(e.getAttribute('aria-label') || e.getAttribute('title') || e.innerText?.trim()
                || e.labels?.length || e.getAttribute('aria-labelledby') || e.closest('label')))
            .map(e => e.outerHTML.slice(0, 160))"""
    )
    assert nameless == []
    assert page.locator("#verdict [role=status]").count() == 1
    assert page.evaluate("document.documentElement.lang") != ""
