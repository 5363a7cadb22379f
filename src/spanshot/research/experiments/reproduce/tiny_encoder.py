"""A BERT of a few kilobytes with random weights, for the small budget: it tests the machinery, not the methods."""

from __future__ import annotations

import string
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertModel

SIZE, LAYERS = 32, 1
_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")


def write_tiny_encoder(folder: Path) -> None:
    """Write the encoder in Hugging Face layout. Its pieces are single characters."""
    characters = string.ascii_lowercase + string.digits + string.punctuation
    pieces = [*_SPECIAL, *characters, *(f"##{character}" for character in characters)]
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", vocabulary["[SEP]"]), ("[CLS]", vocabulary["[CLS]"]))
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=SIZE,
        num_hidden_layers=LAYERS,
        num_attention_heads=2,
        intermediate_size=2 * SIZE,
        max_position_embeddings=512,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        weights = BertModel(config, add_pooling_layer=False).state_dict()
    folder.mkdir(parents=True, exist_ok=True)
    config.to_json_file(folder / "config.json")
    save_file(weights, folder / "model.safetensors")
    tokenizer.save(str(folder / "tokenizer.json"))
