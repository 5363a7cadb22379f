"""Damaged and forged checkpoints: every change is refused with one line that names a file, or has no effect.

A damaged file differs from its digest. A forged one has a digest of its own, so that only the checks of its content
stand between it and the user.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load, save

from spanshot.errors import CheckpointError, ConfigError
from spanshot.manifest import MANIFEST, Manifest, StoredFile
from spanshot.research import checkpoint
from spanshot.research.checkpoint import MODEL, RECORD, TOKENIZER, WEIGHTS, new_method
from spanshot.research.nn.pretrained import load_pretrained
from spanshot.research.training.settings import RunSettings
from spanshot.settings import parse_toml, to_toml
from spanshot.types import Sentence
from tiny import write_tiny_encoder

Change = Callable[[dict[str, object]], object]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    settings = RunSettings.of(
        {
            "method": {"name": "transfer"},
            "data": {"kind": "episodes", "train": "none", "dev": "none"},
            "encoder": {"name": str(write_tiny_encoder(folder / "encoder"))},
        }
    )
    method = new_method(settings)
    with torch.no_grad():  # far from uniform, so that the number of heads matters
        for name, weight in method.named_parameters():
            if name.endswith(("query.weight", "key.weight")):
                weight.mul_(40)
    method.source_head.know(["city", "Zürich"])
    checkpoint.save(folder / "whole", method, settings.model, record=settings.to_table())
    return folder / "whole"


@pytest.fixture
def folder(whole, tmp_path) -> Path:
    shutil.copytree(whole, tmp_path / "model")
    return tmp_path / "model"


def forge(folder: Path, name: str, content: bytes) -> None:
    """Replace a file, and its digest in the manifest."""
    (folder / name).write_bytes(content)
    manifest = Manifest.read(folder)
    Manifest(manifest.kind, {**manifest.files, name: StoredFile.of(name, content)}, ()).write(folder)


def forge_model(folder: Path, change: Change) -> None:
    table = parse_toml((folder / MODEL).read_text(encoding="utf-8"))
    change(table)
    forge(folder, MODEL, to_toml(table).encode())


def refused(folder: Path, *names: str) -> str:
    """Return the error of loading, which must be one line that names one of the files."""
    with pytest.raises(CheckpointError) as raised:
        checkpoint.load(folder)
    message = str(raised.value)
    assert "\n" not in message
    assert len(message) < 1200
    assert any(str(folder / name) in message for name in names), message
    return message


def vectors(folder: Path) -> torch.Tensor:
    with torch.no_grad():
        return checkpoint.load(folder).method.encoder([Sentence(("Oslo", "again"))]).first


def test_the_whole_one_loads_with_the_labels_of_its_head(whole):
    loaded = checkpoint.load(whole)
    assert loaded.method.source_head.labels == ("city", "Zürich")
    assert "source_head" in (whole / MODEL).read_text(encoding="utf-8")
    assert all(weight.dtype != torch.uint8 for weight in load((whole / WEIGHTS).read_bytes()).values())


@pytest.mark.parametrize("name", [MODEL, WEIGHTS, TOKENIZER])
def test_bits_that_flip_are_found_and_their_file_is_named(folder, name):
    content = (folder / name).read_bytes()
    rng = random.Random(name)
    for bit in (0, 8 * len(content) - 1, *(rng.randrange(8 * len(content)) for _ in range(40))):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        (folder / name).write_bytes(damaged)
        refused(folder, name)


def test_bits_that_flip_in_the_manifest_are_found_or_have_no_effect(whole, folder):
    content = (folder / MANIFEST).read_bytes()
    wanted = vectors(whole)
    rng = random.Random(1)
    for bit in (rng.randrange(8 * len(content)) for _ in range(120)):
        damaged = bytearray(content)
        damaged[bit // 8] ^= 1 << bit % 8
        (folder / MANIFEST).write_bytes(damaged)
        try:
            found = vectors(folder)
        except CheckpointError as problem:
            assert str(folder) in str(problem)  # noqa: PT017 (either outcome is fine)
            assert "\n" not in str(problem)  # noqa: PT017
        else:
            assert torch.equal(found, wanted)


def test_the_record_of_training_is_not_needed(whole, folder):
    for content in (b"[train]\nno_such_setting = 1\n", b"\xff", b"[" * 9999):
        forge(folder, RECORD, content)
        assert torch.equal(vectors(folder), vectors(whole))
    (folder / RECORD).unlink()
    assert torch.equal(vectors(folder), vectors(whole))


def test_loading_imports_no_corpus_and_no_training(folder):
    program = (
        "import sys\nfrom spanshot.research import checkpoint\n"
        f"checkpoint.load({str(folder)!r})\n"
        "wrong = [n for n in sys.modules if n.startswith(('spanshot.research.corpora', 'spanshot.research.tra'))]\n"
        "assert not wrong, wrong\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert not done.returncode, done.stderr


def huge(table: dict[str, object], section: str, key: str, value: object) -> None:
    table[section][key] = value  # type: ignore[index]


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("architecture", "model_type", "blip_text_model"),
        ("architecture", "model_type", "lightglue"),
        ("architecture", "model_type", "../bert"),
        ("architecture", "model_type", 1),
        ("architecture", "auto_map", {"AutoModel": "evil.Model"}),
        ("architecture", "quantization_config", {"quant_method": "evil"}),
        ("architecture", "is_decoder", True),
        ("architecture", "position_embedding_type", "relative_key"),
        ("architecture", "hidden_act", "os.system"),
        ("architecture", "num_attention_heads", 1),
        ("architecture", "num_attention_heads", 3),
        ("architecture", "num_attention_heads", 0),
        ("architecture", "num_hidden_layers", 1),
        ("architecture", "num_hidden_layers", 100_000_000),
        ("architecture", "hidden_size", 16_384),
        ("architecture", "vocab_size", 4_000_000),
        ("architecture", "vocab_size", 10**30),
        ("architecture", "vocab_size", -1),
        ("architecture", "vocab_size", 190.0),
        ("architecture", "max_position_embeddings", 131_072),
        ("architecture", "layer_norm_eps", float("nan")),
        ("architecture", "layer_norm_eps", "1e-12"),
        ("architecture", "pad_token_id", 10**6),
        ("pieces", "longest", 100_000),
        ("pieces", "longest", 0),
        ("pieces", "longest", "64"),
        ("pieces", "padding_id", -1),
        ("pieces", "padding_id", 10**6),
        ("pieces", "unknown", "[NONE]"),
        ("pieces", "evil", 1),
        ("encoder", "dropout", float("inf")),
        ("encoder", "dropout", 2.0),
        ("encoder", "evil", 1),
        ("method", "name", "os.system"),
        ("method", "name", "__class__"),
        ("method", "evil", 1),
        ("method", "scheme", "none"),
        ("method", "finetune_steps", 10**300),
        ("labels", "source_head", ["city"]),
        ("labels", "source_head", ["city", "city"]),
        ("labels", "source_head", [1, 2]),
        ("labels", "source_head", "city"),
        ("labels", "encoder", ["city"]),
        ("labels", "no.such.head", ["city"]),
        ("probe", "values", []),
        ("probe", "values", [0.0] * 16),
        ("probe", "values", ["a"]),
        ("probe", "values", [float("nan")] * 16),
    ],
)
def test_a_forged_setting_is_refused(folder, section, key, value):
    forge_model(folder, lambda table: huge(table, section, key, value))
    refused(folder, MODEL, WEIGHTS, TOKENIZER)


def test_fields_that_no_architecture_has_are_without_effect(whole, folder):
    forge_model(folder, lambda table: huge(table, "architecture", "_attn_implementation_internal", "evil/kernel"))
    assert torch.equal(vectors(folder), vectors(whole))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[method]",
        b"\xff\xfe",
        b"not toml",
        b"a = " + b"[" * 100_000,
        b"a = 1" + b"0" * 5000,
        b"evil = 1\n[method]\nname = 'esd'\n",
        b"method = 1\n",
        b"[method]\nname = 'esd'\n[architecture]\n[pieces]\n[labels]\n[probe]\n",
    ],
)
def test_a_model_file_that_is_none_is_refused(folder, content):
    forge(folder, MODEL, content)
    refused(folder, MODEL)


def changed_weights(change: Callable[[dict[str, torch.Tensor], str], object], name: str) -> Callable[[bytes], bytes]:
    def act(content: bytes) -> bytes:
        weights = load(content)
        change(weights, name)
        return save(weights)

    return act


WORDS = "encoder.transformer.embeddings.word_embeddings.weight"


def put(weights: dict[str, torch.Tensor], name: str, value: float) -> None:
    weights[name] = weights[name].clone()
    weights[name].view(-1)[3] = value


@pytest.mark.parametrize(
    "change",
    [
        lambda weights, name: put(weights, name, float("nan")),
        lambda weights, name: put(weights, name, float("inf")),
        lambda weights, name: weights.update({name: torch.full(weights[name].shape, 3e38)}),  # sums are infinite
        lambda weights, name: weights.update({name: (weights[name] * 100).to(torch.int8)}),
        lambda weights, name: weights.update({name: weights[name].to(torch.float64)}),
        lambda weights, name: weights.update({name: weights[name] > 0}),
        lambda weights, name: weights.update({name: weights[name][1:].contiguous()}),
        lambda weights, name: weights.update({name: weights[name].T.contiguous()}),
        lambda weights, name: weights.update({name: weights[name].roll(1, 0)}),
        lambda weights, name: weights.pop(name),
        lambda weights, name: weights.update({"evil": torch.zeros(1)}),
        lambda weights, name: weights.clear(),
    ],
)
def test_forged_weights_are_refused(folder, change):
    forge(folder, WEIGHTS, changed_weights(change, WORDS)((folder / WEIGHTS).read_bytes()))
    refused(folder, WEIGHTS, MODEL)


def with_header(header: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00" * 8,
        b"\xff" * 64,
        b"\x80\x04evil pickle.",
        with_header(b"{"),
        with_header(b'{"a": {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]}}') + b"\x00" * 4,
        with_header(b'{"a": {"dtype": "F32", "shape": [99999999999, 99999999999], "data_offsets": [0, 4]}}')
        + b"\x00" * 4,
        with_header(b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}}') + b"\x00" * 4,
        with_header(b"[" * 100_000),
        struct.pack("<Q", 2**63) + b"{}",
    ],
)
def test_weights_that_are_none_are_refused(folder, content):
    forge(folder, WEIGHTS, content)
    refused(folder, WEIGHTS)


def replacing(pattern: str) -> dict[str, object]:
    return {"type": "Replace", "pattern": {"Regex": pattern}, "content": "x"}


def test_a_pattern_that_usual_tokenizers_have_is_accepted(folder):
    record = json.loads((folder / TOKENIZER).read_text(encoding="utf-8"))
    record["normalizer"] = {"type": "Sequence", "normalizers": [record["normalizer"], replacing(" {2,}")]}
    forge(folder, TOKENIZER, json.dumps(record).encode())
    vectors(folder)


def test_a_rotated_vocabulary_is_refused(folder):
    record = json.loads((folder / TOKENIZER).read_text(encoding="utf-8"))
    vocabulary = record["model"]["vocab"]
    special = 4
    size = len(vocabulary) - special
    record["model"]["vocab"] = {
        piece: number if number < special else special + (number - special + 1) % size
        for piece, number in vocabulary.items()
    }
    forge(folder, TOKENIZER, json.dumps(record).encode())
    assert "do not belong together" in refused(folder, MODEL)


@pytest.mark.parametrize(
    "change",
    [
        lambda record: record["model"]["vocab"].update({"evil": 10**6}),
        lambda record: record["model"]["vocab"].clear(),
        lambda record: record["model"].update({"type": "Evil"}),
        lambda record: record.pop("model"),
        lambda record: record.update({"pre_tokenizer": {"type": "ByteLevel"}}),
        lambda record: record.update({"pre_tokenizer": [1]}),
        lambda record: record.update({"normalizer": {"type": "Replace", "pattern": {"Regex": "("}, "content": ""}}),
        lambda record: record.update({"normalizer": replacing("(a|a)*$")}),  # exponential time on "aaaa…b"
        lambda record: record.update({"normalizer": {"type": "Sequence", "normalizers": [replacing("a*a*$")]}}),
        lambda record: record.update({"post_processor": None}),
    ],
)
def test_a_forged_tokenizer_is_refused(folder, change):
    record = json.loads((folder / TOKENIZER).read_text(encoding="utf-8"))
    change(record)
    forge(folder, TOKENIZER, json.dumps(record).encode())
    refused(folder, TOKENIZER, MODEL)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff", b"[" * 100_000, b"1" * 5000, b'{"model": NaN}'])
def test_a_tokenizer_that_is_none_is_refused(folder, content):
    forge(folder, TOKENIZER, content)
    refused(folder, TOKENIZER)


@pytest.mark.skipif(os.name != "posix", reason="needs links")
def test_links_in_the_folder_lead_nowhere_else(folder, tmp_path):
    (folder / WEIGHTS).unlink()
    for target in ("/dev/zero", "/dev/null", str(tmp_path), str(folder / MODEL)):
        (folder / WEIGHTS).symlink_to(target)
        refused(folder, WEIGHTS)
        (folder / WEIGHTS).unlink()


# Encoders to train on


@pytest.fixture
def encoder(tmp_path) -> Path:
    return write_tiny_encoder(tmp_path / "encoder")


def forge_config(encoder: Path, **fields: object) -> None:
    path = encoder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **fields}), encoding="utf-8")


EVIL = "open(__import__('os').environ['PROOF'], 'w').close()\n"
ASK = """
import sys
from spanshot.errors import SpanshotError
from spanshot.research import checkpoint
from spanshot.research.nn.pretrained import load_pretrained
try:
    (checkpoint.load if sys.argv[1] == "checkpoint" else load_pretrained)(sys.argv[2])
