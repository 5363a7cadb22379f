"""A baseline: spaCy's entity recogniser, trained from scratch on the examples."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from spanshot.formats.examples import to_sentences
from spanshot.research.experiments.raw_text import Tag, TextExample
from spanshot.tags import outermost
from spanshot.types import Entity, Sentence


@dataclass(frozen=True, slots=True)
class SpacyRecipe:
    """How the recogniser is trained."""

    epochs: int = 40
    least_steps: int = 100
    batch: int = 8
    dropout: float = 0.2
    seed: int = 1

    def epochs_on(self, sentences: int) -> int:
        """Return the number of passes over a support set."""
        return max(self.epochs, -(-self.least_steps // -(-sentences // self.batch)))


def train_spacy(labels: Sequence[str], support: Sequence[TextExample], recipe: SpacyRecipe) -> Tag:
    """Train a blank English pipeline on annotated texts, cut into the same words as in this package."""
    import spacy
    from spacy.tokens import Doc
    from spacy.training import Example

    spacy.util.fix_random_seed(recipe.seed)
    rng = random.Random(recipe.seed)
    language = spacy.blank("en")
    recogniser = language.add_pipe("ner")
    for label in labels:
        recogniser.add_label(label)

    def document(sentence: Sentence) -> Doc:
        ends = [start for start, _ in sentence.offsets[1:]] + [len(sentence.text)]
        spaces = [end < after for (_, end), after in zip(sentence.offsets, ends, strict=True)]
        return Doc(language.vocab, words=list(sentence.words), spaces=spaces)

    examples = []
    for sentence in to_sentences([example.record() for example in support]):
        offsets = sentence.offsets
        marks = [(offsets[s.start][0], offsets[s.end - 1][1], s.label) for s in outermost(sentence.spans)]
        examples.append(Example.from_dict(document(sentence), {"entities": marks}))
    optimizer = language.initialize(lambda: examples)
    for _ in range(recipe.epochs_on(len(examples))):
        rng.shuffle(examples)
        for start in range(0, len(examples), recipe.batch):
            language.update(examples[start : start + recipe.batch], sgd=optimizer, drop=recipe.dropout)

    def tag(texts: Sequence[str]) -> list[list[Entity]]:
        tagged = language.pipe(document(Sentence.of_text(text)) for text in texts)
        return [[Entity(e.text, e.label_, e.start_char, e.end_char) for e in doc.ents] for doc in tagged]

    return tag
