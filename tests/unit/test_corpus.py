"""Corpus jobs: inputs, parts, the manifest, and what happens to rows that cannot be tagged."""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from killable_corpus import DeadlyTagger, PickyTagger
from spanshot.corpus import CorpusSettings, plan_corpus, tag_corpus
from spanshot.corpus import rows as corpus_rows
from spanshot.corpus.inputs import FileKind, find_files, open_file, stamp_of
from spanshot.corpus.part import PartTagger, _groups
from spanshot.corpus.plan import check_formats, make_plan
from spanshot.corpus.rows import RowReader
from spanshot.corpus.scan import scan
from spanshot.corpus.settings import BLOCK, BLOCK_CHARACTERS
from spanshot.errors import ConfigError, DataError, InputError
from spanshot.formats.schema import arrow_type, to_records
from spanshot.locks import locked
from stub_tagger import NameTagger

SETTINGS = CorpusSettings(rows=512)


def records(count: int) -> list[dict[str, object]]:
    return [{"id": number, "text": f"Ada saw Oslo, row {number}"} for number in range(count)]


def write_json(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def write_input(folder: Path, name: str, count: int) -> Path:
    """Write rows to a file in the format of its name."""
    path = folder / name
    rows = records(count)
    if name.endswith(".parquet"):
        pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=300)
        return path
    if ".csv" in name or ".tsv" in name:
        sign = "," if ".csv" in name else "\t"
        lines = [f"id{sign}text\n", *(f'{row["id"]}{sign}"{row["text"]}"\n' for row in rows)]
    else:
        lines = [f"{json.dumps(row)}\n" for row in rows]
    content = "".join(lines).encode()
    if name.endswith(".gz"):
        content = gzip.compress(content)
    if name.endswith(".zst"):
        pa = pytest.importorskip("pyarrow")
        half = len(content) // 2  # two frames, as tools that compress in parallel write them
        content = b"".join(pa.compress(part, "zstd", asbytes=True) for part in (content[:half], content[half:]))
    path.write_bytes(content)
    return path


def outputs(folder: Path) -> dict[str, bytes]:
    """Return the content of all output files."""
    return {path.name: path.read_bytes() for path in sorted((folder / "tagged").iterdir())}


def tagged_rows(folder: Path) -> list[dict[str, object]]:
    """Return all rows of the output, in order."""
    rows: list[dict[str, object]] = []
    for path in sorted((folder / "tagged").iterdir()):
        if path.suffix == ".parquet":
            rows += pytest.importorskip("pyarrow.parquet").read_table(path).to_pylist()
        else:
            rows += map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return rows


def failed_rows(folder: Path) -> list[dict[str, object]]:
    lines = [line for path in sorted((folder / "failed").iterdir()) for line in path.open(encoding="utf-8")]
    return [json.loads(line) for line in lines]


def tag_here(source: Path, folder: Path, settings: CorpusSettings = SETTINGS, tagger=None) -> Path:
    """Tag a file part by part in this process."""
    for name in ("tagged", "failed"):
        (folder / name).mkdir(parents=True)
    settings = replace(settings, to=settings.to or check_formats([source.name], settings))
    tag_part = PartTagger(tagger or NameTagger(), settings, folder)
    for part in make_plan([scan(str(source), settings)], settings):
        tag_part(part)
    tag_part.close()
    return folder