except SpanshotError as problem:
    print(problem)
"""


@pytest.mark.parametrize("kind", ["checkpoint", "encoder"])
@pytest.mark.parametrize("model_type", ["bert", "blip_text_model"])
def test_no_code_of_a_folder_is_run_and_nothing_is_asked(folder, encoder, tmp_path, kind, model_type):
    """The prompt of transformers would be answered by the piped `y`."""
    auto_map = {"AutoModel": "evil.Model", "AutoConfig": "evil.Config", "AutoTokenizer": ["evil.T", "evil.T"]}
    target = folder if kind == "checkpoint" else encoder
    (target / "evil.py").write_text(EVIL, encoding="utf-8")
    forge_config(encoder, model_type=model_type, auto_map=auto_map)
    tokenizer = encoder / "tokenizer_config.json"
    tokenizer.write_text(
        json.dumps({**json.loads(tokenizer.read_text(encoding="utf-8")), "auto_map": auto_map}), encoding="utf-8"
    )
    forge_model(folder, lambda table: table["architecture"].update({"model_type": model_type, "auto_map": auto_map}))
    done = subprocess.run(
        [sys.executable, "-c", ASK, kind, str(target)],
        input="y\n" * 50,
        capture_output=True,
        text=True,
        env={**os.environ, "PROOF": str(tmp_path / "proof")},
    )
    assert not (tmp_path / "proof").exists()
    assert "y/N" not in done.stdout + done.stderr
    file = "model.toml" if kind == "checkpoint" else "config.json"
    assert f"{target / file}: " in done.stdout, done.stderr
    assert done.stdout.count("\n") == 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model_type": "gpt2"}, "model_type 'gpt2' is not supported"),
        ({"auto_map": {"AutoModel": "evil.Model"}}, "auto_map is not supported"),
        ({"num_attention_heads": 10**12}, "num_attention_heads must be a whole number"),
        ({"hidden_size": 33}, "not a multiple"),
        ({"hidden_act": "evil"}, "hidden_act must be one of"),
        ({"quantization_config": {"a": 1}}, "quantization_config is not supported"),
    ],
)
def test_the_config_of_an_encoder_is_checked(encoder, fields, message):
    forge_config(encoder, **fields)
    with pytest.raises(ConfigError, match=message) as raised:
        load_pretrained(str(encoder))
    assert str(encoder / "config.json") in str(raised.value)


def test_an_encoder_with_pickled_weights_only_is_refused(encoder):
    (encoder / "model.safetensors").rename(encoder / "pytorch_model.bin")
    with pytest.raises(ConfigError, match=r"model\.safetensors is missing"):
        load_pretrained(str(encoder))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda weights: weights.pop("embeddings.word_embeddings.weight"), "is missing"),
        (lambda weights: put(weights, "embeddings.word_embeddings.weight", float("nan")), "not finite"),
    ],
)
def test_the_weights_of_an_encoder_are_checked(encoder, change, message):
    path = encoder / "model.safetensors"
    weights = load(path.read_bytes())
    change(weights)
    path.write_bytes(save(weights))
    with pytest.raises(ConfigError, match=message) as raised:
        load_pretrained(str(encoder))
    assert str(path) in str(raised.value)
