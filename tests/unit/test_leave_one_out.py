from __future__ import annotations

import pytest

from spanshot.errors import EpisodeError
from spanshot.evaluation.counts import Counts
from spanshot.examples.leave_one_out import ExampleResults, character_spans, leave_one_out
from spanshot.examples.parts import parts_of, sample_of
from spanshot.formats.inline import parse_inline
from spanshot.types import Entity, Sentence, Span, SupportSet


class ByHeart:
    """Finds the very words that it was shown, under the label that it last saw them with."""

    def __init__(self) -> None:
        self.shown: list[int] = []

    def learn(self, support: SupportSet) -> ByHeart.Tagger:
        self.shown.append(len(support.sentences))
        return self.Tagger({s.words[x.start]: x.label for s in support.sentences for x in s.spans})

    class Tagger:
        def __init__(self, known: dict[str, str]) -> None:
            self.known = known

        def pipe(self, texts):
            for text in texts:
                words = Sentence.of_text(text)
                yield [
                    Entity(word, self.known[word], start, end, 0.9)
                    for word, (start, end) in zip(words.words, words.offsets, strict=True)
                    if word in self.known
                ]


class Perfect:
    """Finds every span whose label was among the examples."""

    def __init__(self, sentences: list[Sentence]) -> None:
        self.gold = {s.with_text().text: character_spans(s) for s in sentences}

    def learn(self, support: SupportSet) -> Perfect.Tagger:
        return self.Tagger(self.gold, set(support.labels))

    class Tagger:
        def __init__(self, gold, labels) -> None:
            self.gold, self.labels = gold, labels

        def pipe(self, texts):
            for text in texts:
                spans = [span for span in self.gold[text] if span.label in self.labels]
                yield [Entity(text[s.start : s.end], s.label, s.start, s.end) for s in spans]


def held_out(*lines: str) -> tuple[ExampleResults, ByHeart]:
    method = ByHeart()
    return leave_one_out(method.learn, [parse_inline(line) for line in lines]), method


def test_each_example_is_tagged_by_what_the_others_teach():
    found, method = held_out("in [Oslo](city)", "to [Oslo](city)", "see [Rome](city) and [Ada](person)")
    assert method.shown == [2, 2, 2]
    assert [len(one.entities) for one in found.tagged] == [1, 1, 0]
    assert found.report.labels == {"city": Counts(tp=2, fn=1)}
    assert found.untested == ("person",)
    assert found.report.micro_f1 == pytest.approx(0.8)


def test_confusions_name_the_marked_and_the_found_label():
    found, _ = held_out("in [Oslo](city)", "to [Oslo](club)", "[Rome](city) [Inter](club)")
    assert found.report.confusions == {("city", "club"): 1, ("club", "city"): 1}


def test_what_is_found_beside_all_marks_may_have_been_unmarked():
    found, _ = held_out("in [Oslo](city)", "Oslo and [Rome](city)")
    assert [entity.text for entity in found.tagged[1].unmarked] == ["Oslo"]
    assert found.tagged[0].unmarked == []


def test_doubles_are_held_out_together():
    found, method = held_out("in [Oslo](city)", "in [Oslo](city)", "to [Rome](city)")
    assert sorted(method.shown) == [1, 2]
    assert found.report.total == Counts(fn=3)


def test_of_many_examples_several_are_held_out_at_once():
    seen = []
    sentences = [parse_inline(f"w{number} [Oslo](city)") for number in range(60)]
    method = ByHeart()
    found = leave_one_out(method.learn, sentences, lambda done, of: seen.append((done, of)))
    assert len(method.shown) == 25
    assert seen[-1] == (25, 25)
    assert [one.number for one in found.tagged] == list(range(60))
    assert found.report.micro_f1 == 1.0


@pytest.mark.parametrize("lines", [["in [Oslo](city)"], ["nothing", "at all"], ["a [b](c)", "a [b](c)"]])
def test_too_few_examples_are_refused(lines):
    with pytest.raises(EpisodeError):
        held_out(*lines)


@pytest.mark.parametrize("places", [(0, 25), (3, 53), (10, 11), (0, 50)])
def test_a_perfect_tagger_finds_a_rare_label_wherever_its_two_examples_stand(places):
    lines = [f"in [w{number}](city) again" for number in range(60)]
    for place in places:
        lines[place] = f"on [day{place}](day) in [w{place}](city)"
    sentences = [parse_inline(line) for line in lines]
    found = leave_one_out(Perfect(sentences).learn, sentences)
    assert found.report.labels["day"] == Counts(tp=2)
    assert found.report.micro_f1 == 1.0
    assert found.untested == ()


def test_a_label_that_the_rest_cannot_teach_is_not_counted_as_missed():
    sentences = [parse_inline(line) for line in ("[Oslo](city)", "[Rome](city)", "[Ada](person) in [Lima](city)")]
    found = leave_one_out(Perfect(sentences).learn, sentences)
    assert found.report.total == Counts(tp=3)
    assert found.untested == ("person",)


def test_of_very_many_examples_a_sample_with_all_labels_is_used():
    lines = [f"in [w{number}](city) again" for number in range(1000)]
    lines[700], lines[900] = "on [Monday](day) .", "[Friday](day) it is"
    sentences = [parse_inline(line) for line in lines]
    method = ByHeart()
    found = leave_one_out(method.learn, sentences)
    assert len(found.tagged) == 200
    assert found.examples == 1000
    assert sum(method.shown) <= 25 * 200
    assert {700, 900} <= {one.number for one in found.tagged}


def test_spans_are_compared_in_characters_of_the_text_as_it_was_written():
    sentence = parse_inline("to  [New  York](city)!")
    assert character_spans(sentence) == [Span(4, 13, "city")]
    assert character_spans(Sentence(("to", "New", "York"), (Span(1, 3, "city"),))) == [Span(3, 11, "city")]


def test_parts_hold_each_sentence_once_and_deal_out_each_label():
    sentences = [parse_inline(f"[w{n}](l{n % 7}) and [v{n}](m{n % 3})") for n in range(100)]
    parts = list(parts_of(sentences, 10))
    assert sorted(number for part in parts for number in part) == list(range(100))
    for label in {span.label for s in sentences for span in s.spans}:
        having = [sum(label in {x.label for x in sentences[number].spans} for number in part) for part in parts]
        assert max(having) - min(having) <= 2, label


def test_few_sentences_are_parts_of_their_own():
    sentences = [parse_inline(f"[w{n}](city)") for n in range(5)]
    assert list(parts_of(sentences, 10)) == list(parts_of(sentences)) == [[0], [1], [2], [3], [4]]


def test_a_sample_covers_all_labels_before_it_repeats_one():
    labels = ["a"] * 50 + ["b"] * 3 + ["c"]
    sentences = [parse_inline(f"[w{n}]({label}) .") for n, label in enumerate(labels)] + [parse_inline("nothing here")]
    chosen = sample_of(sentences, 6)
    assert chosen == [0, 1, 50, 51, 53, 54]
