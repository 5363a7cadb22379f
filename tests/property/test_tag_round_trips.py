from hypothesis import given
from hypothesis import strategies as st

from spanshot.errors import DataError
from spanshot.formats.columns import read_columns, write_columns
from spanshot.research.corpora.episode_files import read_episodes, write_episodes
from spanshot.tags import guess_scheme, spans_from_tags, tags_from_spans
from spanshot.types import Span
from strategies_sentences import episodes, flat_spans, sentences, tag_lists


@given(st.integers(1, 12).flatmap(lambda length: st.tuples(st.just(length), flat_spans(length))), st.data())
def test_flat_spans_survive_bio_and_bioes_and_are_well_formed(case, data):
    length, spans = case
    scheme = data.draw(st.sampled_from(["bio", "bioes"]))
    tags = tags_from_spans(length, spans, scheme)
    assert len(tags) == length
    assert spans_from_tags(tags, scheme, strict=True) == tuple(sorted(spans))


@given(st.integers(1, 12).flatmap(lambda length: st.tuples(st.just(length), flat_spans(length))))
def test_io_merges_touching_spans_of_one_label_and_nothing_else(case):
    length, spans = case
    merged: list[Span] = []
    for span in sorted(spans):
        if merged and merged[-1].end == span.start and merged[-1].label == span.label:
            span = Span(merged.pop().start, span.end, span.label)
        merged.append(span)
    assert spans_from_tags(tags_from_spans(length, spans, "io"), "io") == tuple(merged)


@given(tag_lists("BIES"))
def test_any_tags_give_spans_that_cover_just_the_words_that_are_not_outside(tags):
    covered = [False] * len(tags)
    for span in spans_from_tags(tags, "bioes"):
        for position in range(span.start, span.end):
            assert not covered[position]
            assert tags[position].endswith(f"-{span.label}")
            covered[position] = True
    assert covered == [tag != "O" for tag in tags]


@given(st.lists(flat_spans(6), min_size=1, max_size=4))
def test_what_was_written_as_bio_is_never_taken_for_io(spans):
    sequences = [tags_from_spans(6, some, "bio") for some in spans]
    guessed = guess_scheme(sequences)
    assert guessed == "bio" or not any(spans)


@given(st.lists(sentences(flat_spans), min_size=1, max_size=4), st.sampled_from(["first", "last"]))
def test_column_files_give_back_what_was_written_or_refuse_to_write_it(tmp_path_factory, written, label_column):
    path = tmp_path_factory.mktemp("columns") / "sentences.txt"
    try:
        write_columns(path, written, label_column=label_column)
    except DataError:
        assert not path.exists()
    else:
        assert read_columns(path, scheme="bio", label_column=label_column) == written


@given(st.lists(episodes(), min_size=1, max_size=3))
def test_episode_files_give_back_equal_episodes(tmp_path_factory, written):
    path = tmp_path_factory.mktemp("episodes") / "episodes.jsonl"
    write_episodes(path, written)
    assert read_episodes(path) == written
