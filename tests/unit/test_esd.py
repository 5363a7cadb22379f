from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from spanshot.decode.conflicts import BeamSearch, BeamSoftNMS, Greedy, KeepAll, SoftNMS
from spanshot.decode.scores import SpanScores
from spanshot.decode.spans import SpanDecoder
from spanshot.errors import ConfigError
from spanshot.research.methods.esd import Esd, EsdSettings, SpanMemory
from spanshot.research.nn.pretrained import load_pretrained
from spanshot.research.nn.spans import bounds_up_to
from spanshot.types import Sentence, Span, SupportSet
from strategies_sentences import any_spans, sentences
from tiny import toy_episodes, write_tiny_encoder
from tiny_esd import attended, matched, small_esd, some_memory

EPISODE = toy_episodes(1, support=4, seed=2)[0]
SUPPORT = EPISODE.support
QUERY = [sentence.without_spans() for sentence in EPISODE.query]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return load_pretrained(str(write_tiny_encoder(tmp_path_factory.mktemp("encoder")))).eval()


@pytest.fixture(scope="module")
def make(encoder):
    return partial(small_esd, encoder)


@torch.no_grad()
def remembered(method: Esd, support: SupportSet = SUPPORT) -> SpanMemory:
    return method.remember(support)


def sizes(rows: tuple[slice, ...]) -> list[int]:
    return [own.stop - own.start for own in rows]


# The partition of O


def part_of_o(span: tuple[int, int], entities: set[tuple[int, int]]) -> str | None:
    """The paper's definition, on sets of word positions: which part of O a span is in, if it is O at all."""
    if span in entities:
        return None
    own = set(range(*span))
    others = [set(range(*entity)) for entity in entities]
    if not any(own & other for other in others):
        return "outside"
    if any(own & other == own for other in others):
        return "inside"
    return "across"


@st.composite
def marked_sentences(draw):
    count = draw(st.integers(1, 9))
    return Sentence(("a",) * count, draw(any_spans(count)))


@given(st.lists(marked_sentences(), min_size=1, max_size=3), st.integers(1, 5))
def test_o_is_parted_as_the_paper_defines_it(make, parted, longest):
    parted = [*parted, Sentence(("x", "y"), (Span(0, 1, "city"),))]
    support = SupportSet.of(parted)
    method = make(longest=longest)
    wanted = {"outside": 0, "inside": 0, "across": 0}
    for sentence in parted:
        entities = {(span.start, span.end) for span in sentence.spans}
        candidates = {(s, e) for s in range(len(sentence)) for e in range(s + 1, len(sentence) + 1) if e - s <= longest}
        for span in candidates | entities:
            if part := part_of_o(span, entities):
                wanted[part] += 1
    memory = remembered(method, support)
    assert sizes(memory.o_rows) == [count for count in wanted.values() if count]
    counts = [sum(span.label == label for s in parted for span in s.spans) for label in support.labels]
    assert sizes(memory.label_rows) == counts


def test_the_parts_of_o_of_a_sentence_seen_by_eye(make):
    """``we like New York`` with New York marked, spans of up to two words."""
    sentence = Sentence(("we", "like", "New", "York"), (Span(2, 4, "city"),))
    method = make(longest=2, isa=False)
    memory = remembered(method, SupportSet.of([sentence]))
    with torch.no_grad():
        words = method.encoder([sentence])
        bounds = np.array([(2, 4), (0, 1), (0, 2), (1, 2), (2, 3), (3, 4), (1, 3)])
        wanted = method.span_vectors(words, [bounds]).vectors[0]
    assert (memory.label_rows, memory.o_rows) == ((slice(0, 1),), (slice(1, 4), slice(4, 6), slice(6, 7)))
    torch.testing.assert_close(memory.vectors, wanted, atol=1e-5, rtol=1e-5)


def test_every_span_of_the_support_is_remembered_once(make):
    for changes in ({}, {"o_partition": False}):
        memory = remembered(make(**changes))
        rows = [*memory.label_rows, *memory.o_rows]
        assert rows[0].start == 0
        assert all(one.stop == after.start for one, after in itertools.pairwise(rows))
        assert rows[-1].stop == len(memory.vectors)
        assert len(memory.vectors) == sum(len(bounds_up_to(len(s), 3)) for s in SUPPORT.sentences)


