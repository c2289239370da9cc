"""What the Space leaves behind, and what one visitor sees of another: nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from evidence_space import limits, origins
from evidence_space.markup import page_words
from evidence_space.origins import WORLD_NAMES, guess_roles, hub_origin
from test_browser_audit import run

from evidep.data.synthetic import WORLDS
from evidep.errors import DataError, SettingError

SPACE = Path(__file__).resolve().parents[2] / "spaces" / "evidence_audit"


def test_a_visitor_sees_nothing_of_another_and_no_work_files_stay(
    visit: Any, space_folder: Path, tmp_path: Path
) -> None:
    first = visit().open()
    first.wait_for_selector("#rows-message >> text=planted")
    first.get_by_label("A file of mine").check()
    secret = tmp_path / "secret.csv"
    rows = [f"q{at},passage {at} mentions zanzibar,{'yes' if at % 2 else 'no'}" for at in range(60)]
    secret.write_text("\n".join(["question,context,label", *rows]), encoding="utf-8")
    first.set_input_files("#upload input[type=file]", secret)
    first.wait_for_selector("#rows-message >> text=guessed")
    run(first)
    assert "zanzibar" in first.content()
    second = visit().open()
    second.wait_for_selector("#rows-message >> text=planted")
    seen = second.content()
    assert "secret" not in seen
    assert "zanzibar" not in seen
    assert not second.is_visible("#verdict")
    left = [path.name for path in space_folder.glob("evidep-space-*") if "evidep-space-files" not in path.name]
    assert left == []


def test_the_readme_is_a_spaces_readme() -> None:
    text = (SPACE / "README.md").read_text(encoding="utf-8")
    front = yaml.safe_load(text.split("---\n")[1])
    assert front["sdk"] == "gradio"
    assert re.fullmatch(r"6\.\d+\.\d+", front["sdk_version"])
    assert (SPACE / front["app_file"]).is_file()
    assert front["license"] == "apache-2.0"
    assert "evidep[space]==0.1.0" in (SPACE / "requirements.txt").read_text(encoding="utf-8")


def test_every_planted_example_exists() -> None:
    assert set(WORLD_NAMES) <= set(WORLDS)


def test_limits_are_told_on_the_page() -> None:
    for number in ("20 MB", "20,000 rows", "200 columns", "50,000 characters", "200 shuffles", "300 seconds"):
        assert number in limits.SUMMARY


@pytest.mark.parametrize("k", [18, 201, 20.5, None, True])
def test_k_out_of_range(k: Any) -> None:
    with pytest.raises(SettingError, match="whole number from 19"):
        limits.check_k(k)


def test_options_of_the_command_line_are_not_shown() -> None:
    assert page_words("Evaluated on 'test'; others: train (--split NAME).") == "Evaluated on 'test'; others: train."
    assert page_words("no column 'x' for --query; the columns are a, b") == (
        "no column 'x' for the setting query; the columns are a, b"
    )


def test_a_hub_dataset_is_read_as_a_stream_up_to_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    rows = [{"premise": f"p{i}", "hypothesis": f"h{i}", "label": i % 2} for i in range(30)]
    features = datasets.Features(
        {"premise": datasets.Value("string"), "hypothesis": datasets.Value("string"),
         "label": datasets.ClassLabel(names=["no", "yes"])}
    )  # fmt: skip
    data = datasets.Dataset.from_list(rows, features=features)
    seen: dict[str, Any] = {}

    def load(path: str, name: str | None = None, **how: Any) -> Any:
        seen.update(how, path=path, name=name)
        return {"train": data.to_iterable_dataset(), "test": data.to_iterable_dataset()}

    monkeypatch.setattr(datasets, "load_dataset", load)
    monkeypatch.setattr(origins.limits, "MAX_ROWS", 20)
    origin = hub_origin("owner/name", "", "test")
    assert seen == {"path": "owner/name", "name": None, "streaming": True}
    assert {name: len(source) for name, source in origin.splits.items()} == {"train": 20, "test": 20}
    assert origin.notes[0] == "Only the first 20 rows of the split train were read."
    guess = guess_roles(origin)
    assert (guess.query, guess.evidence, guess.label) == ("hypothesis", "premise", "label")
    assert origins.preview(origin.first)[1][1] == ["p1", "h1", "yes"]
    with pytest.raises(DataError, match="has no split 'dev'; it has train, test"):
        hub_origin("owner/name", "", "dev")


def test_a_hub_dataset_without_network_is_an_error_in_words() -> None:
    with pytest.raises(DataError, match="could not be loaded") as caught:
        hub_origin("owner/name", "", "")
    assert "\n" not in str(caught.value)


def test_previews_can_be_sent_as_json() -> None:
    from evidep.data.sources import as_source

    source = as_source([{"query": "\ud800 lone", "evidence": ["a", None], "label": float("nan")}])
    heads, rows = origins.preview(source)
    assert json.dumps([heads, rows]).encode("utf-8")
    assert "\ud800" not in rows[0][0]
