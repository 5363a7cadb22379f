"""Encoders from a hub, played by folders of the test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from spanshot.errors import ConfigError
from spanshot.research.nn import pretrained
from spanshot.research.nn.pretrained import MINILM_ID, MINILM_REVISION, load_pretrained
from tiny import write_tiny_encoder


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> Path:
    return write_tiny_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture
def asked(tiny, monkeypatch) -> list[tuple[str, str | None, list[str]]]:
    """What was downloaded; the tiny encoder is all that there is."""
    downloads = []

    def snapshot_download(repository: str, *, revision: str | None, allow_patterns: list[str]) -> str:
        downloads.append((repository, revision, allow_patterns))
        return str(tiny)

    monkeypatch.setattr(pretrained.huggingface_hub, "snapshot_download", snapshot_download)
    return downloads


def test_minilm_is_a_hub_id_with_a_pinned_revision(asked, monkeypatch):
    monkeypatch.setattr(pretrained, "_MINILM_PACKAGES", {"no_such_package": "model"})
    load_pretrained("minilm")
    files = ["config.json", "model.safetensors", "tokenizer.json"]
    assert asked == [(MINILM_ID, MINILM_REVISION, files)]
    assert len(MINILM_REVISION) == 40


def test_a_revision_can_be_pinned_and_only_three_files_are_downloaded(asked):
    for name in ("some/encoder", "some/encoder@abc123"):
        load_pretrained(name)
    assert [(repository, revision) for repository, revision, _ in asked] == [
        ("some/encoder", None),
        ("some/encoder", "abc123"),
    ]


def test_a_local_folder_is_not_looked_for_on_the_hub(asked, tiny):
    load_pretrained(str(tiny))
    assert asked == []


def test_an_encoder_in_the_cache_of_the_hub_is_used_without_a_network(tiny, tmp_path, monkeypatch):
    revision = "a" * 40
    repository = tmp_path / "models--some--encoder"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(revision, encoding="utf-8")
    (repository / "snapshots").mkdir()
    shutil.copytree(tiny, repository / "snapshots" / revision)
    download = pretrained.huggingface_hub.snapshot_download
    monkeypatch.setattr(
        pretrained.huggingface_hub,
        "snapshot_download",
        lambda *args, **options: download(*args, cache_dir=tmp_path, local_files_only=True, **options),
    )
    cached, local = load_pretrained("some/encoder"), load_pretrained(str(tiny))
    assert all(torch.equal(weight, local.state_dict()[name]) for name, weight in cached.state_dict().items())
    with pytest.raises(ConfigError, match="encoder 'other/encoder' could not be loaded"):
        load_pretrained("other/encoder")


def test_a_hub_that_cannot_be_reached_is_one_line(monkeypatch):
    def fail(*args: object, **options: object) -> str:
        raise OSError("no network\nand a second line")

    monkeypatch.setattr(pretrained.huggingface_hub, "snapshot_download", fail)
    with pytest.raises(ConfigError, match=r"^encoder 'some/encoder' could not be loaded: no network\. Give 'minilm'"):
        load_pretrained("some/encoder")
