"""Tagging the texts in a column of a table, with the real libraries."""

from __future__ import annotations

import re

import pytest

import spanshot
from spanshot.errors import ConfigError, DataError, InputError
from spanshot.formats.schema import arrow_type, polars_type, to_records
from stub_tagger import NameTagger

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
datasets = pytest.importorskip("datasets")

TEXTS = ["Ada went to Oslo.", None, "", "Oslo and Rome", "nothing"]
IDS = [7, 7, 3, 1, 2]
TAGGER = NameTagger()
WANTED = [None if text is None else to_records(TAGGER(text)) for text in TEXTS]


def pandas_frame():
    return pd.DataFrame({"id": IDS, "text": TEXTS}, index=[5, 5, 4, 3, 2])


def arrow_table():
    return pa.table({"id": IDS, "text": TEXTS})


TABLES = {
    "pandas": (pandas_frame, lambda frame: [None if row is pd.NA else row for row in frame["entities"]]),
    "polars": (lambda: pl.DataFrame({"id": IDS, "text": TEXTS}), lambda frame: frame["entities"].to_list()),
    "polars lazy": (
        lambda: pl.LazyFrame({"id": IDS, "text": TEXTS}),
        lambda frame: frame.select("entities").collect()["entities"].to_list(),
    ),
    "arrow": (arrow_table, lambda table: table["entities"].to_pylist()),
    "arrow batch": (lambda: arrow_table().to_batches()[0], lambda batch: batch.column("entities").to_pylist()),
    "arrow stream": (
        lambda: pa.RecordBatchReader.from_batches(arrow_table().schema, arrow_table().to_batches(max_chunksize=2)),
        lambda reader: reader.read_all()["entities"].to_pylist(),
    ),
    "dataset": (
        lambda: datasets.Dataset.from_dict({"id": IDS, "text": TEXTS}),
        lambda dataset: dataset["entities"][:],
    ),
    "dataset stream": (
        lambda: datasets.Dataset.from_dict({"id": IDS, "text": TEXTS}).to_iterable_dataset(),
        lambda dataset: [row["entities"] for row in dataset],
    ),
}


@pytest.mark.parametrize("name", TABLES)
def test_every_kind_of_table_gets_a_column_of_entities_and_keeps_its_own(name):
    make, entities = TABLES[name]
    table = make()
    tagged = TAGGER.tag_frame(table)
    assert type(tagged) is type(table)
    assert entities(tagged) == WANTED


def test_a_pandas_frame_keeps_its_index_and_columns_and_is_not_changed_itself():
    frame = pandas_frame()
    tagged = TAGGER.tag_frame(frame)
    assert list(frame.columns) == ["id", "text"]
    assert list(tagged.columns) == ["id", "text", "entities"]
    assert tagged.index.equals(frame.index)
    assert tagged["entities"].dtype == pd.ArrowDtype(arrow_type())
    pd.testing.assert_frame_equal(tagged[["id", "text"]], frame)


def test_the_column_has_the_same_type_in_every_library():
    frame = TAGGER.tag_frame(pl.DataFrame({"text": TEXTS}), because=True)
    assert frame.schema["entities"] == polars_type(because=True)
    table = TAGGER.tag_frame(arrow_table(), because=True)
    assert table.schema.field("entities").type == arrow_type(because=True)
    dataset = TAGGER.tag_frame(datasets.Dataset.from_dict({"text": TEXTS}), because=True)
    assert dataset.features.arrow_schema.field("entities").type == arrow_type(because=True)
    assert table["entities"][0].as_py()[0]["because"] == [{"text": "Ada", "example": "Ada !", "weight": 1.0}]


def test_no_text_at_all_still_gives_a_typed_column():
    assert TAGGER.tag_frame(pl.DataFrame({"text": []}, schema={"text": pl.String})).schema["entities"] == polars_type()
    empty = pd.DataFrame({"text": pd.Series([], dtype=object)})
    assert TAGGER.tag_frame(empty)["entities"].dtype == pd.ArrowDtype(arrow_type())


def test_splits_of_a_dataset_are_tagged_one_by_one():
    splits = datasets.DatasetDict({"train": datasets.Dataset.from_dict({"text": TEXTS})})
    assert TAGGER.tag_frame(splits)["train"]["entities"][:] == WANTED


def test_a_stream_is_tagged_only_as_far_as_it_is_read():
    table = pa.table({"text": ["Oslo"] * 10_000})
    reader = pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=2000))
    tagger = NameTagger()
    next(iter(tagger.tag_frame(reader)))
    assert len(tagger.seen) <= 2000


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TAGGER.tag_frame(pandas_frame(), "txt"), "no column 'txt'; .* did you mean 'text'"),
        (lambda: TAGGER.tag_frame(pandas_frame(), output="id"), "there is already a column 'id'"),
        (lambda: TAGGER.tag_frame(pandas_frame(), "id"), "row 1: expected a text; found int"),
        (lambda: TAGGER.tag_frame(["a"]), "expected a data frame .* found list"),
    ],
)
def test_mistakes_are_one_line_errors(call, message):
    with pytest.raises((ConfigError, DataError, InputError)) as caught:
        call()
    assert re.search(message, str(caught.value))
    assert "\n" not in str(caught.value)


def test_missing_values_of_pandas_give_missing_entities():
    frame = pd.DataFrame({"text": [float("nan"), pd.NA, None, "Oslo"]}, dtype=object)
    found = TAGGER.tag_frame(frame)["entities"]
    assert found.isna().tolist() == [True, True, True, False]


def test_a_real_tagger_has_the_method():
    assert spanshot.Tagger.tag_frame.__doc__