def expected(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return [{**row, "entities": to_records(NameTagger()(str(row["text"])))} for row in rows]


# Inputs

NAMES = ["a.parquet", "a.jsonl", "a.jsonl.gz", "a.ndjson.zst", "a.csv", "a.csv.gz", "a.tsv.zst"]


@pytest.mark.parametrize("name", NAMES)
def test_any_range_of_rows_can_be_read_in_any_order(tmp_path, name):
    path = write_input(tmp_path, name, 1100)
    assert scan(str(path), SETTINGS).rows == 1100
    reader = RowReader()
    for start, end in [(0, 256), (512, 1024), (256, 768), (1024, 1100), (0, 1100)]:
        blocks = list(reader.read(str(path), start, end))
        assert [number for block in blocks for number in block.numbers] == list(range(start, end))
        texts = [text for block in blocks for text in block.rows.column("text")]
        assert texts == [row["text"] for row in records(1100)[start:end]]
        assert all(block.numbers[0] % BLOCK == 0 and len(block.rows) <= BLOCK for block in blocks)
    reader.close()


def test_a_reader_passes_over_a_compressed_file_once_if_ranges_are_in_order(tmp_path, monkeypatch):
    path = write_input(tmp_path, "a.jsonl.gz", 2000)
    opened = []

    def counted(name):
        opened.append(name)
        return open_file(name)

    monkeypatch.setattr(corpus_rows, "open_file", counted)
    reader = RowReader()
    for start in (0, 512, 1536):
        list(reader.read(str(path), start, start + 256))
    reader.close()
    assert len(opened) == 1


def test_the_digest_of_a_compressed_file_covers_all_its_bytes(tmp_path):
    path = write_input(tmp_path, "a.jsonl.gz", 10)
    before = scan(str(path), SETTINGS).sha256
    path.write_bytes(path.read_bytes() + b"\x00" * 10)
    assert scan(str(path), SETTINGS).sha256 != before


def test_patterns_find_each_file_once_in_order(tmp_path):
    for name in ("b.csv", "a.csv", "deep/c.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    files = find_files([f"{tmp_path}/deep/../*.csv", tmp_path / "a.csv", f"{tmp_path}/**/c.csv"])
    assert files == [str(tmp_path / name) for name in ("a.csv", "b.csv", "deep/c.csv")]


def test_urls_are_found_and_read_by_fsspec(tmp_path):
    memory = pytest.importorskip("fsspec").filesystem("memory")
    for number in range(2):
        memory.pipe(f"/corpus/{number}.jsonl.gz", write_input(tmp_path, f"{number}.jsonl.gz", 300).read_bytes())
    names = find_files(["memory://corpus/*.jsonl.gz", f"file://{tmp_path}/0.jsonl.gz"])
    assert names == ["memory:///corpus/0.jsonl.gz", "memory:///corpus/1.jsonl.gz", f"file://{tmp_path}/0.jsonl.gz"]
    files = [scan(name, SETTINGS) for name in names]
    assert files[0].sha256 == files[2].sha256
    assert stamp_of(names[0])
    assert [len(block.rows) for block in RowReader().read(names[1], 256, 300)] == [44]


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("nothing*.csv", "no file matches"),
        (".", "is a folder; use a pattern"),
        ("nowhere://a.csv", "cannot be opened"),
        ("memory://nothing.csv", "no file matches"),
    ],
)
def test_a_pattern_without_files_is_one_clear_error(tmp_path, monkeypatch, pattern, message):
    pytest.importorskip("fsspec")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=message):
        find_files([pattern])


def test_the_name_of_a_file_decides_on_its_format():
    assert FileKind.of("C:/DATA/A.CSV.GZ") == FileKind("csv", ",", "gzip")
    for name in ("a.txt", "a.gz", "a.parquet.gz", "jsonl"):
        with pytest.raises(DataError):
            FileKind.of(name)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.parquet", b"not parquet", "not a readable Parquet file"),
        ("a.jsonl.gz", gzip.compress(b'{"text": "a"}\n' * 1000, mtime=0)[:-20], "cannot be read"),
        ("a.jsonl.zst", b"no zstd", "cannot be read"),
        ("a.csv", b"id,words\n1,a\n", "no column 'text'"),
        ("a.csv", b"text,entities\na,b\n", "already a column 'entities'"),
    ],
)
def test_files_that_cannot_be_tagged_are_refused_before_the_job_begins(tmp_path, name, content, message):
    pytest.importorskip("pyarrow")
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError, match=f"{name}.*{message}"):
        tag_corpus(NameTagger(), path, tmp_path / "out")
    assert not (tmp_path / "out" / "job.json").exists()


# Parts


@pytest.mark.parametrize("count", [0, 1, 511, 512, 513, 3000])
def test_the_parts_of_a_plan_cover_every_row_once(tmp_path, count):
    files = [replace(scan(str(write_json(tmp_path / f"{n}.jsonl", [])), SETTINGS), rows=n * count) for n in range(3)]
    parts = make_plan(files, SETTINGS)
    for file in files:
        parts_of_file = [part for part in parts if part.file == file.name]
        assert [row for part in parts_of_file for row in range(part.start, part.end)] == list(range(file.rows))
    assert len({part.name for part in parts}) == len(parts)
    assert all(0 < part.rows <= 512 and part.start % BLOCK == 0 for part in parts)


@pytest.mark.parametrize("name", NAMES)
def test_every_row_comes_back_with_its_columns_and_entities(tmp_path, name):
    if ".jsonl" not in name:
        pytest.importorskip("pyarrow", reason="the output is Parquet")
    path = write_input(tmp_path, name, 1100)
    rows = tagged_rows(tag_here(path, tmp_path / "out"))
    if ".csv" in name or ".tsv" in name:
        rows = [{**row, "id": int(str(row["id"]))} for row in rows]
    assert rows == expected(records(1100))


