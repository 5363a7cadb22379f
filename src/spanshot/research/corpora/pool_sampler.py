"""Draw pools of sentences, with episodes that look like real use, from many corpora."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

from spanshot.errors import ConfigError
from spanshot.research.corpora.label_names import empty_names, paraphrase, plain_name
from spanshot.research.corpora.source import check_probability
from spanshot.research.corpora.variation import masked, without_signs
from spanshot.research.pools import Pool, PoolEpisode
from spanshot.types import Sentence

LETTERS_PER_PIECE = 6  # about as many pieces as minilm's tokenizer makes of English text
SHARED_SHOTS = (1, 1, 2, 2, 5)  # examples of each label in episodes of a corpus with many fine labels
SHOTS = (1, 1, 2, 3, 5, 8)
LATER_SHOTS = (1, 1, 2, 5, 1000)  # of the later episodes of a pool; 1000: all there are
UNMARKED = (0, 0, 1, 2, 4, 8)  # support sentences added without regard to their labels
MOST_ABSENT = 8
SUPPORT_SHARE = 0.7  # most of a pool's sentences that one support has
WANTED_SHARE = 0.6  # part of a pool that is filled with sentences that have the wanted labels


@dataclass(frozen=True)
class PoolSettings:
    """How pools are drawn."""

    pool_pieces: int = 640
    """Pieces of a pool, estimated from the length of words. It bounds the cost of a step."""
    pool_sentences: int = 48
    """Maximum number of sentences in a pool."""
    large_pools: float = 0.08
    """Share of pools of double size."""
    longest: int = 110
    """Maximum length of a sentence, in pieces (estimated); longer ones are left out."""
    most_labels: int = 10
    """Maximum number of labels per episode; the minimum is 1."""
    pool_episodes: int = 3
    """Episodes of a pool, each with its own labels, support and query."""
    pool_labels: int = 20
    """Maximum number of labels in a pool, including labels that occur in none of its sentences."""
    nameless: float = 1 / 3
    """Share of episodes in which the labels' names are hidden."""
    empty_names: float = 0.05
    """Share of pools whose labels have names that say nothing, such as `label 1`."""
    word_mask: float = 0.08
    """Probability that a word is hidden, in half of the pools."""
    span_mask: float = 0.08
    """Probability that all words of a marked span are hidden, in half of the pools."""
    no_final_sign: float = 0.15
    """Share of pools without the final punctuation of sentences."""
    no_signs: float = 0.07
    """Share of pools without punctuation, except within marked spans."""
    fewnerd_share: float = 0.15
    """Share of pools from the corpus `fewnerd`, with 5 to 10 labels at a time; others are drawn by the square root of
    their size."""

    def __post_init__(self) -> None:
        for field in fields(PoolSettings):
            value = getattr(self, field.name)
            if isinstance(value, float) and field.type == "float":
                check_probability(field.name, value)
            elif isinstance(value, int) and value < 1:
                raise ConfigError(f"{field.name} must be at least 1; found {value}")
        if self.fewnerd_share >= 1:
            raise ConfigError(f"fewnerd_share must be below 1; found {self.fewnerd_share}")


def estimated_pieces(sentence: Sentence) -> int:
    """Return about how many pieces a tokenizer makes of a sentence, the two around it included."""
    return 2 + sum(math.ceil(len(word) / LETTERS_PER_PIECE) for word in sentence.words)


class _Corpus:
    """The sentences of a corpus, with an index by label."""

    def __init__(self, name: str, sentences: Sequence[Sentence], longest: int) -> None:
        self.name = name
        sized = [(estimated_pieces(sentence), sentence) for sentence in sentences]
        short_enough = [(size, sentence) for size, sentence in sized if size <= longest]
        self.sentences = [sentence for _, sentence in short_enough]
        self.sizes = [size for size, _ in short_enough]
        holders: dict[str, list[int]] = {}
        for number, sentence in enumerate(self.sentences):
            for label in dict.fromkeys(span.label for span in sentence.spans):
                holders.setdefault(label, []).append(number)
        self.holders = dict(sorted(holders.items()))
        self.labels = list(self.holders)
        self.chances = [math.sqrt(len(numbers)) for numbers in self.holders.values()]
        self.dense = name == "fewnerd"


