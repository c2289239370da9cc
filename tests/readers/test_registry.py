import subprocess
import sys

import numpy as np
import pytest

import evidep.readers.registry as registry
from evidep.errors import MissingExtraError, ReaderError, SettingError
from evidep.readers.baseline import MajorityReader
from evidep.readers.callable import from_callable
from evidep.readers.protocol import AdditiveReader, Reader
from evidep.readers.registry import make_reader, parse_spec, reader_names, register_reader, split_specs
from evidep.readers.tfidf import TfidfReader
from evidep.readers.tfidf_overlap import TfidfOverlapReader


@pytest.fixture(autouse=True)
def nothing_registered(monkeypatch):
    monkeypatch.setattr(registry, "_REGISTERED", {})


@pytest.mark.parametrize("name", ["majority", "metadata", "tfidf_lr", "tfidf_lr_joined", "tfidf_lr_overlap"])
def test_light_readers_by_name(name):
    reader = make_reader(name)
    assert isinstance(reader, Reader)
    assert reader.info.name == name
    assert name in reader_names()


def test_settings_in_the_spec_in_keywords_and_from_the_recipe():
    assert make_reader("tfidf_lr").fingerprint == TfidfReader().fingerprint
    assert make_reader("tfidf_lr:C=0.3,min_df=1").fingerprint == TfidfReader(C=0.3, min_df=1).fingerprint
    assert make_reader("tfidf_lr:C=0.3", C=2).fingerprint == TfidfReader(C=2.0).fingerprint
    assert (
        make_reader(" tfidf_lr_overlap:char_trigrams=true ").fingerprint
        == TfidfOverlapReader(char_trigrams=True).fingerprint
    )
    assert make_reader("tfidf_lr:name=mine").info.name == "mine"


def test_a_recipe_is_read(monkeypatch, tmp_path):
    (tmp_path / "tfidf_lr").mkdir()
    (tmp_path / "tfidf_lr" / "recipe.yaml").write_text("C: 7\nmin_df: 4\n")
    monkeypatch.setattr(registry, "files", lambda package: tmp_path)
    assert make_reader("tfidf_lr:min_df=1").fingerprint == TfidfReader(C=7.0, min_df=1).fingerprint
    (tmp_path / "tfidf_lr" / "recipe.yaml").write_text("- C\n")
    with pytest.raises(ReaderError, match="expected a mapping of settings, got list"):
        make_reader("tfidf_lr")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("tfidf_lr", ("tfidf_lr", {})),
        ("a:C=1,b=true,c=null,d=text", ("a", {"C": 1, "b": True, "c": None, "d": "text"})),
        ("a:b=[1, 2],c=1e-3,d=1e,e=-0.5", ("a", {"b": [1, 2], "c": 0.001, "d": "1e", "e": -0.5})),
        ("my.module:Thing", ("my.module:Thing", {})),
        ("my.module:Thing:k=1", ("my.module:Thing", {"k": 1})),
        ("hf:org/model:max_length=64", ("hf:org/model", {"max_length": 64})),
        ("hf:/runs/lr=0.1/model", ("hf:/runs/lr=0.1/model", {})),
        ("hf:C:\\model:max_length=64", ("hf:C:\\model", {"max_length": 64})),
        ("hf:m:label_map={LABEL_0: 'a, b', B: no}", ("hf:m", {"label_map": {"LABEL_0": "a, b", "B": "no"}})),
        ("causal_lm:model=o/m,verbalisers={no: no, yes: yes, 1: true}",
         ("causal_lm", {"model": "o/m", "verbalisers": {"no": "no", "yes": "yes", "1": "true"}})),
        ('causal_lm:template="E: {evidence}\\nS: {query}\\nA, (b=c):",model=m',
         ("causal_lm", {"template": "E: {evidence}\nS: {query}\nA, (b=c):", "model": "m"})),
        ("a:x=it's,y='it''s, a',z=\"say \\\"b, c\\\"\"", ("a", {"x": "it's", "y": "it's, a", "z": 'say "b, c"'})),
        ("a:text=b: c", ("a", {"text": "b: c"})),
    ],
)  # fmt: skip
def test_parse_spec(spec, expected):
    assert parse_spec(spec) == expected


