"""Ma2021 (MRC): each label is a question about the sentence, its spans are the answers.

Ma et al., "Frustratingly Simple Few-Shot Slot Tagging", Findings of ACL 2021.

For each label, a question made of its name is encoded together with the sentence, and two pointers find where an answer
starts and ends. Trained on the source domains, then fine-tuned on the support set.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from typing_extensions import override

from spanshot.decode.conflicts import Greedy
from spanshot.errors import ConfigError
from spanshot.research.learning.finetuned_methods import FinetunedMethod, Learner, WholeFinetunedSettings
from spanshot.research.nn.encoder import Encoder
from spanshot.research.nn.label_names import in_words
from spanshot.types import Episode, ScoredSpan, Sentence, Span, SupportSet


@dataclass(frozen=True)
class MrcSettings(WholeFinetunedSettings):
    """Settings of the reading comprehension method."""

    finetune_steps: int = 10
    """Minimum number of fine-tuning steps on a support set."""
    finetune_epochs: int = 8
    """Minimum number of passes over a support set, so that the steps grow with the number of examples."""
    finetune_batch: int = 8
    """Support sentences per fine-tuning step, drawn at random (0: all)."""
    question: str = "what is the {} ?"
    """Question about a sentence; {} stands for the label's name, in words."""
    negatives: int = 2
    """Questions without an answer per training sentence, drawn at random (0: all)."""
    segment_ids: bool = True
    """Mark the sentence after the question with segment ids, if the encoder has them."""
    longest: int = 8
    """Maximum length of an answer, in words."""
    threshold: float = 0.5
    """Minimum geometric mean of an answer's start and end probabilities (0 to 1)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if "{}" not in self.question:
            raise ConfigError(f"question must contain {{}} for the label's name; found {self.question!r}")
        if self.longest < 1 or self.negatives < 0:
            raise ConfigError("longest must be at least 1, negatives must be 0 (all) or more")
        if not 0 < self.threshold < 1:
            raise ConfigError(f"threshold must be between 0 and 1; found {self.threshold}")


class Mrc(FinetunedMethod[MrcSettings]):
    """Slot tagging as reading comprehension.

    Departures: every word is a start or an end independently, so a sentence may contain several answers or none; in
    training only some of the questions without an answer are asked (``negatives``); conflicts between answers to
    different questions are resolved greedily; fine-tuning takes at least ``finetune_epochs`` passes over the support
    set (the paper does not say how many; on five examples of each label, 30 steps had a better dev F1 than 10).
    """

    name = "mrc"
    Settings = MrcSettings
    reads_label_names = True

    def __init__(self, encoder: Encoder, settings: MrcSettings) -> None:
        super().__init__(encoder, settings)
        self.pointers = Pointers(encoder.size, segment_ids=settings.segment_ids)

    @override
    def episode_loss(self, episode: Episode) -> Tensor:
        """Return the loss of the answers in all sentences of the episode."""
        sentences = [*episode.support.sentences, *episode.query]
        return _loss(self, self.settings, episode.support.labels, sentences)

    @override
    def learner(self, support: SupportSet) -> Learner:
        return _MrcLearner(copy.deepcopy(self.encoder), copy.deepcopy(self.pointers), self.settings, support)


class Pointers(nn.Module):
    """Whether an answer starts or ends at a word, from its first and its last piece."""

    def __init__(self, size: int, *, segment_ids: bool) -> None:
        super().__init__()
        self.segment_ids = segment_ids
        self.start = nn.Linear(size, 1)
        self.end = nn.Linear(size, 1)

    def forward(self, encoder: Encoder, pairs: Sequence[tuple[Sentence, Sentence]]) -> list[Tensor]:
        """Return logits of start and end for each word of the second sentence of each pair. [words, 2]"""
        words = encoder.pairs(pairs, segment_ids=self.segment_ids)
        start_and_end = torch.cat([self.start(words.first), self.end(words.last)], dim=1)  # [all words, 2]
        parts = torch.split(start_and_end, list(words.lengths))
        return [word_logits[len(question) :] for word_logits, (question, _) in zip(parts, pairs, strict=True)]


class _MrcLearner(Learner):
    def __init__(self, encoder: Encoder, pointers: Pointers, settings: MrcSettings, support: SupportSet) -> None:
        super().__init__()
        self.encoder, self.pointers, self.settings, self.support = encoder, pointers, settings, support

    @override
    def forward(self, numbers: Sequence[int]) -> Tensor:
        sentences = [self.support.sentences[number] for number in numbers]
        return _loss(self, self.settings, self.support.labels, sentences)

    @override
    def tag(self, sentences: Sequence[Sentence]) -> list[list[ScoredSpan]]:
        labels = self.support.labels
        questions = [ask(self.settings.question, label) for label in labels]
        spans = []
        for sentence in sentences:
            answers: list[ScoredSpan] = []
            logits = self.pointers(self.encoder, [(question, sentence) for question in questions])
            for label, label_logits in zip(labels, logits, strict=True):
                answers += self._answers(label, label_logits.sigmoid().cpu().numpy())
            spans.append(Greedy()(answers))
        return spans

    def _answers(self, label: str, probabilities: np.ndarray) -> list[ScoredSpan]:
        """Return the spans whose start and end, with probabilities ``sure`` [words, 2], exceed the threshold."""
        answers = []
        for start in range(len(probabilities)):
            for end in range(start, min(start + self.settings.longest, len(probabilities))):
                score = float(np.sqrt(probabilities[start, 0] * probabilities[end, 1]))
                if score > self.settings.threshold:
                    answers.append(ScoredSpan(Span(start, end + 1, label), score))
        return answers


def ask(question: str, label: str) -> Sentence:
    """Return the question about a label, in words.

    >>> " ".join(ask("what is the {} ?", "timeRange").words)
    'what is the time range ?'
    """
    return Sentence(tuple(question.replace("{}", in_words(label)).split()))


def _loss(
    parts: Mrc | _MrcLearner, settings: MrcSettings, labels: Sequence[str], sentences: Sequence[Sentence]
) -> Tensor:
    pairs, targets = [], []
    negatives = settings.negatives if parts.training else 0
    questions = {label: ask(settings.question, label) for label in labels}
    for sentence in sentences:
        for label in _labels_to_ask(sentence, labels, negatives):
            pairs.append((questions[label], sentence))
            target = torch.zeros(len(sentence), 2)
            for span in sentence.spans:
                if span.label == label:
                    target[span.start, 0] = target[span.end - 1, 1] = 1.0
            targets.append(target)
    logits = parts.pointers(parts.encoder, pairs)
    target_values = torch.cat(targets).to(parts.encoder.device)
    return nn.functional.binary_cross_entropy_with_logits(torch.cat(logits), target_values)


def _labels_to_ask(sentence: Sentence, labels: Sequence[str], negatives: int) -> list[str]:
    """Return the labels that the sentence has, and ``negatives`` of the others (0: all)."""
    present = {span.label for span in sentence.spans}
    absent = [label for label in labels if label not in present]
    if negatives and len(absent) > negatives:
        absent = [absent[number] for number in torch.randperm(len(absent))[:negatives].tolist()]
    return [label for label in labels if label in present or label in absent]
