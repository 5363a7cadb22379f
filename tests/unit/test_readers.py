import json

import pytest

from spanshot.errors import ConfigError, DataError
from spanshot.formats.columns import read_columns, write_columns
from spanshot.research.corpora.episode_files import read_episode_lines, read_episodes, write_episodes
from spanshot.research.corpora.fewnerd import read_fewnerd_episodes, read_fewnerd_text
from spanshot.research.corpora.genia import read_genia
from spanshot.research.corpora.snips import read_snips_episodes, snips_file
from spanshot.types import Episode, Sentence, Span, SupportSet


@pytest.fixture
def file(tmp_path):
    """Writes a file and gives its path."""

    def write(content, name="data.txt"):
        path = tmp_path / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return path

    return write


def complaint(read, path, **options):
    """What a reader says of a file, without the folder in front."""
    with pytest.raises(DataError) as error:
        read(path, **options)
    error_message = str(error.value)
    assert error_message.startswith(str(path)), error_message
    return error_message.removeprefix(str(path.parent) + "/")


# Columns


def test_columns_are_parted_by_tabs_or_spaces_line_by_line(file):
    path = file("B-Plot  aliens\nI-Plot\tinvading\nO \t earth\n\n")
    assert read_columns(path, label_column="first") == [
        Sentence(("aliens", "invading", "earth"), (Span(0, 2, "Plot"),))
    ]


def test_the_last_sentence_needs_no_blank_line_after_it(file):
    assert [s.words for s in read_columns(file("a O\n\nb O"))] == [("a",), ("b",)]


def test_lines_of_white_space_and_many_blank_lines_part_sentences_once(file):
    assert [s.words for s in read_columns(file("\n\na O\n \t \n\n\nb O\n\n"))] == [("a",), ("b",)]


def test_document_starts_are_skipped_and_hash_signs_are_words(file):
    path = file("-DOCSTART- O\n\n# O\nfun O\n\n-DOCSTART-\n\nb O\n")
    assert [s.words for s in read_columns(path)] == [("#", "fun"), ("b",)]


def test_columns_between_word_and_tag_are_not_read(file):
    assert read_columns(file("Paris NNP I-NP B-LOC\n")) == [Sentence(("Paris",), (Span(0, 1, "LOC"),))]


def test_windows_line_ends_and_a_byte_order_mark_are_no_part_of_words(file):
    path = file("\ufeffParis\tB-LOC\r\n\r\nhere\tO\r\n".encode())
    assert read_columns(path) == [Sentence(("Paris",), (Span(0, 1, "LOC"),)), Sentence(("here",))]


@pytest.mark.parametrize("word", ["a\u2028b", "\u00a0", "a\x85", "", "New York"])
def test_odd_characters_do_not_break_a_line(file, word):
    assert read_columns(file(f"{word}\tO\nnext\tO\n"))[0].words == (word, "next")


def test_inside_tags_alone_are_read_as_bio(file):
    path = file("Japanese I-MISC\nPunk O\nRock I-MISC\nBand I-MISC\n")
    assert read_columns(path)[0].spans == (Span(0, 1, "MISC"), Span(2, 4, "MISC"))


def test_a_named_scheme_goes_before_the_guess(file):
    path = file("a I-x\nb I-y\n")
    assert [span.label for span in read_columns(path, scheme="io")[0].spans] == ["I-x", "I-y"]


def test_a_missing_file_is_named(tmp_path):
    assert complaint(read_columns, tmp_path / "no.txt") == "no.txt: no such file; check the path"


def test_a_directory_is_not_read_as_a_file(tmp_path):
    (tmp_path / "train").mkdir()
    assert complaint(read_columns, tmp_path / "train") == "train: is a directory; name a file in it"


def test_bytes_that_are_not_utf8_are_named_with_their_line(file):
    path = file(b"a\tO\nb\tO\ncaf\xe9\tO\n")
    assert complaint(read_columns, path) == "data.txt:3: byte 0xe9 is not UTF-8; save the file as UTF-8"


@pytest.mark.parametrize(
    ("text", "error_message"),
    [
        ("a O\nb\n", "data.txt:2: found 1 columns; expected 2"),
        ("a\n", "data.txt:1: found 1 columns; expected 2"),
        ("a O\n\nb x O\n", "data.txt:3: found 3 columns; expected 2"),
    ],
)
def test_a_wrong_number_of_columns_is_named_with_its_line(file, text, error_message):
    message = complaint(read_columns, file(text))
    assert message.startswith(error_message)
    assert "a word and its tag on every line" in message