def test_the_entities_are_a_typed_column_and_other_columns_keep_their_types(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    texts = ["Ada", None, "Oslo"] * 300
    table = pa.table(
        {
            "kind": pa.array(["a", "b", None] * 300).dictionary_encode(),
            "text": pa.array(texts, pa.large_string()),
            "nested": [[{"x": number}] for number in range(900)],
        },
        metadata={"from": "a test"},
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=100)
    folder = tag_here(tmp_path / "a.parquet", tmp_path / "out")
    parts = [pq.read_table(path) for path in sorted((folder / "tagged").iterdir())]
    schema = parts[0].schema
    assert schema.field("entities").type == arrow_type()
    assert schema.remove(3).equals(table.schema, check_metadata=False)
    assert schema.metadata[b"from"] == b"a test"
    assert pa.concat_tables(parts).drop_columns("entities").equals(table.filter(table["text"].is_valid()))
    assert [row["row"] for row in failed_rows(folder)] == list(range(1, 900, 3))


@pytest.mark.parametrize(("name", "to"), [("a.parquet", "csv"), ("a.parquet", "jsonl"), ("a.csv", "jsonl")])
def test_tables_can_be_written_in_other_formats(tmp_path, name, to):
    path = write_input(tmp_path, name, 600)
    folder = tag_here(path, tmp_path / "out", replace(SETTINGS, to=to))
    names = [path.name for path in sorted((folder / "tagged").iterdir())]
    assert names == [f"part-00000-000000.{to}", f"part-00000-000001.{to}"]
    if to == "jsonl":
        assert [row["entities"] for row in tagged_rows(folder)] == [row["entities"] for row in expected(records(600))]
    else:
        assert "".join(path.read_text() for path in sorted((folder / "tagged").iterdir())).count('""label""') == 1200


def test_scores_do_not_depend_on_the_size_of_parts(tmp_path):
    """With the packaged model, to the last digit: blocks of rows start at fixed places."""
    import spanshot

    tagger = spanshot.learn(["[Ada](person) saw [Oslo](city)."])
    rows = [{"text": "a b " * (number % 3) + f"Ada saw Oslo {number % 7}"} for number in range(300)]
    path = write_json(tmp_path / "a.jsonl", rows)
    small = tagged_rows(tag_here(path, tmp_path / "small", CorpusSettings(rows=256), tagger))
    assert small == tagged_rows(tag_here(path, tmp_path / "large", CorpusSettings(rows=512), tagger))
    assert len(small) == 300
    assert any(row["entities"] for row in small)


def test_long_texts_are_tagged_in_several_groups():
    texts = [(place, "x" * (BLOCK_CHARACTERS // 3)) for place in range(7)] + [(7, "y" * 3 * BLOCK_CHARACTERS)]
    groups = list(_groups(texts))
    assert [len(group) for group in groups] == [3, 3, 1, 1]
    assert [place for group in groups for place, _ in group] == list(range(8))


# Rows that fail


def test_lines_that_cannot_be_tagged_go_to_a_side_output_with_the_reason(tmp_path):
    lines = [
        b'{"text": "in Oslo", "id": 1}',
        b'{"text": null, "id": 2}',
        b'{"id": 3}',
        b'{"text": 4}',
        b'{"text": "cut off',
        b"[5]",
        b'{"text": "\xff"}',
        b'{"text": "\\ud800"}',
        b'{"text": "x", "n": NaN}',
        b'{"text": "x", "entities": []}',
        json.dumps({"text": "Oslo " * 30}).encode(),
        b"",
        b'{"text": "", "id": 12}',
    ]
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"\n".join(lines))
    folder = tag_here(path, tmp_path / "out", CorpusSettings(max_characters=100))
    assert [row.get("id") for row in tagged_rows(folder)] == [1, 12]
    failed = failed_rows(folder)
    assert [row["row"] for row in failed] == list(range(1, 11))
    assert {row["file"] for row in failed} == {str(path)}
    problems = [
        "no text in 'text'",
        "no text in 'text'",
        "expected a text in 'text'; found int",
        "malformed JSON",
        "expected a JSON object",
        "not UTF-8",
        "not valid Unicode",
        "NaN is not a JSON value",
        "already a field 'entities'",
        "150 characters; the limit is 100",
    ]
    for row, problem in zip(failed, problems, strict=True):
        assert problem in str(row["problem"])
    assert failed[0]["content"] == {"text": None, "id": 2}
    assert failed[3]["content"] == {"line": '{"text": "cut off'}


def test_a_line_without_end_is_cut_and_fails(tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_rows, "LONGEST_LINE", 50)
    path = write_json(tmp_path / "a.jsonl", [{"text": "a"}, {"text": "b" * 500}, {"text": "c"}])
    folder = tag_here(path, tmp_path / "out")
    assert [row["text"] for row in tagged_rows(folder)] == ["a", "c"]
    assert "longer than 50 bytes" in str(failed_rows(folder)[0]["problem"])


def test_rows_of_csv_that_cannot_be_read_fail_one_by_one(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b'id,text\n1,in Oslo\n2,a,b\n\n3,"x"y\n4,\xff\n5,"two\nlines"\n')
    folder = tag_here(path, tmp_path / "out", replace(SETTINGS, to="jsonl"))
    assert [row["id"] for row in tagged_rows(folder)] == ["1", "5"]
    problems = [(row["row"], str(row["problem"])[:13]) for row in failed_rows(folder)]
    assert problems == [(1, "found 3 cells"), (2, "malformed CSV"), (3, "not UTF-8 tex")]


def test_a_text_at_which_the_tagger_fails_does_not_stop_the_others(tmp_path):
    path = write_json(tmp_path / "a.jsonl", [*records(300), {"text": "this fails"}])
    folder = tag_here(path, tmp_path / "out", tagger=PickyTagger())
    assert tagged_rows(folder) == expected(records(300))
    assert [row["problem"] for row in failed_rows(folder)] == ["the tagger failed: InputError: 'fails' in a text"]


def test_a_tagger_that_fails_at_every_text_stops_the_job(tmp_path):
    path = write_json(tmp_path / "a.jsonl", records(10))
    with pytest.raises(InputError):
        tag_here(path, tmp_path / "out", tagger=PickyTagger(word="Ada"))


# Jobs


@pytest.fixture
def corpus(tmp_path) -> Path:
    """Two files, with a row that fails."""
    write_json(tmp_path / "a.jsonl", [*records(900), {"text": None}])
    write_json(tmp_path / "b.jsonl", records(300))
    return tmp_path


def run(corpus: Path, out: str = "out", settings: CorpusSettings = SETTINGS, tagger=None, workers=1, **options):
    return tag_corpus(tagger or NameTagger(), f"{corpus}/*.jsonl", corpus / out, settings, workers=workers, **options)


def manifest(corpus: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (corpus / "out" / "manifest.jsonl").open(encoding="utf-8")]


def test_the_manifest_records_every_part_with_digests_and_counts(corpus):
    progress: list[tuple[int, int, int]] = []
    report = run(corpus, workers=2, progress=lambda *rows: progress.append(rows))
    assert (report.parts, report.rows, report.entities, report.failed, report.rows_before) == (3, 1200, 2400, 1, 0)
    assert progress[0] == (0, 0, 1201)
    assert progress[-1] == (1201, 0, 1201)
    lines = sorted(manifest(corpus), key=lambda line: int(str(line["part"])))
    assert [(Path(str(line["file"])).name, line["start"], line["end"]) for line in lines] == [
        ("a.jsonl", 0, 512),
        ("a.jsonl", 512, 901),
        ("b.jsonl", 0, 300),
    ]
    assert [(line["rows"], line["entities"], line["failed"]) for line in lines] == [
        (512, 1024, 0),
        (388, 776, 1),
        (300, 600, 0),
    ]
    files = {line["file"]: line["input_sha256"] for line in lines}
    assert files == {name: scan(name, SETTINGS).sha256 for name in files}
    assert len({line["tagger_sha256"] for line in lines}) == 1
    assert {path.name for path in (corpus / "out").iterdir()} == {"job.json", "manifest.jsonl", "tagged", "failed"}


def test_a_finished_job_is_not_done_again(corpus):
    run(corpus)
    before = {path: path.stat().st_mtime_ns for path in (corpus / "out").rglob("*.*")}
    report = run(corpus)
    assert report.rows_before == 1201
    assert {path: path.stat().st_mtime_ns for path in (corpus / "out").rglob("*.*")} == before


def test_a_part_whose_output_is_missing_or_cut_is_done_again(corpus):
    run(corpus)
    before = outputs(corpus / "out")
    tagged = corpus / "out" / "tagged"
    (tagged / "part-00000-000000.jsonl").unlink()
    (tagged / "part-00001-000000.jsonl").write_bytes(b"cut")
    assert run(corpus).rows_before == 389
    assert outputs(corpus / "out") == before
    assert run(corpus).rows_before == 1201


def test_an_unfinished_line_of_the_manifest_is_removed_and_a_damaged_one_is_an_error(corpus):
    run(corpus)
    path = corpus / "out" / "manifest.jsonl"
    content = path.read_bytes()
    path.write_bytes(content[:-30])
    assert run(corpus).rows_before < 1201
    assert sorted(line["part"] for line in manifest(corpus)) == [0, 1, 2]
    path.write_bytes(b"{}\n" + content)
    with pytest.raises(DataError, match=r"manifest.jsonl:1: damaged"):
        run(corpus)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: run(c, settings=replace(SETTINGS, rows=256)), "rows was 512 and is 256"),
        (lambda c: run(c, tagger=PickyTagger()), "the tagger is another one"),
        (lambda c: (write_json(c / "c.jsonl", []), run(c)), "other input files: .*c.jsonl is new"),
        (lambda c: ((c / "b.jsonl").unlink(), run(c)), "other input files: .*b.jsonl is missing"),
        (lambda c: (write_json(c / "b.jsonl", records(301)), run(c)), "b.jsonl has changed"),
    ],
)
def test_a_job_does_not_continue_with_another_tagger_or_other_settings_or_inputs(corpus, change, message):
    run(corpus)
    before = outputs(corpus / "out")
    with pytest.raises(ConfigError, match=f"cannot continue this job: .*{message}"):
        change(corpus)
    assert outputs(corpus / "out") == before


