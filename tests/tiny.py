"""A random encoder of a few kilobytes and episodes of made-up sentences, for tests that train."""

from __future__ import annotations

import json
import random
import string
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from spanshot.research.corpora.episode_files import write_episodes
from spanshot.types import Episode, Sentence, Span, SupportSet
from toy_sentences import filled_template

NAMES = {
    "city": ("Oslo", "Rome", "Lima", "New York", "Cape Town"),
    "person": ("Ada", "Grace", "Alan", "Mary Ann", "Carl Friedrich"),
    "dish": ("soup", "bread", "rice", "apple pie", "green salad"),
    "day": ("Monday", "Friday", "Sunday", "next Tuesday", "New Year"),
}
TEMPLATES = (
    "we saw {} and {} .",
    "{} is not {}",
    "they asked for {} with {} today",
    "{} again !",
    "nobody knows why {} came before {} or {}",
)
EXAMPLES = """[Oslo](city) and [Ada](person) met today .
they asked for [Mary Ann](person) in [New York](city)
nobody knows why [Rome](city) came before [Carl Friedrich](person)
"""
"""Labelled examples as a user writes them."""
CORPORA = {"trips": ("city", "person"), "meals": ("dish", "day"), "held": ("city", "dish")}
"""The corpora that `write_corpora` writes, with their labels."""
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def write_tiny_encoder(folder: Path, *, positions: int = 64, seed: int = 0) -> Path:
    """A BERT of two layers and 32 dimensions in Hugging Face layout; all letters are in its vocabulary."""
    names = [word for own in NAMES.values() for name in own for word in name.lower().split()]
    fillers = [word for template in TEMPLATES for word in template.lower().split() if word != "{}"]
    characters = string.ascii_lowercase + string.digits + string.punctuation
    pieces = [*_SPECIAL, *characters, *(f"##{character}" for character in characters), *names, *fillers]
    vocabulary = {piece: number for number, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"]))
    config = transformers.BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=positions,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        transformers.BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    ).save_pretrained(folder)
    return Path(folder)


def toy_sentence(rng: random.Random, labels: tuple[str, ...]) -> Sentence:
    """A template filled with names of the labels."""
    return filled_template(rng, labels, TEMPLATES, NAMES)


def toy_episodes(
    count: int = 4,
    *,
    labels: tuple[str, ...] = ("city", "person"),
    support: int = 3,
    query: int = 3,
    domain: str = "",
    seed: int = 0,
) -> list[Episode]:
    """Episodes of the labels, each with at least one example; the support has ``support`` sentences or more."""
    rng = random.Random(seed)
    episodes = []
    for _ in range(count):
        shown = [toy_sentence(rng, labels) for _ in range(support)]
        seen = {span.label for sentence in shown for span in sentence.spans}
        shown += [
            Sentence((*NAMES[label][0].split(), "it", "is"), (Span(0, len(NAMES[label][0].split()), label),))
            for label in labels
            if label not in seen
        ]
        asked = tuple(toy_sentence(rng, labels) for _ in range(query))
        episodes.append(Episode(SupportSet(labels, tuple(shown)), asked, domain))
    return episodes


def write_corpora(folder: Path, sentences: int = 30) -> Path:
    """Small corpora as JSON lines, and dev episodes in `user_like`."""
    rng = random.Random(0)
    for name, labels in CORPORA.items():
        lines = []
        for number in range(sentences):
            sentence = toy_sentence(rng, labels)
            entities = [{"start": s.start, "end": s.end, "type": s.label} for s in sentence.spans]
            lines.append(json.dumps({"id": number, "tokens": list(sentence.words), "entities": entities}))
        for path in (folder / "corpora" / f"{name}.jsonl", folder / "user_like" / f"{name}_1.jsonl"):
            path.parent.mkdir(parents=True, exist_ok=True)
        (folder / "corpora" / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
        write_episodes(folder / "user_like" / f"{name}_1.jsonl", toy_episodes(2, labels=labels, seed=5))
    return folder