@pytest.mark.parametrize("text", ["", "\n\n \n", "-DOCSTART- O\n"])
def test_a_file_without_sentences_is_refused(file, text):
    assert complaint(read_columns, file(text)).startswith("data.txt: contains no sentence; expected lines")


def test_a_sentence_of_more_than_a_thousand_words_is_taken_for_a_lost_blank_line(file):
    assert len(read_columns(file("w O\n" * 1000))[0]) == 1000
    error_message = complaint(read_columns, file("a O\n\n" + "w O\n" * 1001))
    assert error_message == (
        "data.txt:1003: the sentence has 1,001 words; is a blank line between sentences missing? at most 1,000 words"
    )


def test_a_tag_that_the_scheme_lacks_is_named_with_its_line(file):
    path = file("a O\n\nb O\nc U-x\n")
    error_message = complaint(read_columns, path, scheme="bio")
    assert error_message.startswith("data.txt:4: tag 'U-x' is not one of the bio scheme")
    assert "name another scheme" in error_message


def test_strict_reading_names_the_sentence(file):
    error_message = complaint(read_columns, file("a O\n\nb O\nc I-x\n"), strict=True)
    assert error_message.startswith("data.txt:3: in the sentence that begins here, word 2: 'I-x' cannot follow 'O'")


def test_an_unknown_label_column_is_refused(file):
    with pytest.raises(ConfigError, match="must be 'first' or 'last'; found 'middle'"):
        read_columns(file("a O\n"), label_column="middle")


@pytest.mark.parametrize("word", ["a\tb", "a\nb", " a", "-DOCSTART-", "a\r"])
def test_a_word_that_would_not_be_read_back_is_not_written(tmp_path, word):
    path = tmp_path / "out.txt"
    path.write_text("old", encoding="utf-8")
    with pytest.raises(DataError, match=r"out.txt: sentence 2 cannot be written: .* would not be read back"):
        write_columns(path, [Sentence(("fine",)), Sentence(("fine", word))])
    assert path.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_would_begin_with_a_byte_order_mark_is_not_written(tmp_path):
    marked = Sentence(("\ufeffa",))
    with pytest.raises(DataError, match="sentence 1 cannot be written"):
        write_columns(tmp_path / "out.txt", [marked])
    write_columns(tmp_path / "out.txt", [Sentence(("b",)), marked])
    assert read_columns(tmp_path / "out.txt")[1] == marked


def test_nested_spans_cannot_be_written_as_columns(tmp_path):
    nested = Sentence(("a", "b"), (Span(0, 2, "x"), Span(0, 1, "y")))
    with pytest.raises(DataError, match=r"out.txt: sentence 1 cannot be written: .*overlapping"):
        write_columns(tmp_path / "out.txt", [nested])


# Few-NERD


def test_fewnerd_labels_are_io_even_if_they_look_prefixed(file):
    path = file("Sony\torganization-company\nSony\torganization-company\nI\tO\n")
    assert read_fewnerd_text(path)[0].spans == (Span(0, 2, "organization-company"),)


FEWNERD = {
    "support": {"word": [["Rome", "fell"]], "label": [["city", "O"]]},
    "query": {"word": [["in", "Oslo"], ["nowhere"]], "label": [["O", "city"], ["O"]]},
    "types": ["city"],
}


def test_fewnerd_episodes_are_read_line_by_line(file):
    episode = Episode(
        SupportSet(("city",), (Sentence(("Rome", "fell"), (Span(0, 1, "city"),)),)),
        (Sentence(("in", "Oslo"), (Span(1, 2, "city"),)), Sentence(("nowhere",))),
    )
    path = file(f"{json.dumps(FEWNERD)}\n\n{json.dumps(FEWNERD)}\n")
    assert read_fewnerd_episodes(path) == [episode, episode]


def test_the_order_of_types_is_kept(file):
    record = {
        "support": {"word": [["x", "y"]], "label": [["b", "a"]]},
        "query": {"word": [["z"]], "label": [["O"]]},
        "types": ["b", "a"],
    }
    assert read_fewnerd_episodes(file(record))[0].support.labels == ("b", "a")
    del record["types"]
    assert read_fewnerd_episodes(file(record))[0].support.labels == ("a", "b")


