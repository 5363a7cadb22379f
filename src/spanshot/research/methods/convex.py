"""ConVEx: a light tagger for each slot, pre-trained to find in one sentence what fills the blank of another.

Henderson and Vulic, "ConVEx: Data-Efficient and Few-Shot Slot Labeling", NAACL 2021.

Pre-trained on pairs of sentences that share a phrase: it is blanked in the template and to be found in the
other. Labelled episodes are pairs of the same form, and for a support set a copy of the tagger is fine-tuned
for each slot over the frozen encoder, with a CRF. Departures: pairs come from the source corpus's text, in a
pretraining, not from millions of Reddit sentences; a slot's templates are the support sentences that have it,
blanked, while tagging too; spans of different slots that overlap are settled greedily.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from spanshot.decode.conflicts import Greedy
from spanshot.decode.decoders import TagDecoder
from spanshot.decode.scores import TokenScores
from spanshot.decode.transitions import Transitions, expand, kinds
from spanshot.errors import ConfigError
from spanshot.research.learning.cloze import VALUE, ClozePair, blanked, cloze_pairs
from spanshot.research.learning.fine_tuning import FineTuneSettings, FineTuningMethod, Learner
from spanshot.research.learning.method import evaluating
from spanshot.research.nn.crf import chain_loss
from spanshot.research.nn.encoder import Encoder
from spanshot.research.nn.loss import gold_tags
from spanshot.research.nn.spans import SpanAttention
from spanshot.tags import outermost, tags_of_labels
from spanshot.types import Episode, ScoredSpan, Sentence, Span, SupportSet

SCHEME = "bio"
TAGS = tags_of_labels([VALUE], SCHEME)


@dataclass(frozen=True)
class ConvexSettings(FineTuneSettings):
    """Settings of ConVEx."""

    finetune_steps: int = 15
    """Least number of fine-tuning steps on a support set."""
    finetune_head_rate: float = 1e-3
    """Learning rate of the slots' taggers on a support set; the encoder is left as it is."""
    size: int = 100
    """Length of a word's vector within a tagger."""
    dropout: float = 0.1
    """Dropout in a tagger."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size < 1 or not 0 <= self.dropout < 1:
            raise ConfigError("size must be at least 1, and dropout lie in 0..1")


class Convex(FineTuningMethod):
    """ConVEx."""

    name = "convex"
    Settings = ConvexSettings

    def __init__(self, encoder: Encoder, settings: ConvexSettings) -> None:
        super().__init__(encoder, settings)
        self.settings: ConvexSettings = settings
        self.tagger = SlotTagger(encoder.size, settings.size, settings.dropout)

    def pretraining(  # noqa: D102
        self, sentences: Sequence[Sentence], size: int
    ) -> tuple[nn.Module, Callable[[random.Random], Any]]:
        return _Cloze(self.encoder, self.tagger), cloze_pairs(sentences, size)

    def episode_loss(self, episode: Episode) -> Tensor:
        """The loss of finding each slot in each query sentence, given the support sentences that have the slot."""
        shown = [templates_for(label, episode.support.sentences) for label in episode.support.labels]
        vectors = _read(self.encoder, [*(s for own in shown for s in own.values()), *episode.query])
        words = vectors[-len(episode.query) :]
        templates, begin = [], 0
        for own in shown:
            templates.append(torch.cat(vectors[begin : begin + len(own)]))
            begin += len(own)
        gold = [only(label, sentence) for label in episode.support.labels for sentence in episode.query]
        loss: Tensor = self.tagger.loss(words * len(shown), [t for t in templates for _ in words], gold)
        return loss

    def learner(self, support: SupportSet) -> Learner:  # noqa: D102
        return _SlotLearner(copy.deepcopy(self.encoder), self.tagger, support)


class SlotTagger(nn.Module):
    """Words attend to the words of templates, then to one another; a CRF says which of them are the value."""

    def __init__(self, word_size: int, size: int, dropout: float) -> None:
        super().__init__()
        self.project = nn.Linear(word_size, size)
        self.read_template = SpanAttention(size, dropout)
        self.read_sentence = SpanAttention(size, dropout)
        self.emit = nn.Linear(size, len(TAGS))
        self.step_scores = nn.Parameter(torch.zeros(len(kinds(SCHEME))))

    def forward(self, words: Sequence[Tensor], templates: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Emissions [n, most words, tags] and mask [n, most words] of sentences, each with templates of its own.

        Both come as vectors [words, word size] per sentence.
        """
        own, mask = _padded(words)
        shown, shown_mask = _padded(templates)
        seen = self.read_template(self.project(own), self.project(shown), shown_mask)
        emissions: Tensor = self.emit(self.read_sentence(seen, seen, mask))
        return emissions, mask

    def transitions(self) -> Transitions:
        """Scores of steps between the value's tags."""
        return expand(self.step_scores, TAGS, SCHEME)

    def loss(self, words: Sequence[Tensor], templates: Sequence[Tensor], gold: Sequence[Sentence]) -> Tensor:
        """The chain's loss of the values that are marked in ``gold``."""
        emissions, _ = self(words, templates)
        return chain_loss(emissions, [gold_tags(sentence, TAGS, SCHEME) for sentence in gold], self.transitions())

    def values(self, words: Sequence[Tensor], templates: Sequence[Tensor]) -> list[list[ScoredSpan]]:
        """The values found in each sentence."""
        emissions, mask = self(words, templates)
        decode = TagDecoder(SCHEME, self.transitions().as_arrays())
        sizes = mask.sum(1).tolist()
        rows = emissions.cpu().numpy()
        return [decode(TokenScores(TAGS, row[:size])) for row, size in zip(rows, sizes, strict=True)]


