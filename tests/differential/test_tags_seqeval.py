import pytest
from hypothesis import given

from spanshot.tags import spans_from_tags
from strategies_sentences import tag_lists

seqeval = pytest.importorskip("seqeval.metrics.sequence_labeling")


def by_seqeval(tags):
    return sorted((start, last + 1, label) for label, start, last in seqeval.get_entities(tags))


def by_us(tags, scheme):
    return [(span.start, span.end, span.label) for span in spans_from_tags(tags, scheme)]


@given(tag_lists("BI"))
def test_any_bio_sequence_has_the_spans_that_seqeval_finds(tags):
    assert by_us(tags, "bio") == by_seqeval(tags)


@given(tag_lists("BIES"))
def test_any_bioes_sequence_has_the_spans_that_seqeval_finds(tags):
    assert by_us(tags, "bioes") == by_seqeval(tags)