class PoolSampler:
    """Draws pools, with the random generator it is called with."""

    def __init__(self, corpora: Mapping[str, Sequence[Sentence]], settings: PoolSettings) -> None:
        self.settings = settings
        read = [_Corpus(name, sentences, settings.longest) for name, sentences in corpora.items()]
        self._corpora = [corpus for corpus in read if corpus.labels]
        if not self._corpora:
            raise ConfigError("no corpus has a labelled sentence that is short enough; check data.parts and longest")
        self._weights = [math.sqrt(len(corpus.sentences)) for corpus in self._corpora]
        sparse_weight = sum(
            weight for weight, pool_corpus in zip(self._weights, self._corpora, strict=True) if not pool_corpus.dense
        )
        share = settings.fewnerd_share
        if sparse_weight:
            self._weights = [
                share / (1 - share) * sparse_weight if pool_corpus.dense else weight
                for weight, pool_corpus in zip(self._weights, self._corpora, strict=True)
            ]

    def __call__(self, rng: random.Random) -> Pool:
        """Draw a pool with at least one episode."""
        while True:
            (corpus,) = rng.choices(self._corpora, self._weights)
            scale = 2.0 if rng.random() < self.settings.large_pools else 1.0
            targets, shots = self._request(corpus, rng)
            sentences = [corpus.sentences[number] for number in self._choose(corpus, targets, shots, scale, rng)]
            pool = self._assemble(corpus, self._vary(sentences, rng), targets, shots, rng)
            if pool.episodes:
                return pool

    def _request(self, corpus: _Corpus, rng: random.Random) -> tuple[list[str], int]:
        """Choose labels (half of the time labels that occur together) and the number of examples of each."""
        max_labels = min(self.settings.most_labels, len(corpus.labels))
        count = rng.randint(min(5, max_labels) if corpus.dense else 1, max_labels)
        targets = rng.choices(corpus.labels, corpus.chances)
        together = rng.random() < 0.5
        for _ in range(20 * count):
            if len(targets) >= count:
                break
            if together and rng.random() < 0.8:
                number = rng.choice(corpus.holders[rng.choice(targets)])
                label = rng.choice(corpus.sentences[number].spans).label
            else:
                (label,) = rng.choices(corpus.labels, corpus.chances)
            if label not in targets:
                targets.append(label)
        return targets, rng.choice(SHARED_SHOTS if corpus.dense else SHOTS)

    def _choose(
        self, corpus: _Corpus, targets: Sequence[str], shots: int, scale: float, rng: random.Random
    ) -> list[int]:
        """Choose sentences with the target labels first, then any."""
        room = self.settings.pool_pieces * scale
        max_sentences = int(self.settings.pool_sentences * scale)
        chosen: dict[int, None] = {}
        n_words = 0
        for label in [label for _ in range(2 * shots + 1) for label in targets]:
            number = rng.choice(corpus.holders[label])
            if number not in chosen:
                if n_words + corpus.sizes[number] > WANTED_SHARE * room or len(chosen) >= WANTED_SHARE * max_sentences:
                    break
                chosen[number] = None
                n_words += corpus.sizes[number]
        for _ in range(4 * max_sentences):
            number = rng.randrange(len(corpus.sentences))
            if len(chosen) >= min(max_sentences, len(corpus.sentences)) or n_words + corpus.sizes[number] > room:
                break
            if number not in chosen:
                chosen[number] = None
                n_words += corpus.sizes[number]
        return list(chosen)

    def _vary(self, sentences: list[Sentence], rng: random.Random) -> list[Sentence]:
        """Drop punctuation and hide words, with the same probabilities in all sentences of a pool."""
        settings = self.settings
        draw = rng.random()
        if draw < settings.no_signs + settings.no_final_sign:
            sentences = [without_signs(sentence, final_only=draw >= settings.no_signs) for sentence in sentences]
        words = settings.word_mask if rng.random() < 0.5 else 0.0
        spans = settings.span_mask if rng.random() < 0.5 else 0.0
        return [masked(sentence, words, spans, rng) for sentence in sentences] if words or spans else sentences

    def _assemble(
        self, corpus: _Corpus, sentences: Sequence[Sentence], targets: list[str], shots: int, rng: random.Random
    ) -> Pool:
        settings = self.settings
        present = {span.label for sentence in sentences for span in sentence.spans}
        absent = [label for label in corpus.labels if label not in present and label not in targets]
        rng.shuffle(absent)
        pool_labels = [*dict.fromkeys([*targets, *sorted(present)])][: settings.pool_labels]
        labels = [*pool_labels, *absent[: max(0, min(MOST_ABSENT, settings.pool_labels - len(pool_labels)))]]
        informative = rng.random() >= settings.empty_names
        if not informative:
            names = empty_names(len(labels), rng)
        elif rng.random() < 0.5:
            names = [plain_name(label) for label in labels]
        else:
            names = [paraphrase(label, rng) for label in labels]
        episodes = [self._episode(sentences, targets, shots, rng)]
        for _ in range(settings.pool_episodes - 1):
            some = rng.sample(pool_labels, rng.randint(1, min(settings.most_labels, len(pool_labels))))
            episodes.append(self._episode(sentences, some, rng.choice(LATER_SHOTS), rng))
        return Pool(
            tuple(sentences),
            dict(zip(labels, names, strict=True)),
            tuple(episode for episode in episodes if episode),
            informative,
            corpus.name,
        )

    def _episode(
        self, sentences: Sequence[Sentence], targets: Sequence[str], shots: int, rng: random.Random
    ) -> PoolEpisode | None:
        """Take support sentences until each label has enough examples; the rest is the query."""
        order = rng.sample(range(len(sentences)), len(sentences))
        room = int(SUPPORT_SHARE * len(order))
        missing = dict.fromkeys(targets, shots)
        support: list[int] = []
        for number in order:
            spans = sentences[number].spans
            if len(support) < room and any(missing.get(span.label, 0) > 0 for span in spans):
                support.append(number)
                for span in spans:
                    if span.label in missing:
                        missing[span.label] -= 1
        labels = tuple(label for label in targets if missing[label] < shots)
        support_numbers = set(support)
        remaining = [number for number in order if number not in support_numbers]
        unmarked = min(rng.choice(UNMARKED), max(0, room - len(support)))
        query = remaining[unmarked:]
        if not labels or not query:
            return None
        named = rng.random() >= self.settings.nameless
        return PoolEpisode(labels, (*support, *remaining[:unmarked]), tuple(query), named)