def test_an_entity_longer_than_the_longest_candidate_is_remembered_all_the_same(make):
    sentence = Sentence(tuple("abcdefg"), (Span(1, 6, "title"),))
    memory = remembered(make(longest=2), SupportSet.of([sentence]))
    assert sizes(memory.label_rows) == [1]
    assert sum(sizes(memory.o_rows)) == len(bounds_up_to(7, 2))


def test_without_the_partition_o_is_one_class_of_the_same_spans(make):
    parted, whole = remembered(make()), remembered(make(o_partition=False))
    assert len(parted.o_rows) == 3
    assert len(whole.o_rows) == 1
    assert sum(sizes(parted.o_rows)) == sum(sizes(whole.o_rows))
    rows = [tuple(row) for row in parted.vectors.round(decimals=4).tolist()]
    assert sorted(rows) == sorted(tuple(row) for row in whole.vectors.round(decimals=4).tolist())


@pytest.mark.parametrize("limit", [1, 2, 5, 1000])
def test_at_most_so_many_spans_of_each_part_of_o_are_kept_and_all_of_the_labels(make, limit):
    whole, thinned = remembered(make()), remembered(make(o_spans=limit))
    assert sizes(thinned.o_rows) == [min(limit, size) for size in sizes(whole.o_rows)]
    assert thinned.label_rows == whole.label_rows
    kept = {tuple(row) for row in thinned.vectors.tolist()}
    assert kept <= {tuple(row) for row in whole.vectors.tolist()}
    assert len(kept) == len(thinned.vectors)


def test_kept_spans_of_o_are_spread_over_the_whole_support(make):
    words = tuple("abcdefghij")
    support = SupportSet.of([Sentence((*words, "Oslo"), (Span(10, 11, "city"),)), Sentence(words[::-1])])
    method = make(longest=1, isa=False, o_spans=4)
    memory, whole = remembered(method, support), remembered(make(longest=1, isa=False), support)
    (rows,) = memory.o_rows
    places = [whole.vectors[whole.o_rows[0]].tolist().index(row) for row in memory.vectors[rows].tolist()]
    assert places == [0, 5, 10, 15]


# Matching


def naive_scores(
    query: Tensor, classes: list[Tensor], parts_of_o: list[Tensor], insa: bool, scaled: bool
) -> list[float]:
    """The paper's scores of one query span: minus the squared distance to the prototype of each class."""
    scale = len(query) ** -0.5 if scaled else 1.0

    def prototype(spans: Tensor) -> Tensor:
        return attended(query, spans, scale) if insa else spans.mean(0)

    o_prototype = attended(query, torch.stack([prototype(spans) for spans in parts_of_o]), scale)
    return [-scale * float(((query - p) ** 2).sum()) for p in (o_prototype, *map(prototype, classes))]


def by_class(memory: SpanMemory, support: Tensor) -> tuple[list[Tensor], list[Tensor]]:
    return [support[rows] for rows in memory.label_rows], [support[rows] for rows in memory.o_rows]


@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 3), st.booleans(), st.booleans())
def test_matching_is_what_a_loop_over_the_papers_formulas_gives(make, seed, labels, parts, insa, scaled):
    memory, query = some_memory(seed, labels, parts)
    classes, parts_of_o = by_class(memory, memory.vectors)
    wanted = [naive_scores(span, classes, parts_of_o, insa, scaled) for span in query]
    found = matched(make(isa=False, csa=False, insa=insa, scaled=scaled), memory, query)
    torch.testing.assert_close(found, torch.tensor(wanted), atol=1e-3, rtol=1e-4)