def changed(record, *path, to=None):
    """A copy with one value changed, or taken out if ``to`` is None."""
    copy = json.loads(json.dumps(record))
    inner = copy
    for key in path[:-1]:
        inner = inner[key]
    if to is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = to
    return copy


@pytest.mark.parametrize(
    ("record", "error_message"),
    [
        (changed(FEWNERD, "query"), "the key 'query' is missing; found 'support', 'types'"),
        (changed(FEWNERD, "support", "label"), "support: the key 'label' is missing; found 'word'"),
        (changed(FEWNERD, "support", to=[]), "the value of 'support' must be an object; found a list"),
        (changed(FEWNERD, "types", to="city"), "the value of 'types' must be a list; found a string"),
        (changed(FEWNERD, "types", to=[1]), "'types' must be a list of strings"),
        (changed(FEWNERD, "query", "word", 0, to=["Oslo"]), "query, sentence 1: 1 words but 2 labels"),
        (
            changed(FEWNERD, "query", "word", 1, to=[]),
            "query, sentence 2: the sentence is empty; give it a word",
        ),
        (changed(FEWNERD, "query", "word", 1, to="nowhere"), "query, sentence 2: the words must be a list"),
        (
            changed(FEWNERD, "query", "label", 1, to=[0]),
            "query, sentence 2: the labels must be a list of strings",
        ),
        (changed(FEWNERD, "query", "label", 1), "query: 2 sentences in 'word' but 1 in 'label'"),
        (
            changed(FEWNERD, "query", "label", 1, to=["person"]),
            "the query marks labels that the support set lacks",
        ),
        (
            changed(FEWNERD, "types", to=["city", "person"]),
            "no example for label 'person': mark at least one",
        ),
        (
            changed(FEWNERD, "query", "word", 1, to=["w"] * 1001),
            "query, sentence 2: the sentence has 1,001 words",
        ),
        ([1], "found a list; expected an object with the key 'support'"),
        (7, "found a whole number; expected an object with the key 'support'"),
    ],
)
def test_a_malformed_episode_is_named_with_its_line_and_sentence(file, record, error_message):
    path = file(f"{json.dumps(FEWNERD)}\n{json.dumps(record)}\n")
    assert complaint(read_episode_lines, path).startswith(f"data.txt:2: {error_message}")
    assert complaint(read_episodes, path).startswith(f"data.txt:2: {error_message}")


@pytest.mark.parametrize("read", [read_episodes, read_fewnerd_episodes, read_genia])
def test_a_file_that_was_cut_off_is_named_with_the_line(file, read):
    good = {"id": "1", "tokens": ["a"], "entities": []} if read is read_genia else FEWNERD
    error_message = complaint(read, file(f"{json.dumps(good)}\n{json.dumps(good)[:-9]}"))
    assert error_message.startswith("data.txt:2: malformed JSON at character ")
    assert error_message.endswith("is the file cut off or edited?")


@pytest.mark.parametrize("read", [read_episodes, read_fewnerd_episodes, read_genia])
def test_an_empty_json_lines_file_is_refused(file, read):
    assert complaint(read, file("\n")) == "data.txt: is empty; expected one JSON object per line"


def test_json_nested_beyond_reason_is_an_error_of_the_file(file):
    assert "nested too deeply" in complaint(read_episodes, file("[" * 100_000))


# SNIPS


SNIPS_EPISODE = {
    "support": {"seq_ins": [["play", "jazz", "now"]], "seq_outs": [["O", "B-genre", "O"]]},
    "query": {"seq_ins": [["some", "free", "jazz"]], "seq_outs": [["O", "B-genre", "I-genre"]]},
}
SNIPS = {"PlayMusic": [SNIPS_EPISODE], "GetWeather": [SNIPS_EPISODE, SNIPS_EPISODE]}


def test_snips_episodes_remember_their_domain(file):
    episodes = read_snips_episodes(file(SNIPS))
    assert [episode.domain for episode in episodes] == ["PlayMusic", "GetWeather", "GetWeather"]
    assert episodes[0].support.labels == ("genre",)
    assert episodes[0].query == (Sentence(("some", "free", "jazz"), (Span(1, 3, "genre"),)),)


def test_the_query_may_be_called_batch(file):
    renamed = {"support": SNIPS_EPISODE["support"], "batch": SNIPS_EPISODE["query"]}
    assert read_snips_episodes(file({"PlayMusic": [renamed]})) == read_snips_episodes(
        file({"PlayMusic": [SNIPS_EPISODE]}, "other.json")
    )


