"""Settings and files of the wrong kind: one clear line each, from constructors, `evidep audit` and readers/train.py."""

from __future__ import annotations

import importlib.util
import inspect
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tiny_models import audit_rows, bert_model

from evidep.cli import main
from evidep.errors import EvidepError, ReaderError, SettingError
from evidep.readers.registry import make_reader, reader_names
from evidep.readers.settings import check_text_mappings, check_texts
from evidep.types import StringColumn

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

ODD = ("x", "", 32.5, 0, -3, True, 3, 10**30, float("nan"), [], ["a"], {}, {"a": 1}, {3: "a"}, None)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with a tiny encoder and items to audit."""
    folder = tmp_path_factory.mktemp("bad")
    bert_model(folder / "model")
    for name, seed in (("train", 0), ("test", 1)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, audit_rows(40, seed))))
    return folder


@pytest.mark.parametrize(
    "name", [*(n for n in reader_names() if n not in ("bert", "distilbert", "electra_small", "scibert")), "hf"]
)
def test_no_setting_ends_in_a_traceback(place, name):
    """Every setting of every reader, given something odd, works or is refused in one line that names it."""
    import evidep.readers.registry as registry
    from evidep.readers.recipe import TrainSettings

    spec = f"hf:{place / 'model'}" if name == "hf" else name
    found = registry._load(name, registry._BUILT_IN["bert" if name == "hf" else name])
    settings = set(inspect.signature(found.__init__).parameters) - {"self", "recipe"}
    more = {"model": str(place / "model")} if "model" in settings else {}
    if "new_head" in settings:
        settings |= set(TrainSettings.__dataclass_fields__)
    refused = []
    for setting in sorted(settings):
        for value in ODD:
            try:
                reader = make_reader(spec, **{**more, setting: value})
                assert reader.fingerprint
            except EvidepError as error:
                refused.append((setting, value, str(error)))
    for setting, value, line in refused:
        assert "\n" not in line
        assert setting in line or (setting, value) == ("model", "x"), line
    assert len(refused) >= 7 * len(settings)  # most of ODD fits no setting


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("hf:MODEL:max_length=abc", "max_length: expected a whole number of at least 1, got 'abc'"),
        ("hf:MODEL:max_length=32.5", "max_length: expected a whole number of at least 1, got 32.5"),
        ("hf:MODEL:token_budget=x", "token_budget: expected a whole number of at least 1, got 'x'"),
        ("hf:MODEL:token_budget=0", "token_budget: expected a whole number of at least 1, got 0"),
        ("hf:MODEL:new_head=maybe", "new_head: expected true or false, got 'maybe'"),
        ("hf:MODEL:label_map=3", r"label_map: expected a mapping such as \{a: b\}, got 3"),
        ("hf:MODEL:revision=main", r"revision: '.*' is a folder, which has no revision 'main'; leave it out"),
        ("hf:MODEL:licence=3", "licence: expected a text, got 3; put quotes around it"),
        ("hf:MODEL:precision=fp8", "precision: expected one of auto, fp32, bf16, fp16, got 'fp8'"),
        ("minilm_lr:model=MODEL,max_length=0", "max_length: expected a whole number of at least 1, got 0"),
        ("minilm_lr:model=MODEL,max_length=-3", "max_length: expected a whole number of at least 1, got -3"),
        ("minilm_lr:model=MODEL,max_length=x", "max_length: expected a whole number of at least 1, got 'x'"),
        ("minilm_lr:model=MODEL,features=[[u]]", r"features: expected some of u, v, u\*v, \|u-v\|, each once, got"),
        ("minilm_lr:model=5", "model: expected a text, got 5; put quotes around it"),
        ("causal_lm:model=MODEL,verbalisers=[a]", r"verbalisers: expected a mapping such as \{a: b\}, got \['a'\]"),
        ("causal_lm:model=MODEL,template=3", "template: expected a text, got 3"),
        ("causal_lm:model=MODEL,max_length=x", "max_length: expected a whole number of at least 1, got 'x'"),
        ("tfidf_lr:char_trigrams=maybe", "char_trigrams: expected true or false, got 'maybe'"),
        ("majority:name=3", "reader majority: expected a text as its name, got 3"),
    ],
)  # fmt: skip
def test_the_setting_is_named(place, spec, message):
    with pytest.raises(SettingError, match=f"^{message}"):
        make_reader(spec.replace("MODEL", str(place / "model")))


def test_texts_that_yaml_took_for_something_else():
    with pytest.raises(SettingError, match="verbalisers: expected texts, got False; put quotes around it"):
        check_text_mappings(verbalisers={"no": False})
    with pytest.raises(SettingError, match="name: expected a text, got ''"):
        check_texts(name="")


@pytest.mark.parametrize("length", [1, 2])
def test_room_for_text_beside_the_special_tokens(place, length, capsys):
    command = ["audit", str(place / "test.jsonl"), "--train", str(place / "train.jsonl"), "--readers"]
    assert main([*command, f"minilm_lr:model={place / 'model'},max_length={length}"]) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said == (f"evidep: max_length: 2 special tokens surround a text, got max_length={length}; use at least 3")


@pytest.mark.parametrize(
    "spec", ["hf:MODEL:max_length=abc", "causal_lm:model=MODEL,verbalisers=[a]", "minilm_lr:model=MODEL,max_length=-3"]
)
def test_the_audit_says_one_line_and_returns_2(place, spec, capsys):
    command = ["audit", str(place / "test.jsonl"), "--train", str(place / "train.jsonl"), "--readers"]
    assert main([*command, spec.replace("MODEL", str(place / "model"))]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert "expected a" in lines[0]


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("modules.json", "{", r"modules\.json of .* cannot be read"),
        ("modules.json", b"\xff\xfe\xfa", r"modules\.json of .* cannot be read"),
        ("modules.json", '{"a": 1}', r"modules\.json of .*: expected a JSON array, got \{'a': 1\}"),
        ("modules.json", "[3]", "expected a list of modules with a type and a path each, got"),
        ("modules.json", '[{"type": "own.Thing", "path": ""}]', "the module 'own.Thing' is code of another package"),
        ("sentence_bert_config.json", "[", r"sentence_bert_config\.json of .* cannot be read"),
        ("sentence_bert_config.json", "3", r"sentence_bert_config\.json of .*: expected a JSON object, got 3"),
        ("sentence_bert_config.json", '{"max_seq_length": "x"}', "expected max_seq_length to be a whole number"),
        ("1_Pooling/config.json", "[1]", r"1_Pooling/config\.json of .*: expected a JSON object"),
        ("config.json", "3", r"the (weights|configuration) of .* cannot be loaded"),
        ("config.json", '{"model_type": "bert", "hidden_size": "x"}', r"the weights of .* cannot be loaded"),
        ("tokenizer.json", "[1]", r"the tokenizer of .* cannot be loaded"),
        ("tokenizer_config.json", "3", r"the tokenizer of .* cannot be loaded"),
    ],
)  # fmt: skip
def test_damaged_files_of_an_encoder(place, tmp_path, file, content, message):
    shutil.copytree(place / "model", tmp_path / "model")
    kinds = [("Transformer", ""), ("Pooling", "1_Pooling")]
    modules = [{"type": f"sentence_transformers.models.{kind}", "path": path} for kind, path in kinds]
    (tmp_path / "model" / "modules.json").write_text(json.dumps(modules))
    (tmp_path / "model" / "1_Pooling").mkdir()
    (tmp_path / "model" / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ReaderError, match=message) as caught:
        make_reader(f"minilm_lr:model={tmp_path / 'model'}").encoder.embed(StringColumn.from_list(["red"]))
    assert "\n" not in str(caught.value)


def test_an_unknown_model_says_one_line_however_often_the_network_is_asked(tmp_path):
    """Nothing listens at the endpoint; the Hub client's retries are its own affair."""
    code = (
        "import huggingface_hub.utils._http as h; h.time.sleep = lambda seconds: None\n"
        "from evidep.cli import main; import sys; sys.exit(main(sys.argv[1:]))"
    )
    (tmp_path / "items.jsonl").write_text("\n".join(map(json.dumps, audit_rows(20, 0))))
    environment = {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code, "audit", str(tmp_path / "items.jsonl"), "--readers", "hf:nobody/nothing"],
        capture_output=True, text=True, check=False, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1, done.stderr
    assert "model 'nobody/nothing' is neither a folder nor in the local Hub cache" in done.stderr


