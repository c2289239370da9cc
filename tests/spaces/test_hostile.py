"""Files that mean harm, or are merely wrong, get one clear sentence and no more."""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from evidence_space import limits, packets
from evidence_space.origins import hub_origin
from evidence_space.sheets import guarded, unguarded
from evidence_space.uploads import read_upload

from evidep.errors import DataError, PacketError

HEAD = "query,evidence,label\n"


def refused(path: Path, words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        read_upload(path)
    message = str(caught.value)
    assert "\n" not in message
    assert str(path.parent) not in message
    assert "evidep-space-" not in message


def write(folder: Path, name: str, content: bytes | str) -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def test_an_ordinary_file_is_read(tmp_path: Path) -> None:
    source = read_upload(write(tmp_path, "a.csv", HEAD + "q,e,yes\nr,f,no\n"))
    assert source.columns == ("query", "evidence", "label")
    assert source.n_rows == 2


def test_gzip_bomb(tmp_path: Path) -> None:
    bomb = gzip.compress(b"x" * (limits.MAX_UNPACKED_BYTES + 10))
    assert len(bomb) < 100_000
    refused(write(tmp_path, "a.csv.gz", bomb), "unpacks to more than 60 MB")


def test_parquet_bomb_of_one_repeated_text(tmp_path: Path) -> None:
    cell = "x" * 40_000
    table = pa.table({"query": [cell] * 15_000, "label": ["a"] * 15_000})
    path = tmp_path / "a.parquet"
    pq.write_table(table, path, compression="zstd")
    assert path.stat().st_size < 1_000_000
    refused(path, "holds more than 40 MB of cells")


def test_too_many_rows_in_parquet_are_seen_before_reading(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"query": pa.array(["q"] * (limits.MAX_ROWS + 1))}), path)
    refused(path, "has 20,001 rows, more than the 20,000")


def test_zip_and_office_files(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("a.txt", "x")
    refused(path, "zip archive or an Excel workbook")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.exe", b"MZ", "expected a file ending in"),
        ("a.csv", b"", "is empty"),
        ("a.csv", b"PAR1xxxx", "give it the ending .parquet"),
        ("a.parquet", b"query,label\n", "is no Parquet file"),
        ("a.parquet", b"PAR1\x00\x00PAR1", "broken Parquet file"),
        ("a.csv.gz", b"query\n", "is no gzip file"),
        ("a.csv", gzip.compress(b"x", mtime=0), "give it the ending .gz"),
        ("a.json.gz", gzip.compress(b"[1]", mtime=0)[:-9], "broken gzip file"),
        ("a.csv", (HEAD + "ä,e,x\n").encode("latin-1"), "not UTF-8"),
        ("a.csv", HEAD.encode("utf-16"), "UTF-16 text"),
        ("a.csv", HEAD.encode("utf-16-le"), "NUL bytes"),
        ("a.json", "[" * 200_000 + "]" * 200_000, "nested too deeply|not JSON"),
        ("a.jsonl", '{"a": ' * 100_000, "not JSON|nested too deeply"),
        ("a.json", "{}{}", "not JSON"),
        ("a.json", "[1, 2]", "must be an object"),
        ("a.csv", HEAD, "no rows"),
        ("a.csv", HEAD + "a,b\n", "expected 3 cells"),
        ("a.csv", "a,a\n1,2\n", "must be unique"),
    ],
)
def test_wrong_files(tmp_path: Path, name: str, content: bytes | str, words: str) -> None:
    refused(write(tmp_path, name, content), words)


def test_huge_cell_names_its_place(tmp_path: Path) -> None:
    content = HEAD + "q,e,x\nq," + "e" * 50_001 + ",x\n"
    refused(write(tmp_path, "a.csv", content), "row 1, column 'evidence': the cell has 50,001 characters")


def test_too_many_rows_and_columns(tmp_path: Path) -> None:
    refused(write(tmp_path, "a.csv", HEAD + "q,e,x\n" * 20_001), "has 20,001 rows")
    refused(write(tmp_path, "b.csv", ",".join(f"c{i}" for i in range(201)) + "\n" + "1," * 200 + "1\n"), "201 columns")


def test_a_large_file_is_refused_by_size(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with path.open("wb") as stream:
        stream.truncate(limits.MAX_FILE_BYTES + 1)
    refused(path, "more than the 20 MB")


def test_the_file_name_is_harmless_in_messages(tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        read_upload(write(tmp_path, "a\x1b[31m.csv", b""))
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("cell", ["=cmd|' /C calc'!A0", "+1+1", "-x", "@SUM(A1)", "\tx", "'quoted"])
def test_no_written_cell_begins_a_formula_and_all_come_back(cell: str) -> None:
    written = guarded(cell)
    assert written.startswith("'")
    assert unguarded(written) == cell


def test_numbers_are_not_quoted() -> None:
    assert [guarded(value) for value in ("-1", "+2.5", "-1e3", "plain", 3)] == ["-1", "+2.5", "-1e3", "plain", 3]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{}", "has no schema_version"),
        ("[" * 100_000, "is no audit packet"),
        ('{"schema_version": "9.0"}', "schema version 9.0"),
        ('{"schema_version": "1.0"}', "breaks the packet schema"),
        ("nope", "is no audit packet"),
    ],
)
def test_files_that_are_no_packet(tmp_path: Path, content: str, words: str) -> None:
    with pytest.raises(PacketError, match=words) as caught:
        packets.read_packet(write(tmp_path, "p.json", content))
    assert str(tmp_path) not in str(caught.value)


def test_a_packet_that_contradicts_itself_is_refused_in_words(tmp_path: Path) -> None:
    from report_packet import small_packet

    document = small_packet().to_dict()
    document["readers"] = []
    with pytest.raises(PacketError, match=r"contradicts itself|breaks the packet schema"):
        packets.packet_of(document)


@pytest.mark.parametrize("name", ["../etc", "/etc/passwd", "a/b/c", "", "a b", "file://x", "spaces/../x"])
def test_hub_ids_that_are_none(name: str) -> None:
    with pytest.raises(DataError, match="expected a dataset id"):
        hub_origin(name, "", "")


def test_a_folder_of_this_machine_is_no_hub_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "owner" / "name").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="cannot be used here"):
        hub_origin("owner/name", "", "")


def test_deep_json_in_a_cell_is_only_text(tmp_path: Path) -> None:
    nested: object = "x"
    for _ in range(50):
        nested = [nested]
    source = read_upload(write(tmp_path, "a.json", json.dumps([{"query": nested, "label": "a"}])))
    assert source.n_rows == 1