@pytest.mark.parametrize(
    ("record", "error_message"),
    [
        (changed(SNIPS, "GetWeather", 1, "query"), "GetWeather, episode 2: the key 'query' is missing"),
        (
            changed(SNIPS, "GetWeather", 1, "query", "seq_outs", 0, to=["O"]),
            "GetWeather, episode 2, query, sentence 1: 3 words but 1 labels; there must be one label",
        ),
        (
            changed(SNIPS, "PlayMusic", 0, "support", "seq_outs", to=[]),
            "PlayMusic, episode 1, support: 1 sentences in 'seq_ins' but 0 in 'seq_outs'",
        ),
        (
            changed(SNIPS, "PlayMusic", 0, "query", "seq_outs", 0, to=["O", "O", "B-artist"]),
            "PlayMusic, episode 1: the query marks labels that the support set lacks: artist",
        ),
        (
            changed(SNIPS, "PlayMusic", 0, "support", "seq_outs", 0, to=["O", "O", "genre"]),
            "PlayMusic, episode 1, support, sentence 1: word 3: tag 'genre' is not one of the bio scheme",
        ),
        (changed(SNIPS, "PlayMusic", to={}), "the value of 'PlayMusic' must be a list; found an object"),
        (changed(SNIPS, "PlayMusic", 0, to="x"), "PlayMusic, episode 1: found a string; expected an object"),
        ({"PlayMusic": []}, "contains no episode"),
        ([1], "expected an object of domains"),
    ],
)
def test_a_malformed_snips_file_is_named_with_domain_and_episode(file, record, error_message):
    path = file(record)
    assert complaint(read_snips_episodes, path).startswith(f"data.txt: {error_message}")
    assert complaint(read_episodes, path).startswith(f"data.txt: {error_message}")


def test_malformed_snips_json_is_named_with_its_line(file):
    path = file(json.dumps(SNIPS, indent=1).replace('"jazz"', '"jazz', 1))
    line = path.read_text(encoding="utf-8").split("jazz")[0].count("\n") + 1
    assert line > 1
    for read in (read_snips_episodes, read_episodes):
        assert complaint(read, path).startswith(f"data.txt:{line}: malformed JSON")


def test_snips_files_are_found_from_the_parent_or_in_the_folder_itself(tmp_path):
    one = tmp_path / "snips" / "xval_snips" / "snips_train_1.json"
    five = tmp_path / "snips" / "xval_snips_shot_5" / "snips-test-7-shot-5.json"
    for path in (one, five):
        path.parent.mkdir(parents=True)
        path.touch()
    for folder in (tmp_path, tmp_path / "snips"):
        assert snips_file(folder, 1, 1, "train") == one
        assert snips_file(folder, 7, 5, "test") == five
    assert snips_file(one.parent, 1, 1, "train") == one
    assert snips_file(str(five.parent), 7, 5, "test") == five


def test_a_snips_file_that_is_not_there_lists_where_it_was_looked_for(tmp_path):
    with pytest.raises(DataError) as error:
        snips_file(tmp_path, 2, 5, "valid")
    assert str(tmp_path / "xval_snips_shot_5" / "snips-valid-2-shot-5.json") in str(error.value)
    assert str(tmp_path / "snips-valid-2-shot-5.json") in str(error.value)


def test_snips_has_seven_folds_and_three_splits(tmp_path):
    with pytest.raises(ConfigError, match="folds 1 to 7; found 8"):
        snips_file(tmp_path, 8, 1, "train")
    with pytest.raises(ConfigError, match="train, valid, test; found 'validation'; did you mean 'valid'"):
        snips_file(tmp_path, 1, 1, "validation")


# GENIA


GENIA = {
    "id": "MEDLINE:1",
    "tokens": ["IL", "-", "2", "gene"],
    "entities": [{"start": 0, "end": 4, "type": "DNA"}, {"start": 0, "end": 3, "type": "protein"}],
}


def test_genia_keeps_nested_entities(file):
    assert read_genia(file(GENIA)) == [Sentence(("IL", "-", "2", "gene"), (Span(0, 3, "protein"), Span(0, 4, "DNA")))]


