"""A baseline: the encoder fine-tuned on the examples as an ordinary token tagger."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import nn

from spanshot.decode.decoders import TagDecoder
from spanshot.decode.scores import TokenScores
from spanshot.formats.examples import to_sentences
from spanshot.research.experiments.raw_text import Tag, TextExample
from spanshot.research.learning.method import evaluating
from spanshot.research.nn.encoder import Encoder
from spanshot.research.nn.loss import token_loss
from spanshot.research.nn.pretrained import load_pretrained
from spanshot.research.nn.tag_head import TagHead
from spanshot.types import Entity, Sentence
from spanshot.words import batches

SCHEME = "bio"


@dataclass(frozen=True, slots=True)
class TaggerRecipe:
    """How the tagger is fine-tuned: AdamW, warm-up over a tenth of the steps, then linear decay."""

    encoder: str = "minilm"
    rate: float = 3e-4
    head_rate: float = 3e-3
    """Rate of the new output layer, which starts at zero."""
    epochs: int = 20
    least_steps: int = 80
    batch: int = 8
    seed: int = 1

    def steps(self, sentences: int) -> int:
        """Return the number of steps on a support set.

        >>> TaggerRecipe().steps(5), TaggerRecipe().steps(100)
        (80, 260)
        """
        return max(self.least_steps, self.epochs * -(-sentences // self.batch))


class Tagger(nn.Module):
    """The encoder with an output layer."""

    def __init__(self, encoder: Encoder, labels: Sequence[str]) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = TagHead(encoder.size, SCHEME, labels)


@lru_cache(maxsize=1)
def _encoder(name: str) -> Encoder:
    return load_pretrained(name, freeze_embeddings=True)


def finetune_tagger(labels: Sequence[str], support: Sequence[TextExample], recipe: TaggerRecipe) -> Tag:
    """Fine-tune a tagger on annotated texts."""
    sentences = to_sentences([example.record() for example in support])
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        tagger = Tagger(copy.deepcopy(_encoder(recipe.encoder)), labels).train()
        _take_steps(tagger, sentences, recipe)
    tagger.eval()
    return lambda texts: [_entities(sentence, scores) for sentence, scores in _scores(tagger, texts)]


def _take_steps(tagger: Tagger, sentences: Sequence[Sentence], recipe: TaggerRecipe) -> None:
    steps = recipe.steps(len(sentences))
    groups = [
        {"params": [p for p in tagger.encoder.parameters() if p.requires_grad], "lr": recipe.rate},
        {"params": list(tagger.head.parameters()), "lr": recipe.head_rate},
    ]
    optimizer = torch.optim.AdamW(groups, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / (0.1 * steps), (steps - step) / (0.9 * steps), 1.0)
    )
    order: list[int] = []
    for _ in range(steps):
        if not order:
            order = torch.randperm(len(sentences)).tolist()
        numbers, order = order[: recipe.batch], order[recipe.batch :]
        drawn = [sentences[number] for number in numbers]
        loss = token_loss(tagger.head(tagger.encoder(drawn)), drawn, SCHEME)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(tagger.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()


def _scores(tagger: Tagger, texts: Sequence[str]) -> list[tuple[Sentence, TokenScores]]:
    sentences = [Sentence.of_text(text) for text in texts]
    scores: dict[int, TokenScores] = {}
    for numbers in batches([len(sentence) for sentence in sentences], 256):
        with evaluating(tagger):
            logits = tagger.head(tagger.encoder([sentences[number] for number in numbers]))
        for number, word_logits in zip(numbers, logits, strict=True):
            scores[number] = TokenScores(word_logits.tags, word_logits.logits.numpy())
    return [(sentence, scores[number]) for number, sentence in enumerate(sentences)]


def _entities(sentence: Sentence, scores: TokenScores) -> list[Entity]:
    entities = []
    for scored in TagDecoder(SCHEME)(scores):
        start, end = sentence.offsets[scored.span.start][0], sentence.offsets[scored.span.end - 1][1]
        entities.append(Entity(sentence.text[start:end], scored.span.label, start, end, scored.score))
    return entities