@pytest.fixture(scope="module")
def script():
    path = Path(__file__).resolve().parents[2] / "readers" / "train.py"
    spec = importlib.util.spec_from_file_location("readers_train_for_bad_input", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("recipe", "arguments", "message"),
    [
        ({3: 4}, [], "expected a mapping of settings"),
        ({"model": 5}, [], "model: expected a text, got 5"),
        ({"max_length": "abc"}, [], "max_length: expected a whole number of at least 1, got 'abc'"),
        ({"label_map": {"no": False}}, [], "label_map: expected texts, got False; put quotes around it"),
        (b"\xff\xfe\xfa", [], "cannot be read"),
        ({}, ["--seed", "-1"], "--seed: expected a whole number of at least 0, got -1"),
        ({}, ["--packet", "PACKET{}"], "is no audit packet"),
        ({}, ["--packet", "PACKET[1]"], "is no audit packet"),
    ],
)
def test_training_says_one_line_before_it_fits(
    place, tmp_path, script, monkeypatch, capsys, recipe, arguments, message
):
    from evidep.readers.transformer import TransformerReader

    monkeypatch.setattr(TransformerReader, "fit", lambda *_, **__: pytest.fail("the fit began"))
    settings = {"model": str(place / "model"), **recipe} if isinstance(recipe, dict) else recipe
    file = tmp_path / "recipe.yaml"
    file.write_bytes(settings if isinstance(settings, bytes) else yaml.safe_dump(settings).encode())
    if arguments and arguments[-1].startswith("PACKET"):
        (tmp_path / "packet.json").write_text(arguments[-1].removeprefix("PACKET"))
        arguments = [arguments[0], str(tmp_path / "packet.json")]
    command = ["--recipe", str(file), "--data", str(place / "test.jsonl"), "--train", str(place / "train.jsonl")]
    assert script.main([*command, "--out", str(tmp_path / "out"), *arguments]) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert lines[-1].startswith("error: ")
    assert message in lines[-1]
    assert len(lines) == 1
