"""What Retriever, L-TapNet+CDT, ConVEx and reading comprehension compute beyond the contract of all methods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from spanshot.formats.inline import parse_inline
from spanshot.research.methods.convex import only, templates_for
from spanshot.research.methods.mrc import Mrc, MrcSettings, ask
from spanshot.research.methods.retriever import Retriever, RetrieverSettings
from spanshot.research.methods.tapnet_cdt import (
    NamedSupport,
    TapNetCdt,
    TapNetSettings,
    _spoken,
    projection_errors,
    removing,
)
from spanshot.research.nn.label_names import in_words
from spanshot.research.nn.pretrained import load_pretrained
from spanshot.types import Sentence, Span, SupportSet
from tiny import write_tiny_encoder

SUPPORT = SupportSet.of(
    [parse_inline("we saw [New York](city) with [Ada](person) ."), parse_inline("[Oslo](city) again !")]
)
QUERY = [Sentence(("we", "saw", "Rome", ".")), Sentence(("Grace", "again"))]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return load_pretrained(str(write_tiny_encoder(tmp_path_factory.mktemp("encoder")))).eval()


# Retriever


def test_a_span_is_scored_by_its_nearest_support_span_and_trained_by_all(encoder):
    method = Retriever(encoder, RetrieverSettings(size=8, longest=3)).eval()
    with torch.no_grad():
        words = encoder(QUERY)
        memory = method.remember(SUPPORT)
        tagged, trained = method.logits(memory, words), method.training_logits(memory, words)
        query = method.span_head(words, [own.bounds for own in tagged]).vectors
    city = memory.vectors[memory.label_rows[0]]
    near = torch.cosine_similarity(query[0, 0], city).numpy() / 0.1
    assert tagged[0].logits[0, 1].item() == pytest.approx(near.max(), abs=1e-5)
    assert trained[0].logits[0, 1].item() == pytest.approx(np.logaddexp.reduce(near), abs=1e-5)


def test_a_retrieved_span_names_the_support_spans_most_like_it(encoder):
    method = Retriever(encoder, RetrieverSettings(size=8, longest=3)).eval()
    tagger = replace(method.fit(SUPPORT), o_bias=100.0)
    (found,) = tagger([SUPPORT.sentences[0].without_spans()])
    ((_, scores),) = tagger.scores([SUPPORT.sentences[0].without_spans()])
    for one in found:
        at = np.flatnonzero((scores.bounds == (one.span.start, one.span.end)).all(axis=1))[0]
        rows = tagger.memory.label_rows[SUPPORT.labels.index(one.span.label)]
        best = tagger.memory.label_spans[rows.start + int(scores.evidence[at, rows].argmax())]
        assert (one.because[0].sentence, one.because[0].span) == best
    assert any(one.because[0].span == Span(2, 4, "city") and one.span == Span(2, 4, "city") for one in found)


# L-TapNet+CDT


def test_prototypes_and_references_less_the_mean_of_the_others_fall_together_in_the_projected_space():
    generator = torch.Generator().manual_seed(0)
    prototypes, references = torch.randn(5, 32, generator=generator), torch.randn(5, 32, generator=generator)
    common = removing(projection_errors(prototypes, references))
    for number, (prototype, reference) in enumerate(zip(prototypes, references, strict=True)):
        others = torch.stack([other for at, other in enumerate(references) if at != number]).mean(0)
        modified = reference - others
        same = common((modified / modified.norm())[None]), common((prototype / prototype.norm())[None])
        torch.testing.assert_close(*same, atol=1e-4, rtol=1e-4)
    assert common(torch.randn(3, 32, generator=generator)).abs().max() > 0.1


def test_words_are_compared_with_prototypes_mixed_with_references(encoder):
    """The equations of the paper, tag by tag and word by word; the projection is made of unmixed prototypes."""
    method = TapNetCdt(encoder, TapNetSettings(name_weight=0.3)).eval()
    generator = torch.Generator().manual_seed(0)
    names, query = torch.randn(3, 32, generator=generator), torch.randn(4, 32, generator=generator)
    shown = [torch.randn(count, 32, generator=generator) for count in (2, 1, 3)]
    with torch.no_grad():
        found = method._emissions(NamedSupport(SUPPORT, ("O", "B-a", "I-a"), names), shown, query)
        prototypes = torch.stack([own.mean(0) for own in shown])
        references = (names + method.reference(names)) / 2
        project = removing(projection_errors(prototypes, references))
        for word, row in zip(query, found, strict=True):
            for prototype, reference, score in zip(prototypes, references, row, strict=True):
                mixed = 0.7 * prototype + 0.3 * reference
                cosine = torch.cosine_similarity(project(word[None]), project(mixed[None]))[0]
                assert score.item() == pytest.approx(cosine.item() * method.log_scale.exp().item(), abs=1e-4)


def test_of_more_tags_than_dimensions_the_main_errors_are_taken_away():
    torch.manual_seed(0)
    errors, vectors = torch.randn(50, 8), torch.randn(20, 8)
    left = removing(errors)(vectors)
    assert torch.linalg.matrix_rank(left) == 4
    directions = torch.linalg.svd(errors, full_matrices=False)[2]
    torch.testing.assert_close(left @ directions[:4].T, torch.zeros(20, 4), atol=1e-4, rtol=0)


def test_tags_are_spoken():
    assert _spoken("B-timeRange", "bio").words == ("begin", "time", "range")
    assert _spoken("O", "bio").words == ("ordinary", "word")


@pytest.mark.usefixtures("without_onednn")
@pytest.mark.parametrize("segment_ids", [True, False])
def test_pairs_have_segment_ids_as_set(encoder, segment_ids):
    methods = [
        TapNetCdt(encoder, TapNetSettings(segment_ids=segment_ids)).eval(),
        Mrc(encoder, MrcSettings(segment_ids=segment_ids)).eval(),
    ]
    given = []
    handle = encoder.transformer.register_forward_pre_hook(
        lambda _, __, own: given.append("token_type_ids" in own), with_kwargs=True
    )
    try:
        with torch.no_grad():
            methods[0]._read_pairs(SUPPORT.sentences, QUERY)
            methods[1].pointers(encoder, [(QUERY[0], QUERY[1])])
    finally:
        handle.remove()
    assert set(given) == {segment_ids}


@pytest.mark.parametrize("pairs", [True, False])
def test_what_the_support_says_is_read_with_each_query_sentence_if_so_set(encoder, pairs):
    method = TapNetCdt(encoder, TapNetSettings(pairs=pairs)).eval()
    with torch.no_grad():
        read = (method._read_pairs if pairs else method._read_alone)(SUPPORT.sentences, QUERY)
    (shown, asked), (again, _) = read
    assert shown.shape[0] == sum(map(len, SUPPORT.sentences))
    assert asked.shape[0] == len(QUERY[0])
    assert torch.allclose(shown, again, atol=1e-5) != pairs


def test_learned_transitions_serve_any_label_set(encoder):
    method = TapNetCdt(encoder, TapNetSettings()).eval()
    for support in (SUPPORT, SupportSet.of([parse_inline("[a](x) [b](y) [c](z) d")])):
        assert method.decoder(support).transitions.step.shape == (1 + 2 * len(support.labels),) * 2
    assert TapNetCdt(encoder, TapNetSettings(transitions=False)).decoder(SUPPORT).transitions is None


def test_the_weight_of_names_decides_whether_names_matter(encoder):
    renamed = SupportSet.of(
        replace(s, spans=tuple(replace(span, label=f"z{span.label}") for span in s.spans)) for s in SUPPORT.sentences
    )
    method = TapNetCdt(encoder, TapNetSettings(pairs=False)).eval()
    scores = [dict(method.fit(support).scores(QUERY))[0].scores for support in (SUPPORT, renamed)]
    assert np.abs(scores[0] - scores[1]).max() > 1e-3


# ConVEx


def test_a_slots_templates_are_the_sentences_that_have_it_with_a_blank():
    found = templates_for("city", SUPPORT.sentences)
    assert {number: template.words for number, template in found.items()} == {
        0: ("we", "saw", "_", "with", "Ada", "."),
        1: ("_", "again", "!"),
    }
    assert list(templates_for("person", SUPPORT.sentences)) == [0]


def test_a_slots_gold_has_no_other_slots():
    assert only("person", SUPPORT.sentences[0]).spans == (Span(5, 6, "value"),)


# Reading comprehension


def test_fine_tuning_takes_more_steps_on_more_examples():
    settings = MrcSettings()
    assert settings.steps_on(1) == settings.steps_on(7) == settings.finetune_steps == 10
    assert settings.steps_on(30) == 30
    assert MrcSettings(finetune_epochs=0).steps_on(1000) == 10
    assert MrcSettings(finetune_batch=0, finetune_epochs=20).steps_on(1000) == 20


@pytest.mark.parametrize("examples", [3, 24])
def test_each_step_of_fine_tuning_is_taken(encoder, examples):
    support = SupportSet.of([parse_inline(f"w{number} [Oslo](city)") for number in range(examples)])
    method = Mrc(encoder, MrcSettings(finetune_steps=2, finetune_epochs=1, finetune_until=0.0))
    steps = []
    learner = method.learner(support)
    forward = learner.forward
    learner.forward = lambda numbers: steps.append(len(numbers)) or forward(numbers)
    method.learner = lambda _: learner
    method.fit(support)
    assert steps == {3: [3, 3], 24: [8, 8, 8]}[examples]


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("timeRange", "time range"),
        ("object_part_of_series_type", "object part of series type"),
        ("person-actor", "person actor"),
        ("GPE", "gpe"),
        ("cell_line2", "cell line 2"),
        ("Straße", "straße"),
        ("???", "???"),
    ],
)
def test_labels_are_spelled_out(label, words):
    assert in_words(label) == words


def test_a_question_holds_the_labels_name():
    assert ask("find {} here", "timeRange").words == ("find", "time", "range", "here")


def test_the_answer_to_a_question_is_where_both_pointers_are_sure(encoder):
    learner = Mrc(encoder, MrcSettings(longest=2)).learner(SUPPORT)
    sure = np.array([[0.9, 0.1], [0.1, 0.8], [0.1, 0.9]])
    assert [one.span for one in learner._answers("city", sure)] == [Span(0, 2, "city")]


def test_while_training_only_some_questions_without_an_answer_are_asked(encoder):
    many = SupportSet.of([parse_inline("[a](l1) [b](l2) [c](l3) [d](l4) [e](l5) x")])
    asked = []
    method = Mrc(encoder, MrcSettings(negatives=1))
    pointers = method.pointers.forward
    method.pointers.forward = lambda own, pairs: asked.append(len(pairs)) or pointers(own, pairs)
    from spanshot.types import Episode

    episode = Episode(many, (Sentence(("y", "z")),))
    for training in (True, False):
        method.train(training)
        method.episode_loss(episode)
    assert asked == [5 + 1, 5 + 5]