def test_a_job_continues_if_an_input_was_only_touched(corpus):
    run(corpus)
    (corpus / "out" / "tagged" / "part-00001-000000.jsonl").unlink()
    os.utime(corpus / "b.jsonl", (1, 1))
    assert run(corpus).rows_before == 901


def test_a_file_that_changes_during_the_job_is_noticed(corpus):
    part = make_plan([scan(str(corpus / "b.jsonl"), SETTINGS)], SETTINGS)[0]
    write_json(corpus / "b.jsonl", records(299))
    with pytest.raises(DataError, match="has changed during the job"):
        list(RowReader().read(part.file, part.start, part.end, part.stamp))
    with pytest.raises(DataError, match="has only 299 rows"):
        list(RowReader().read(part.file, part.start, part.end))


def test_a_folder_with_other_files_is_left_alone(corpus):
    (corpus / "out").mkdir()
    (corpus / "out" / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"contains other files \(mine.txt\)"):
        run(corpus)
    with pytest.raises(ConfigError, match="is a file"):
        run(corpus, out="out/mine.txt")
    assert [path.name for path in (corpus / "out").iterdir()] == ["mine.txt"]


def test_two_jobs_cannot_write_to_one_folder_at_once(corpus):
    run(corpus)
    with locked(corpus / "out" / ".spanshot-lock", 0), pytest.raises(ConfigError, match="another job is writing"):
        run(corpus)