@given(st.integers(0, 10_000), st.booleans(), st.booleans())
def test_cross_attention_changes_query_and_support_each_by_the_other_as_it_was(make, seed, insa, scaled):
    method = make(insa=insa, scaled=scaled)
    memory, query = some_memory(seed, 2, 3)
    with torch.no_grad():
        new_support = method.cross(memory.vectors[None], query[None])[0]
        new_query = method.cross(query[None], memory.vectors[None])[0]
    classes, parts_of_o = by_class(memory, new_support)
    wanted = [naive_scores(span, classes, parts_of_o, insa, scaled) for span in new_query]
    torch.testing.assert_close(matched(method, memory, query), torch.tensor(wanted), atol=1e-3, rtol=1e-4)


def test_without_attention_scores_are_minus_squared_distances_to_the_means(make):
    memory = SpanMemory(
        ("city", "day"),
        torch.tensor([[0.0, 0.0], [2.0, 0.0], [0.0, 4.0], [1.0, 1.0], [1.0, 3.0]]),
        (slice(0, 2), slice(2, 3)),
        (slice(3, 5),),
    )
    found = matched(
        make(size=2, isa=False, csa=False, insa=False, o_partition=False, scaled=False),
        memory,
        torch.tensor([[1.0, 0.0], [0.0, 3.0]]),
    )
    # means: O (1, 2), city (1, 0), day (0, 4)
    assert found.tolist() == [[-4.0, 0.0, -17.0], [-2.0, -10.0, -1.0]]


def test_padding_of_the_query_changes_no_score(make):
    method = make()
    memory, query = some_memory(0, 2, 3)
    padded = torch.cat([query, torch.full((3, 8), 9.0)])[None]
    mask = torch.tensor([[True] * 6 + [False] * 3])
    with torch.no_grad():
        found = method.match(memory, padded, mask)[0, :6]
    torch.testing.assert_close(found, matched(method, memory, query), atol=1e-5, rtol=1e-5)


def test_without_a_span_of_o_in_the_support_o_is_infinitely_far(make):
    memory, query = some_memory(0, 2, 1)
    labels_alone = replace(memory, vectors=memory.vectors[: memory.label_rows[-1].stop], o_rows=())
    found = matched(make(), labels_alone, query)
    assert (found[:, 0] == -torch.inf).all()
    assert torch.isfinite(found[:, 1:]).all()


# Switching parts off


def names(method: Esd) -> set[str]:
    return {name.split(".")[0] for name, _ in method.named_parameters()}


@pytest.mark.parametrize(
    ("off", "gone"),
    [("isa", {"intra"}), ("csa", {"cross"}), ("insa", set()), ("o_partition", set())],
)
def test_a_part_that_is_switched_off_takes_its_weights_along_and_changes_the_scores(make, off, gone):
    whole, without = make(), make(**{off: False})
    assert names(whole) - names(without) == gone
    assert names(without) <= names(whole)
    without.load_state_dict({name: whole.state_dict()[name] for name in without.state_dict()})
    for (_, scores), (_, other) in zip(
        whole.fit(SUPPORT).scores(QUERY), without.fit(SUPPORT).scores(QUERY), strict=True
    ):
        assert scores.scores.shape == other.scores.shape
        assert np.abs(scores.scores - other.scores).max() > 1e-4


def test_without_intra_attention_a_span_does_not_see_the_other_spans_of_its_sentence(make):
    words = ("Oslo", "is", "not", "Rome")
    few, many = np.array([(0, 1)]), np.array([(0, 1), (1, 3), (3, 4)])
    for isa in (False, True):
        method = make(isa=isa)
        with torch.no_grad():
            encoded = method.encoder([Sentence(words)])
            alone, among = (method.span_vectors(encoded, [bounds]).vectors[0, 0] for bounds in (few, many))
        assert torch.allclose(alone, among, atol=1e-5) is not isa


def test_without_cross_attention_a_span_is_scored_whatever_else_is_in_the_query_sentence(make):
    memory, query = some_memory(0, 2, 3)
    for csa in (False, True):
        method = make(csa=csa)
        same = torch.allclose(matched(method, memory, query)[:2], matched(method, memory, query[:2]), atol=1e-5)
        assert same is not csa


@pytest.mark.parametrize(
    ("name", "kind"),
    [("none", KeepAll), ("greedy", Greedy), ("soft_nms", SoftNMS), ("beam", BeamSearch), ("bsnms", BeamSoftNMS)],
)
def test_refining_is_done_by_the_named_strategy(make, name, kind):
    assert type(make(refine=name).resolver()) is kind


