"""ConVEx: a light tagger for each slot, pretrained to find the phrase in one sentence that fills the blank in another.

Henderson and Vulic, "ConVEx: Data-Efficient and Few-Shot Slot Labeling", NAACL 2021.

Pretraining uses pairs of sentences that share a phrase (pairwise cloze): the phrase is blanked in the template, and the
tagger has to find it in the other sentence. Labelled episodes become pairs of the same form. For a support set, a copy
of the tagger is fine-tuned for each slot over the frozen encoder, with a CRF.
"""

from __future__ import annotations

import copy
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from typing_extensions import override

from spanshot.decode.conflicts import Greedy
from spanshot.decode.decoders import TagDecoder
from spanshot.decode.scores import TokenScores
from spanshot.decode.transitions import kinds
from spanshot.errors import ConfigError, DataError
from spanshot.research.learning.finetuned_methods import FinetunedMethod, FinetunedSettings, Learner
from spanshot.research.learning.method import Pretraining, evaluating
from spanshot.research.nn.crf import ChainLogits, chain_loss
from spanshot.research.nn.encoder import Encoder
from spanshot.research.nn.loss import gold_tags
from spanshot.research.nn.spans import SpanAttention
from spanshot.tags import outermost, tags_of_labels
from spanshot.types import Episode, ScoredSpan, Sentence, Span, SupportSet

SCHEME = "bio"
BLANK = "_"
VALUE = "value"
MAX_CLOZE_SENTENCES = 10_000
MAX_PHRASE_WORDS = 3
TAGS = tags_of_labels([VALUE], SCHEME)


@dataclass(frozen=True)
class ConvexSettings(FinetunedSettings):
    """Settings of ConVEx."""

    finetune_steps: int = 15
    """Minimum number of fine-tuning steps on a support set."""
    finetune_head_rate: float = 1e-3
    """Learning rate of the slots' taggers while fine-tuning; the encoder is frozen."""
    size: int = 100
    """Length of word vectors in a slot's tagger."""
    dropout: float = 0.1
    """Dropout in a slot's tagger."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size < 1 or not 0 <= self.dropout < 1:
            raise ConfigError("size must be at least 1, dropout must be from 0 to below 1")


class Convex(FinetunedMethod[ConvexSettings]):
    """ConVEx.

    Departures: cloze pairs come from the text of the source corpus ([pretrain]), not from millions of Reddit sentences;
    a slot's templates are the support sentences that have it, blanked, also while tagging; overlaps between spans of
    different slots are resolved greedily.
    """

    name = "convex"
    Settings = ConvexSettings

    def __init__(self, encoder: Encoder, settings: ConvexSettings) -> None:
        super().__init__(encoder, settings)
        self.tagger = SlotTagger(encoder.size, settings.size, settings.dropout)

    @override
    def pretraining(self, sentences: Sequence[Sentence], batch: int) -> Pretraining:
        return Pretraining(_Cloze(self.encoder, self.tagger), cloze_pairs(sentences, batch))

    @override
    def episode_loss(self, episode: Episode) -> Tensor:
        """Return the loss of finding each slot in each query sentence, given the support sentences with the slot."""
        templates_by_slot = [templates_for(label, episode.support.sentences) for label in episode.support.labels]
        vectors = _read(
            self.encoder,
            [*(s for slot_templates in templates_by_slot for s in slot_templates.values()), *episode.query],
        )
        words = vectors[-len(episode.query) :]
        joined, begin = [], 0
        for slot_templates in templates_by_slot:
            joined.append(torch.cat(vectors[begin : begin + len(slot_templates)]))
            begin += len(slot_templates)
        gold = [only(label, sentence) for label in episode.support.labels for sentence in episode.query]
        loss: Tensor = self.tagger.loss(words * len(templates_by_slot), [t for t in joined for _ in words], gold)
        return loss

    @override
    def learner(self, support: SupportSet) -> Learner:
        return _SlotLearner(copy.deepcopy(self.encoder), self.tagger, support)


class SlotTagger(nn.Module):
    """Words attend to the words of templates, then to one another; a CRF finds the value among them."""

    def __init__(self, word_size: int, size: int, dropout: float) -> None:
        super().__init__()
        self.project = nn.Linear(word_size, size)
        self.read_template = SpanAttention(size, dropout)
        self.read_sentence = SpanAttention(size, dropout)
        self.emit = nn.Linear(size, len(TAGS))
        self.step_scores = nn.Parameter(torch.zeros(len(kinds(SCHEME))))

    def forward(self, words: Sequence[Tensor], templates: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Return emissions [n, most words, tags] and mask [n, most words] of sentences, each with its own templates.

        Both are given as vectors [words, word size] per sentence.
        """
        sentence_vectors, mask = _padded(words)
        template_vectors, template_mask = _padded(templates)
        attended = self.read_template(self.project(sentence_vectors), self.project(template_vectors), template_mask)
        emissions: Tensor = self.emit(self.read_sentence(attended, attended, mask))
        return emissions, mask

    def transitions(self) -> ChainLogits:
        """Return the scores of steps between the value's tags."""
        return ChainLogits.of_kinds(self.step_scores, TAGS, SCHEME)

    def loss(self, words: Sequence[Tensor], templates: Sequence[Tensor], gold: Sequence[Sentence]) -> Tensor:
        """Return the loss of the values marked in ``gold``."""
        emissions, _ = self(words, templates)
        return chain_loss(emissions, [gold_tags(sentence, TAGS, SCHEME) for sentence in gold], self.transitions())

    def values(self, words: Sequence[Tensor], templates: Sequence[Tensor]) -> list[list[ScoredSpan]]:
        """Return the values found in each sentence."""
        emissions, mask = self(words, templates)
        decode = TagDecoder(SCHEME, self.transitions().transitions())
        sizes = mask.sum(1).tolist()
        rows = emissions.cpu().numpy()
        return [decode(TokenScores(TAGS, row[:size])) for row, size in zip(rows, sizes, strict=True)]