def test_split_specs():
    text = (
        "majority, tfidf_lr:C=1,min_df=3,x=[a,b] ,minilm_lr:features=[u,v],hf:org/model,"
        "hf:m:label_map={a: b, c: d},epochs=0,"
        "causal_lm:model=m,template='x: a, b=c',verbalisers={a: 'b, c:d=e'},majority"
    )
    assert split_specs(text) == (
        "majority",
        "tfidf_lr:C=1,min_df=3,x=[a,b]",
        "minilm_lr:features=[u,v]",
        "hf:org/model",
        "hf:m:label_map={a: b, c: d},epochs=0",
        "causal_lm:model=m,template='x: a, b=c',verbalisers={a: 'b, c:d=e'}",
        "majority",
    )
    assert split_specs(" , ") == ()


@pytest.mark.parametrize(
    ("spec", "error", "message"),
    [
        ("tfidf", ReaderError, "unknown reader 'tfidf': did you mean 'tfidf_lr'.*majority, metadata, tfidf_lr"),
        ("", ReaderError, "unknown reader ''"),
        ("tfidf_lr:min_dff=2", SettingError, "unknown setting 'min_dff': did you mean 'min_df'"),
        ("tfidf_lr:C=-1", SettingError, "C: expected a finite number above 0, got -1"),
        ("tfidf_lr:C=text", SettingError, "C: expected a finite number above 0, got 'text'"),
        ("tfidf_lr:C", SettingError, "expected key=value after the colon, got 'C'"),
        ("tfidf_lr:C=", SettingError, "expected key=value"),
        ("tfidf_lr:C=[1", SettingError, "cannot read the value of C"),
        (
            "causal_lm:verbalisers={a: b",
            SettingError,
            "cannot read the value of verbalisers: '{a: b'; close its brackets",
        ),
        ("tfidf_lr:", SettingError, "expected key=value after the colon, got ''"),
        ("tfidf_lr:C=1,C=2", SettingError, "C is given twice"),
        ("majority:C=1", SettingError, "unknown setting 'C'"),
        ("hf:", ReaderError, "names no model"),
        ("no_such_module:Thing", ReaderError, "cannot import 'no_such_module'"),
        ("evidep.readers.tfidf:Nothing", ReaderError, "has no 'Nothing'"),
        ("evidep.types:ReaderInfo:name=x,strength=light,interaction=true", ReaderError, "lacks info, fingerprint, fit"),
        (3, ReaderError, "lacks info, fingerprint, fit, encode, scores"),
        (TfidfReader, ReaderError, "is a class, not an object"),
    ],
)
def test_mistakes_are_named(spec, error, message):
    with pytest.raises(error, match=message) as caught:
        make_reader(spec)
    assert "\n" not in str(caught.value)


