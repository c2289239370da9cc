"""Publishing modules, readers and Spaces: dry by default, the same twice is nothing, pinned to this release."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hub.fixtures import READER, WRITER

import evidep
from evidep.errors import SettingError
from evidep.hub import publish as publishing
from evidep.hub.client import Hub
from evidep.hub.errors import HubError
from evidep.hub.publish import check_release, publish, reader_model, space
from evidep.modules import module_names

ROOT = Path(__file__).resolve().parents[2]
DELTA_EVI = Path(evidep.metric_path("delta_evi"))


def load_script():
    spec = importlib.util.spec_from_file_location("publish_script", ROOT / "scripts" / "publish.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def send(publication):
    return publish(publication, send=True, hub=Hub(timeout=20, waits=(0.01, 0.01)))


def test_a_dry_run_of_a_new_space_lists_everything_and_sends_nothing(standin):
    outcome = publish(space(DELTA_EVI, "auditor"), hub=Hub())
    assert outcome.created
    assert not outcome.sent
    assert set(outcome.changed) == {"README.md", "app.py", "delta_evi.py", "requirements.txt"}
    assert standin.store.writes() == []
    assert ("spaces", "auditor/delta_evi") not in standin.store.repos


def test_created_then_nothing_to_do_then_updated(standin, tmp_path):
    folder = tmp_path / "delta_evi"
    shutil.copytree(DELTA_EVI, folder, ignore=shutil.ignore_patterns("__pycache__"))
    assert send(space(folder, "auditor")).sent
    repo = standin.store.repos["spaces", "auditor/delta_evi"]
    assert repo.sdk == "gradio"
    assert repo.files()["delta_evi.py"] == (DELTA_EVI / "delta_evi.py").read_bytes()
    commits = len(repo.commits)
    again = send(space(folder, "auditor"))
    assert (again.changed, again.sent, len(repo.commits)) == ((), False, commits)
    (folder / "app.py").write_text((folder / "app.py").read_text() + "# a comment\n")
    repo.commit("main", repo.files() | {"notes.txt": b"of the owner"})
    update = send(space(folder, "auditor"))
    assert update.changed == ("app.py",)
    assert update.foreign == ("notes.txt",)
    assert repo.files()["notes.txt"] == b"of the owner"
    assert repo.files()["app.py"].endswith(b"# a comment\n")


def test_a_stale_parent_is_read_again(standin, monkeypatch):
    send(space(DELTA_EVI, "auditor"))
    repo = standin.store.repos["spaces", "auditor/delta_evi"]
    repo.commit("main", repo.files() | {"app.py": b"old"})
    real, left = Hub.commit, [1]

    def commit(self, *arguments, **more):
        if left[0]:
            left[0] -= 1
            repo.commit("main", repo.files() | {"other.txt": b"x"})
        return real(self, *arguments, **more)

    monkeypatch.setattr(Hub, "commit", commit)
    assert send(space(DELTA_EVI, "auditor")).sent
    assert repo.files()["app.py"] != b"old"
    assert repo.files()["other.txt"] == b"x"


@pytest.mark.parametrize("namespace", ["ledger", "nobody"])
def test_a_namespace_of_others_is_refused(standin, namespace):
    with pytest.raises(HubError, match="no right"):
        send(space(DELTA_EVI, namespace))


def test_without_a_token_and_with_one_that_only_reads(standin, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", READER)
    with pytest.raises(HubError, match="may only read"):
        send(space(DELTA_EVI, "guest"))
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(HubError, match="no Hugging Face token"):
        send(space(DELTA_EVI, "guest"))
    assert standin.store.writes() == []


def test_a_file_that_holds_the_token_is_refused(standin, tmp_path):
    folder = tmp_path / "delta_evi"
    shutil.copytree(DELTA_EVI, folder)
    (folder / "notes.txt").write_text("x" * ((1 << 20) - 10) + WRITER)  # across the border of two chunks
    with pytest.raises(HubError, match=r"notes\.txt holds your Hugging Face token"):
        send(space(folder, "auditor"))
    assert standin.store.writes() == []


@pytest.mark.parametrize("name", module_names())
def test_every_module_is_ready_to_be_published(name):
    publication = space(Path(evidep.metric_path(name)), "org")
    assert f"{name}.py" in publication.files
    assert not any("__pycache__" in path for path in publication.files)


def test_every_space_is_ready_to_be_published():
    folders = [path.parent for path in (ROOT / "spaces").glob("*/README.md")]
    assert folders
    for folder in folders:
        publication = space(folder, "org")
        assert "app.py" in publication.files
        assert publication.sdk == "gradio"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("requirements.txt", "evidep[evaluate]>=0.1\n", "must pin this release"),
        ("requirements.txt", "evidep==0.0.1\n", "must pin this release"),
        ("requirements.txt", "numpy\n# evidep\n", "does not ask for evidep"),
        ("requirements.txt", "evidep = 1\n", "is no requirement"),
        ("README.md", "# no front matter\n", "has no sdk"),
    ],
)
def test_what_is_not_ready_is_refused(tmp_path, name, text, words):
    folder = tmp_path / "delta_evi"
    shutil.copytree(DELTA_EVI, folder)
    (folder / name).write_text(text)
    with pytest.raises(SettingError, match=words):
        space(folder, "org")


def test_only_releases_are_published(monkeypatch, standin):
    for version in ("1.2.dev3", "1.2rc1", "1.2+local"):
        with pytest.raises(SettingError, match="is no release"):
            check_release(version)
    check_release("1.2.3")
    monkeypatch.setattr(publishing, "__version__", "1.2.dev3")
    with pytest.raises(SettingError, match="is no release"):
        publish(space_of_any_version(), hub=Hub())


def space_of_any_version():
    return publishing.Publication("auditor/x", "space", "gradio", {"README.md": b"---\nsdk: gradio\n---\n"})


def test_a_reader_goes_out_with_card_recipe_and_weights(standin, tmp_path):
    trained = tmp_path / "minilm"
    trained.mkdir()
    (trained / "README.md").write_text("---\nlicense: mit\n---\n# minilm\n")
    (trained / "model.safetensors").write_bytes(b"weights" * 1000)
    (trained / "config.json").write_text("{}")
    publication = reader_model(ROOT / "readers" / "minilm", "auditor", trained)
    assert publication.name == "auditor/evidep-minilm"
    assert send(publication).sent
    repo = standin.store.repos["models", "auditor/evidep-minilm"]
    assert set(repo.files()) == {".gitattributes", "README.md", "config.json", "model.safetensors", "recipe.yaml"}
    assert repo.files()["model.safetensors"] == b"weights" * 1000
    again = send(publication)
    assert not again.sent
    assert "model.safetensors" in again.unchanged


def test_a_reader_without_a_card_is_not_published(tmp_path):
    (tmp_path / "bert").mkdir()
    (tmp_path / "bert" / "recipe.yaml").write_text("epochs: 1\n")
    with pytest.raises(SettingError, match="the reader bert has no model card: train it"):
        reader_model(tmp_path / "bert", "org")
    with pytest.raises(SettingError, match="is no folder"):
        reader_model(tmp_path / "bert", "org", tmp_path / "nowhere")


def test_the_script_from_dry_run_to_update(standin, capsys):
    script = load_script()
    assert script.main(["metrics", "--namespace", "auditor", "mpds"]) == 0
    shown = capsys.readouterr()
    assert "space auditor/mpds: to be created" in shown.out
    assert "nothing was sent" in shown.err
    assert standin.store.writes() == []
    assert script.main(["metrics", "mpds", "--namespace", "auditor", "--yes"]) == 0
    assert "space auditor/mpds: created" in capsys.readouterr().out
    assert script.main(["metrics", "mpds", "--namespace", "auditor", "--yes"]) == 0
    assert "space auditor/mpds: as it should be" in capsys.readouterr().out


def test_bad_use_of_the_script_is_one_line(standin, capsys):
    script = load_script()
    assert script.main(["metrics", "--namespace", "auditor", "accuracy"]) == 2
    error = capsys.readouterr().err
    assert "no metrics named 'accuracy'; there are delta_evi" in error
    assert len(error.strip().splitlines()) == 1


LOADED = """
import evaluate
many = [0, 1] * 200
module = evaluate.load("auditor/delta_evi", keep_in_memory=True)
result = module.compute(predictions=many, references=many, shuffled_predictions=[[1, 0] * 200] * 20)
print("RESULT", result["delta_evi"], result["verdict"])
"""


def test_the_published_module_is_loaded_from_its_space(standin, tmp_path):
    """As a user does: a process of its own, an empty cache, the Hub's address, no local file of the module."""
    send(space(DELTA_EVI, "auditor"))
    environment = os.environ | {
        "HF_ENDPOINT": standin.url,
        "HF_HOME": str(tmp_path / "home"),
        "HF_EVALUATE_OFFLINE": "0",
        "HF_HUB_OFFLINE": "0",
        "HF_UPDATE_DOWNLOAD_COUNTS": "0",  # evaluate would tell a server of its own
    }
    environment.pop("HF_TOKEN")
    done = subprocess.run(
        [sys.executable, "-c", LOADED], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300
    )
    assert "RESULT 1.0 sensitive" in done.stdout, done.stderr
    assert any("/spaces/auditor/delta_evi/resolve/" in line for line in standin.store.log)