class _Cloze(nn.Module):
    """The method's modules under the loss of cloze pairs."""

    def __init__(self, encoder: Encoder, tagger: SlotTagger) -> None:
        super().__init__()
        self.encoder, self.tagger = encoder, tagger

    def forward(self, pairs: Sequence[ClozePair]) -> Tensor:
        vectors = _read(self.encoder, [*(pair.template for pair in pairs), *(pair.sentence for pair in pairs)])
        loss: Tensor = self.tagger.loss(vectors[len(pairs) :], vectors[: len(pairs)], [pair.sentence for pair in pairs])
        return loss


class _SlotLearner(Learner):
    """A tagger for each slot. The support set is encoded once."""

    def __init__(self, encoder: Encoder, tagger: SlotTagger, support: SupportSet) -> None:
        super().__init__()
        self.encoder = encoder.requires_grad_(False)
        self.support = support
        self.taggers = nn.ModuleList(copy.deepcopy(tagger) for _ in support.labels)
        self.gold = [[only(label, sentence) for sentence in support.sentences] for label in support.labels]
        with evaluating(encoder):
            self.words = [part.clone() for part in _read(encoder, support.sentences)]
            templates = [templates_for(label, support.sentences) for label in support.labels]
            self.encoded_templates = [
                dict(
                    zip(
                        slot_templates,
                        (part.clone() for part in _read(encoder, list(slot_templates.values()))),
                        strict=True,
                    )
                )
                for slot_templates in templates
            ]
        self.templates = [torch.cat(list(slot_templates.values())) for slot_templates in self.encoded_templates]

    @override
    def forward(self, numbers: Sequence[int]) -> Tensor:
        """Return the loss. A sentence's own template would reveal the answer; it is used only if there is no other."""
        losses = []
        for tagger, gold, encoded_templates, all_templates in zip(
            self.taggers, self.gold, self.encoded_templates, self.templates, strict=True
        ):
            distractors = [[t for at, t in encoded_templates.items() if at != number] for number in numbers]
            templates = [
                torch.cat(slot_templates) if slot_templates else all_templates for slot_templates in distractors
            ]
            words = [self.words[number] for number in numbers]
            losses.append(tagger.loss(words, templates, [gold[number] for number in numbers]))  # type: ignore[operator]
        return torch.stack(losses).mean()

    @override
    def tag(self, sentences: Sequence[Sentence]) -> list[list[ScoredSpan]]:
        words = _read(self.encoder, sentences)
        spans: list[list[ScoredSpan]] = [[] for _ in sentences]
        for label, tagger, templates in zip(self.support.labels, self.taggers, self.templates, strict=True):
            for sentence_spans, values in zip(spans, tagger.values(words, [templates] * len(words)), strict=True):  # type: ignore[operator]
                sentence_spans += [replace(value, span=replace(value.span, label=label)) for value in values]
        return [Greedy()(sentence_spans) for sentence_spans in spans]