def test_inputs_of_several_formats_are_refused(corpus):
    (corpus / "c.csv").write_text("text\na\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"several formats \(csv, jsonl\)"):
        tag_corpus(NameTagger(), [f"{corpus}/*.jsonl", corpus / "c.csv"], corpus / "out")
    with pytest.raises(ConfigError, match="cannot be written as parquet"):
        run(corpus, settings=CorpusSettings(to="parquet"))


@pytest.mark.parametrize("wrong", [{"rows": 100}, {"rows": 0}, {"max_characters": 0}, {"to": "xml"}, {"column": ""}])
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(ConfigError):
        CorpusSettings(**wrong)


def test_a_plan_counts_and_estimates_but_writes_nothing(corpus):
    plan = plan_corpus(NameTagger(), f"{corpus}/*.jsonl", corpus / "out", SETTINGS, workers=3)
    assert (plan.files, plan.rows, plan.parts, plan.rows_done, plan.workers) == (2, 1201, 3, 0, 3)
    assert plan.rows_per_second > 0
    assert plan.seconds > 0
    assert not (corpus / "out").exists()
    run(corpus)
    again = plan_corpus(NameTagger(), f"{corpus}/*.jsonl", corpus / "out", SETTINGS)
    assert (again.rows_done, again.seconds) == (1201, 0)


@pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL")
def test_a_part_that_kills_every_worker_is_given_up_and_the_others_are_done(corpus):
    write_json(corpus / "b.jsonl", [{"text": "deadly"}])
    with pytest.raises(DataError, match=r"b.jsonl, rows 0 to 1: the worker died 5 times"):
        run(corpus, tagger=DeadlyTagger())
    assert sorted(line["part"] for line in manifest(corpus)) == [0, 1]


def test_an_error_in_a_worker_stops_the_job_with_its_message(corpus):
    with pytest.raises(DataError, match="'Ada' in a text"):
        run(corpus, tagger=PickyTagger(word="Ada"), workers=2)