def test_refining_has_the_papers_settings_unless_told_otherwise(make):
    assert EsdSettings().resolver() == BeamSoftNMS(width=5, overlap=1e-5, decay=1e-5, threshold=0.1)
    changed = make(beam=3, overlap=0.1, decay=0.4, threshold=0.2).resolver()
    assert changed == BeamSoftNMS(width=3, overlap=0.1, decay=0.4, threshold=0.2)


def test_refining_leaves_no_overlap_and_none_leaves_all(make):
    support = SupportSet.of([Sentence(("Oslo",), (Span(0, 1, "city"),))])  # no O span: everything is a city
    everything = make(refine="none").fit(support)(QUERY)
    assert [len(own) for own in everything] == [len(bounds_up_to(len(sentence), 3)) for sentence in QUERY]
    for own in make().fit(support)(QUERY):
        assert own
        assert not any(a.span.overlaps(b.span) for a in own for b in own if a is not b)


def test_an_unknown_way_of_refining_is_refused_with_the_known_ones():
    with pytest.raises(ConfigError, match="none, greedy, soft_nms, beam, bsnms; found 'best'"):
        EsdSettings(refine="best")


def test_no_query_span_is_longer_than_the_longest(make):
    ((_, scores),) = make(longest=2).fit(SUPPORT).scores([Sentence(tuple("abcdef"))])
    assert np.array_equal(scores.bounds, bounds_up_to(6, 2))
    assert scores.scores.shape == (len(scores.bounds), 1 + len(SUPPORT.labels))


# From scores to spans


@st.composite
def span_scores(draw) -> SpanScores:
    labels = tuple(f"label {n}" for n in range(draw(st.integers(1, 4))))
    bounds = bounds_up_to(draw(st.integers(1, 5)), 3)
    value = st.floats(-30, 30, width=32)
    row = st.lists(value, min_size=1 + len(labels), max_size=1 + len(labels))
    rows = draw(st.lists(row, min_size=len(bounds), max_size=len(bounds)))
    return SpanScores(labels, bounds, np.array(rows, dtype=np.float32))


@given(span_scores(), st.floats(-5, 5))
def test_probabilities_are_the_softmax_of_the_scores_after_the_bias(scores, o_bias):
    logits = torch.tensor(scores.scores, dtype=torch.float64)
    logits[:, 0] -= o_bias
    probabilities = logits.softmax(-1)
    found = SpanDecoder(KeepAll())(scores, o_bias)
    best = logits.argmax(-1)
    wanted = [
        (Span(int(start), int(end), scores.labels[column - 1]), probabilities[row, column].item())
        for row, ((start, end), column) in enumerate(zip(scores.bounds, best.tolist(), strict=True))
        if column
    ]
    assert [one.span for one in found] == [span for span, _ in wanted]
    assert [one.score for one in found] == pytest.approx([score for _, score in wanted], abs=1e-9)


@given(span_scores(), st.floats(-5, 5), st.floats(0, 5))
def test_more_bias_against_o_never_finds_fewer_spans(scores, o_bias, more):
    few = {one.span for one in SpanDecoder(KeepAll())(scores, o_bias)}
    many = {one.span for one in SpanDecoder(KeepAll())(scores, o_bias + more)}
    assert few <= many


def test_decoding_leaves_the_scores_as_they_were():
    scores = SpanScores(("city",), bounds_up_to(1, 1), np.array([[1.0, 2.0]]))
    SpanDecoder(KeepAll())(scores, o_bias=3.0)
    assert scores.scores.tolist() == [[1.0, 2.0]]


@given(st.lists(sentences(), min_size=1, max_size=2))
def test_any_words_and_spans_can_be_a_support_set(make, shown):
    support = SupportSet.of([*shown, Sentence(("x", "y"), (Span(0, 1, "city"),))])
    for sentence, own in zip(QUERY, make().fit(support)(QUERY), strict=True):
        assert all(one.span.end <= len(sentence) and 0 <= one.score <= 1 for one in own)