@pytest.mark.parametrize(
    ("record", "error_message"),
    [
        (changed(GENIA, "tokens"), "the key 'tokens' is missing"),
        (changed(GENIA, "entities", 1, "end"), "entity 2: the key 'end' is missing"),
        (changed(GENIA, "entities", 1, "end", to="3"), "entity 2: the value of 'end' must be a whole number"),
        (
            changed(GENIA, "entities", 1, "end", to=True),
            "entity 2: the value of 'end' must be a whole number",
        ),
        (changed(GENIA, "entities", 1, "end", to=9), "Span(start=0, end=9, label='protein') ends after"),
        (changed(GENIA, "entities", 1, "end", to=0), "a span must have 0 <= start < end"),
        (changed(GENIA, "tokens", to=[]), "the sentence is empty"),
    ],
)
def test_a_malformed_genia_line_is_named(file, record, error_message):
    path = file(f"{json.dumps(GENIA)}\n{json.dumps(record)}\n")
    assert complaint(read_genia, path).startswith(f"data.txt:2: {error_message}")


# Our own episode files


TOUCHING = Sentence(("Rome", "Oslo"), (Span(0, 1, "city"), Span(1, 2, "city")))
FLAT = Sentence(("Rome", "fell"), (Span(0, 1, "city"),))


def test_flat_episodes_are_written_as_fewnerd_writes_them(tmp_path):
    path = tmp_path / "episodes.jsonl"
    write_episodes(path, [Episode(SupportSet.of([FLAT]), (FLAT.without_spans(),))])
    assert json.loads(path.read_text(encoding="utf-8")) == {
        "support": {"word": [["Rome", "fell"]], "label": [["city", "O"]]},
        "query": {"word": [["Rome", "fell"]], "label": [["O", "O"]]},
        "types": ["city"],
    }


def test_spans_stand_in_place_of_labels_only_where_labels_would_lie(tmp_path):
    path = tmp_path / "episodes.jsonl"
    write_episodes(path, [Episode(SupportSet.of([TOUCHING, FLAT]), (FLAT,), "towns")])
    record = json.loads(path.read_text(encoding="utf-8"))
    assert "label" not in record["support"]
    assert record["support"]["spans"] == [[[0, 1, "city"], [1, 2, "city"]], [[0, 1, "city"]]]
    assert record["query"]["label"] == [["city", "O"]]
    assert record["domain"] == "towns"


@pytest.mark.parametrize(
    ("spans", "error_message"),
    [
        ([[[0, 1]]], "support, sentence 1: the spans must be a list of [start, end, label]"),
        ([[[0, "1", "city"]]], "support, sentence 1: a span must be two word positions and a label"),
        ([[[0, 9, "city"]]], "support, sentence 1: Span(start=0, end=9, label='city') ends after"),
        ([[[0, 1, "O"]]], "support, sentence 1: a span's label must be a name other than 'O'"),
    ],
)
def test_malformed_spans_are_named_with_their_sentence(file, spans, error_message):
    record = changed(FEWNERD, "support", to={"word": [["Rome", "fell"]], "spans": spans})
    assert complaint(read_episodes, file(record)).startswith(f"data.txt:1: {error_message}")


def test_a_write_that_fails_leaves_the_old_file_whole(tmp_path):
    path = tmp_path / "episodes.jsonl"
    good = Episode(SupportSet.of([FLAT]), (FLAT,))
    write_episodes(path, [good])

    def then_break():
        yield good
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_episodes(path, then_break())
    assert read_episodes(path) == [good]
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_that_is_not_there_is_named_when_writing(tmp_path):
    with pytest.raises(DataError, match=r"no/episodes.jsonl: cannot be written: the folder .*no does not exist"):
        write_episodes(tmp_path / "no" / "episodes.jsonl", [])


def test_text_that_utf8_cannot_hold_is_refused_when_writing(tmp_path):
    with pytest.raises(DataError, match=r"cannot be written: .* is not valid Unicode"):
        write_columns(tmp_path / "out.txt", [Sentence(("\ud800",))])


def test_the_three_kinds_of_episode_file_are_told_apart(file, tmp_path):
    snips = read_episodes(file(SNIPS, "snips.json"))
    assert snips == read_snips_episodes(tmp_path / "snips.json")
    indented = file(json.dumps(SNIPS, indent=2), "indented.json")
    assert read_episodes(indented) == snips
    fewnerd = read_episodes(file(FEWNERD, "fewnerd.jsonl"))
    assert fewnerd == read_fewnerd_episodes(tmp_path / "fewnerd.jsonl")
    write_episodes(tmp_path / "ours.jsonl", [*snips, *fewnerd])
    assert read_episodes(tmp_path / "ours.jsonl") == [*snips, *fewnerd]
