"""``spanshot tag`` on tables: typed columns, all other columns as they were, and resuming after a kill."""

from __future__ import annotations

import csv
import json
import os
import signal
import sys
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import pytest

from spanshot.cli import options
from spanshot.cli.main import main
from spanshot.formats.examples import examples_of_table, read_examples
from spanshot.formats.schema import arrow_type, to_records
from spanshot.formats.tables import Columns
from stub_tagger import NameTagger

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROWS = 3000
TEXTS = [None if number % 7 == 3 else f"Ada saw Oslo {number}" for number in range(ROWS)]


@pytest.fixture(autouse=True)
def _tagger(monkeypatch):
    monkeypatch.setattr(options, "make_tagger", lambda *_, **__: NameTagger())


@pytest.fixture
def parquet(tmp_path):
    """A Parquet file of many types, in row groups that are no multiple of our chunks."""
    table = pa.table(
        {
            "id": pa.array(range(ROWS), pa.int32()),
            "text": TEXTS,
            "day": [date(2024, 1, 1 + number % 28) for number in range(ROWS)],
            "kind": pa.array(["a", "b", None] * (ROWS // 3)).dictionary_encode(),
            "nested": [[{"x": number}] for number in range(ROWS)],
        }
    )
    path = tmp_path / "data.parquet"
    pq.write_table(table, path, row_group_size=700)
    return path


def wanted():
    tagger = NameTagger()
    return [None if text is None else to_records(tagger(text)) for text in TEXTS]


def test_a_parquet_file_gets_a_typed_column_and_keeps_the_others(spanshot, parquet, examples, tmp_path):
    out = tmp_path / "out.parquet"
    result = spanshot("tag", "-e", examples, "-i", parquet, "--column", "text", "-o", out)
    assert result.code == 0, result.err
    before, after = pq.read_table(parquet), pq.read_table(out)
    assert after.drop_columns("entities").equals(before)
    assert after.schema.field("entities").type == arrow_type()
    assert after["entities"].to_pylist() == wanted()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.parquet", "examples.txt", "out.parquet"]


@pytest.mark.parametrize("name", ["out.arrow", "out.csv", "out.tsv"])
def test_the_name_of_the_output_decides_on_its_format(spanshot, parquet, examples, tmp_path, name):
    out = tmp_path / name
    assert spanshot("tag", "-e", examples, "-i", parquet, "-o", out).code == 0
    if name == "out.arrow":
        assert pa.ipc.open_file(out).read_all()["entities"].to_pylist() == wanted()
        return
    with out.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="," if name.endswith("csv") else "\t"))
    assert [json.loads(row["entities"]) if row["entities"] else None for row in rows] == wanted()
    assert [row["day"] for row in rows[:2]] == ["2024-01-01", "2024-01-02"]


def test_cells_of_a_csv_file_stay_as_they_are(spanshot, examples, tmp_path):
    source, out = tmp_path / "data.csv", tmp_path / "out.csv"
    source.write_text('zip,text,note\n007,"Ada, in Oslo",1e5\n,"two\nlines in Rome","say ""hi"""\n', encoding="utf-8")
    assert spanshot("tag", "-e", examples, "-i", source, "-o", out).code == 0
    with out.open(encoding="utf-8", newline="") as file:
        first, second = csv.DictReader(file)
    assert (first["zip"], first["note"], first["text"]) == ("007", "1e5", "Ada, in Oslo")
    assert (second["zip"], second["note"], second["text"]) == ("", 'say "hi"', "two\nlines in Rome")
    assert [entity["text"] for entity in json.loads(second["entities"])] == ["Rome"]
    assert spanshot("tag", "-e", examples, "-i", source, "-o", tmp_path / "out.parquet").code == 0
    assert pq.read_table(tmp_path / "out.parquet")["entities"][1].as_py()[0]["label"] == "city"


def test_rows_of_a_table_can_be_written_in_other_formats(spanshot, examples, tmp_path):
    source, out = tmp_path / "data.csv", tmp_path / "out.jsonl"
    source.write_text("id,body\n7,Ada in Oslo\n", encoding="utf-8")
    assert spanshot("tag", "-e", examples, "-i", source, "--column", "body", "-o", out).code == 0
    record = json.loads(out.read_text(encoding="utf-8"))
    assert (record["id"], [entity["text"] for entity in record["entities"]]) == ("7", ["Ada", "Oslo"])


@dataclass(frozen=True, repr=False)
class _Dying(NameTagger):
    """Kills its process after some texts."""

    left: int = 0

    def pipe(self, texts, batch_size=32):
        for entities in super().pipe(texts, batch_size):
            if len(self.seen) > self.left:
                os.kill(os.getpid(), signal.SIGKILL)
            yield entities