class _Cloze(nn.Module):
    """The method's parts under the loss of cloze pairs."""

    def __init__(self, encoder: Encoder, tagger: SlotTagger) -> None:
        super().__init__()
        self.encoder, self.tagger = encoder, tagger

    def forward(self, pairs: Sequence[ClozePair]) -> Tensor:
        vectors = _read(self.encoder, [*(pair.template for pair in pairs), *(pair.sentence for pair in pairs)])
        found: Tensor = self.tagger.loss(
            vectors[len(pairs) :], vectors[: len(pairs)], [pair.sentence for pair in pairs]
        )
        return found


class _SlotLearner(Learner):
    """A tagger for each slot. What the frozen encoder says of the support is read once."""

    def __init__(self, encoder: Encoder, tagger: SlotTagger, support: SupportSet) -> None:
        super().__init__()
        self.encoder = encoder.requires_grad_(False)
        self.support = support
        self.taggers = nn.ModuleList(copy.deepcopy(tagger) for _ in support.labels)
        self.gold = [[only(label, sentence) for sentence in support.sentences] for label in support.labels]
        with evaluating(encoder):
            self.words = [part.clone() for part in _read(encoder, support.sentences)]
            shown = [templates_for(label, support.sentences) for label in support.labels]
            self.shown = [
                dict(zip(own, (part.clone() for part in _read(encoder, list(own.values()))), strict=True))
                for own in shown
            ]
        self.templates = [torch.cat(list(own.values())) for own in self.shown]

    def forward(self, numbers: Sequence[int]) -> Tensor:
        """A sentence's own template is left out, unless there is no other: it would give the answer away."""
        losses = []
        for tagger, gold, shown, all_of_them in zip(self.taggers, self.gold, self.shown, self.templates, strict=True):
            others = [[t for at, t in shown.items() if at != number] for number in numbers]
            templates = [torch.cat(own) if own else all_of_them for own in others]
            words = [self.words[number] for number in numbers]
            losses.append(tagger.loss(words, templates, [gold[number] for number in numbers]))  # type: ignore[operator]
        return torch.stack(losses).mean()

    def tag(self, sentences: Sequence[Sentence]) -> list[list[ScoredSpan]]:
        words = _read(self.encoder, sentences)
        found: list[list[ScoredSpan]] = [[] for _ in sentences]
        for label, tagger, templates in zip(self.support.labels, self.taggers, self.templates, strict=True):
            for own, values in zip(found, tagger.values(words, [templates] * len(words)), strict=True):  # type: ignore[operator]
                own += [replace(value, span=replace(value.span, label=label)) for value in values]
        return [Greedy()(own) for own in found]


def templates_for(label: str, sentences: Sequence[Sentence]) -> dict[int, Sentence]:
    """The sentences that have the label, by their number, its spans blanked."""
    found = {}
    for number, sentence in enumerate(sentences):
        if own := outermost(span for span in sentence.spans if span.label == label):
            found[number] = blanked(sentence, own)
    return found


def only(label: str, sentence: Sentence) -> Sentence:
    """The sentence with this label's spans as values, and no others."""
    own = (span for span in sentence.spans if span.label == label)
    return Sentence(sentence.words, tuple(Span(span.start, span.end, VALUE) for span in own))


def _read(encoder: Encoder, sentences: Sequence[Sentence]) -> list[Tensor]:
    words = encoder(sentences)
    return list(torch.split(words.first, list(words.lengths)))


def _padded(parts: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """Vectors of several sentences in one tensor [n, most, size], and which of them exist [n, most]."""
    vectors = nn.utils.rnn.pad_sequence(list(parts), batch_first=True)
    sizes = torch.tensor([len(part) for part in parts], device=vectors.device)
    return vectors, torch.arange(vectors.shape[1], device=vectors.device) < sizes[:, None]