def test_import_paths_take_classes_functions_and_objects(monkeypatch, tmp_path):
    (tmp_path / "own_readers.py").write_text(
        "from evidep.readers.tfidf import TfidfReader\n"
        "def make(strength_of_penalty):\n    return TfidfReader(C=1 / strength_of_penalty)\n"
        "ready = TfidfReader(C=9.0)\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert make_reader("own_readers:TfidfReader:C=4").fingerprint == TfidfReader(C=4.0).fingerprint
    assert make_reader("own_readers:make:strength_of_penalty=2").fingerprint == TfidfReader(C=0.5).fingerprint
    assert make_reader("own_readers:ready").fingerprint == TfidfReader(C=9.0).fingerprint
    with pytest.raises(SettingError, match="is a reader object"):
        make_reader("own_readers:ready:C=1")


def test_registered_readers():
    register_reader("soft", lambda C=0.01: TfidfReader(C=C, name="soft"))
    assert reader_names()[-1] == "soft"
    assert make_reader("soft:C=0.1").fingerprint == TfidfReader(C=0.1).fingerprint
    with pytest.raises(SettingError, match="replace=True"):
        register_reader("soft", TfidfReader)
    register_reader("soft", TfidfReader, replace=True)
    with pytest.raises(SettingError, match="exists already"):
        register_reader("tfidf_lr", TfidfReader, replace=True)
    for name in ("", "a:b", "a,b", "a b"):
        with pytest.raises(SettingError, match=r"^name: expected letters"):
            register_reader(name, TfidfReader)
    with pytest.raises(SettingError, match=r"^factory"):
        register_reader("x", 3)
    register_reader("wrong", lambda: 3)
    with pytest.raises(ReaderError, match="int lacks info"):
        make_reader("wrong")


def test_reader_objects_are_copied_unless_they_cannot_be_trained():
    template = TfidfReader(C=3.0)
    made = make_reader(template)
    assert made is not template
    assert made.fingerprint == template.fingerprint
    fixed = from_callable(lambda queries, evidences: ["a"], name="f", fingerprint="1")
    assert make_reader(fixed) is fixed
    with pytest.raises(SettingError, match="given with a reader object"):
        make_reader(template, C=1)

    class Locked(MajorityReader):
        def __deepcopy__(self, memo):
            raise TypeError("cannot pickle a lock")

    with pytest.raises(ReaderError, match=r"cannot be copied .cannot pickle a lock.*register_reader"):
        make_reader(Locked())


def test_a_missing_package_names_the_pip_command(monkeypatch):
    real = registry.importlib.import_module

    def without_torch(name):
        if name.startswith("evidep.readers.transformer"):
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
        return real(name)

    monkeypatch.setattr(registry.importlib, "import_module", without_torch)
    for spec in ("minilm", "hf:org/model"):
        with pytest.raises(MissingExtraError, match=r"pip install 'evidep\[transformers\]'"):
            make_reader(spec)


def test_asking_for_names_imports_nothing_heavy():
    code = (
        "import sys, evidep.readers.registry as r; r.make_reader('tfidf_lr'); r.reader_names(); "
        "print([m for m in ('sklearn', 'scipy', 'torch', 'transformers', 'datasets', 'pandas') if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"


def test_fresh_readers_share_nothing():
    one, two = make_reader("tfidf_lr"), make_reader("tfidf_lr")
    assert one is not two
    assert isinstance(one, AdditiveReader)
    assert np.array_equal(one._intercept, two._intercept)


def test_what_the_label_error_advises_works_on_the_command_line(tmp_path, capsys):
    pytest.importorskip("torch")
    import json

    from tiny_models import audit_rows, bert_model
    from transformers import BertConfig, BertForSequenceClassification

    from evidep.cli import main

    model = bert_model(tmp_path / "model")
    BertForSequenceClassification(BertConfig.from_pretrained(model, num_labels=2)).save_pretrained(model)
    for name, seed in (("train", 0), ("test", 1)):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, audit_rows(60, seed))))
    command = ["audit", str(tmp_path / "test.jsonl"), "--train", str(tmp_path / "train.jsonl"), "--k", "19"]
    command += ["--ablations", "none", "--shuffles", "global", "--json", "--readers"]
    assert main([*command, f"hf:{model}:epochs=0"]) == 2
    complaint = capsys.readouterr().err.strip().splitlines()[-1]
    assert "(LABEL_0, LABEL_1) do not match the data's (no, yes); give label_map={checkpoint label: data" in complaint
    assert main([*command, f"majority,hf:{model}:label_map={{LABEL_0: no, LABEL_1: yes}},epochs=0"]) == 0
    assert [r["reader"] for r in json.loads(capsys.readouterr().out)["delta_evi"]] == ["majority", f"hf:{model}"]