@pytest.mark.skipif(os.name != "posix", reason="needs fork and SIGKILL")
@pytest.mark.parametrize("name", ["out.parquet", "out.csv"])
def test_a_killed_job_is_resumed_without_losing_or_repeating_a_row(parquet, examples, tmp_path, monkeypatch, name):
    out = tmp_path / name
    command = ["tag", "-e", str(examples), "-i", str(parquet), "-o", str(out), "--resume"]
    kills = 0
    while not out.exists():
        assert kills < 10
        child = os.fork()
        if not child:
            tagger = _Dying(left=1300 + 37 * kills)
            monkeypatch.setattr(options, "make_tagger", lambda *_, **__: tagger)  # noqa: B023
            with Path(os.devnull).open("w") as nowhere:
                sys.stderr = nowhere
                try:
                    main(command)
                finally:
                    os._exit(0)
        _, status = os.waitpid(child, 0)
        kills += status == signal.SIGKILL
    assert kills >= 1
    if name == "out.parquet":
        found = pq.read_table(out)
        ids, entities = found["id"].to_pylist(), found["entities"].to_pylist()
    else:
        with out.open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        ids = [int(row["id"]) for row in rows]
        entities = [json.loads(row["entities"]) if row["entities"] else None for row in rows]
    assert ids == list(range(ROWS))
    assert entities == wanted()
    assert not list(tmp_path.glob(".*"))


def test_a_job_is_not_resumed_on_another_input(spanshot, parquet, examples, tmp_path, monkeypatch):
    out = tmp_path / "out.parquet"

    @dataclass(frozen=True, repr=False)
    class Interrupted(NameTagger):
        def pipe(self, texts, batch_size=32):
            for entities in super().pipe(texts, batch_size):
                if len(self.seen) > 1500:
                    raise KeyboardInterrupt
                yield entities

    monkeypatch.setattr(options, "make_tagger", lambda *_, **__: Interrupted())
    result = spanshot("tag", "-e", examples, "-i", parquet, "-o", out)
    assert "kept the results of 1,400 rows; continue with --resume" in result.err
    monkeypatch.setattr(options, "make_tagger", lambda *_, **__: NameTagger())
    changed = pq.read_table(parquet).slice(1)
    pq.write_table(changed, parquet, row_group_size=700)
    result = spanshot("tag", "-e", examples, "-i", parquet, "-o", out, "--resume")
    assert result.code == 2
    assert "cannot resume: the input has changed" in result.err


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", b"a,b\n1,2\n", "no column 'text'; the columns are a, b"),
        ("a.csv", b"text,b\n1\n", "a.csv:2: found 1 cells; expected 2"),
        ("a.csv", b"text,text\n1,2\n", "two columns have the same name"),
        ("a.csv", b"text\n\xff\n", "is not UTF-8"),
        ("a.csv", b"text,entities\n1,2\n", "there is already a column 'entities'"),
        ("a.parquet", b"PAR1", "is not a readable Parquet file"),
        ("a.arrow", b"nothing", "is not a readable Arrow file"),
        ("none.csv", None, "no such file"),
    ],
)
def test_tables_that_cannot_be_read_are_one_line_errors(spanshot, examples, tmp_path, name, content, message):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    result = spanshot("tag", "-e", examples, "-i", tmp_path / name, "-o", tmp_path / "out.csv")
    assert result.code == 2
    assert message in result.err
    assert result.err.count("\n") == 1


# Examples from tables

SPANS = [{"text": "in Oslo", "spans": [{"start": 3, "end": 7, "label": "city"}]}, {"text": "no", "spans": []}]


def test_examples_are_read_from_frames_with_text_and_spans():
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    for table in (pd.DataFrame(SPANS), pl.DataFrame(SPANS), pa.Table.from_pylist(SPANS)):
        assert examples_of_table(table).labels == {"city": 1}
    renamed = pa.Table.from_pylist(SPANS).rename_columns(["body", "marks"])
    assert examples_of_table(renamed, Columns(text="body", spans="marks")).labels == {"city": 1}


def test_examples_are_read_from_datasets_with_numbered_tags(tmp_path):
    datasets = pytest.importorskip("datasets")
    names = ["O", "B-city", "I-city"]
    features = datasets.Features(
        {"tokens": datasets.List(datasets.Value("string")), "ner_tags": datasets.List(datasets.ClassLabel(names=names))}
    )
    rows = {"tokens": [["in", "New", "York"], ["no"]], "ner_tags": [[0, 1, 2], [0]]}
    dataset = datasets.Dataset.from_dict(rows, features=features)
    [first, _] = examples_of_table(dataset).sentences
    assert [(span.start, span.end, span.label) for span in first.spans] == [(1, 3, "city")]
    dataset.to_parquet(tmp_path / "data.parquet")
    assert read_examples(tmp_path / "data.parquet").labels == {"city": 1}
    bare = pa.table(rows)
    assert examples_of_table(bare, Columns(names=names)).labels == {"city": 1}
    with pytest.raises(Exception, match="the ner_tags are numbers; give their names"):
        examples_of_table(bare)