def templates_for(label: str, sentences: Sequence[Sentence]) -> dict[int, Sentence]:
    """Return the sentences that have the label, by number, with its spans blanked."""
    templates = {}
    for number, sentence in enumerate(sentences):
        if spans := outermost(span for span in sentence.spans if span.label == label):
            templates[number] = blanked(sentence, spans)
    return templates


def only(label: str, sentence: Sentence) -> Sentence:
    """Return the sentence with this label's spans as values, and no others."""
    spans = (span for span in sentence.spans if span.label == label)
    return Sentence(sentence.words, tuple(Span(span.start, span.end, VALUE) for span in spans))


def _read(encoder: Encoder, sentences: Sequence[Sentence]) -> list[Tensor]:
    words = encoder(sentences)
    return list(torch.split(words.first, list(words.lengths)))


def _padded(parts: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Pad the vectors of several sentences to one tensor [n, most, size], with a mask [n, most]."""
    vectors = nn.utils.rnn.pad_sequence(list(parts), batch_first=True)
    sizes = torch.tensor([len(part) for part in parts], device=vectors.device)
    return vectors, torch.arange(vectors.shape[1], device=vectors.device) < sizes[:, None]


@dataclass(frozen=True)
class ClozePair:
    """A template with a blank, and a sentence in which the phrase that fills it is marked."""

    template: Sentence
    sentence: Sentence


def blanked(sentence: Sentence, spans: Sequence[Span]) -> Sentence:
    """Replace each of the spans, which must not overlap, by one blank.

    >>> blanked(Sentence(("go", "to", "New", "York")), [Span(2, 4, "city")]).words
    ('go', 'to', '_')
    """
    words = list(sentence.words)
    for span in sorted(spans, reverse=True):
        words[span.start : span.end] = [BLANK]
    return Sentence(tuple(words))


def cloze_pairs(sentences: Sequence[Sentence], size: int) -> Callable[[random.Random], list[ClozePair]]:
    """Return a function that draws ``size`` pairs. Spans marked in the sentences are ignored."""
    places = _shared_phrases(_evenly_spread(sentences))
    if not places:
        raise DataError("no cloze pairs: no two training sentences share a phrase")
    phrases = list(places)

    def draw(rng: random.Random) -> list[ClozePair]:
        pairs = []
        for _ in range(size):
            (first, span), (second, answer) = rng.sample(places[rng.choice(phrases)], 2)
            pairs.append(ClozePair(blanked(first, [span]), Sentence(second.words, (answer,))))
        return pairs

    return draw


def _evenly_spread(sentences: Sequence[Sentence]) -> Sequence[Sentence]:
    """Return at most ``MAX_CLOZE_SENTENCES`` sentences, evenly spread, to bound the memory of the phrase index."""
    if len(sentences) <= MAX_CLOZE_SENTENCES:
        return sentences
    return [sentences[number * len(sentences) // MAX_CLOZE_SENTENCES] for number in range(MAX_CLOZE_SENTENCES)]


def _shared_phrases(sentences: Sequence[Sentence]) -> dict[tuple[str, ...], list[tuple[Sentence, Span]]]:
    """Index the phrases that at least two sentences share and that are rare enough to be informative."""
    places: dict[tuple[str, ...], dict[int, Span]] = defaultdict(dict)
    for number, sentence in enumerate(sentences):
        lowered = [word.lower() for word in sentence.words]
        for start in range(len(lowered)):
            for end in range(start + 1, min(start + MAX_PHRASE_WORDS, len(lowered)) + 1):
                places[tuple(lowered[start:end])].setdefault(number, Span(start, end, VALUE))
    max_count = max(2, len(sentences) // 50)
    return {
        phrase: [(sentences[number], span) for number, span in spans.items()]
        for phrase, spans in places.items()
        if 2 <= len(spans) <= max_count and phrase[0].isalnum() and phrase[-1].isalnum()
    }
