"""Share taggers and models on the Hugging Face Hub, and load them: ``spanshot.load("user/name")``.

A repository holds the files of a checkpoint and a card. Loading reads them like those of any other folder: as data,
never as code.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import spanshot
from spanshot.checkpoint import checkpoint_in, read_checkpoint
from spanshot.errors import CheckpointError, ConfigError, SpanshotError
from spanshot.json_text import to_json
from spanshot.manifest import MANIFEST, Manifest
from spanshot.optional import MissingPackageError, need
from spanshot.types import SupportSet

if TYPE_CHECKING:
    from spanshot.tagger import Tagger

CARD = "README.md"
SUFFIXES = {".json", ".onnx", ".safetensors", ".toml"}
"""The files of checkpoints; no others are uploaded or downloaded."""
MOST_BYTES = 4 * 10**9
"""Largest checkpoint that is downloaded."""
_MOST_MANIFEST = 10**6
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
_REVISION = re.compile(r"[A-Za-z0-9][\w./-]{0,99}", re.ASCII)


def is_hub_name(name: str | Path) -> bool:
    """Return whether a name is that of a repository, such as ``user/name`` or ``user/name@revision``, and no folder.

    >>> is_hub_name("user/cities"), is_hub_name("user/cities@v1"), is_hub_name("./cities"), is_hub_name("a/b/c")
    (True, True, False, False)
    """
    if not isinstance(name, str):
        return False
    repository, at, revision = name.partition("@")
    is_name = _REPOSITORY.fullmatch(repository) is not None and (not at or _REVISION.fullmatch(revision) is not None)
    return is_name and not Path(name).exists()


def download(name: str, revision: str | None = None) -> Path:
    """Download the checkpoint of a repository and return its folder in the cache of the hub.

    All files are of one commit. Their digests are checked when the folder is read.
    """
    repository, _, pinned = name.partition("@")
    if pinned and revision:
        raise ConfigError(f"give one revision: {name!r} names {pinned!r} already; found {revision!r}, too")
    try:
        hub = need("huggingface_hub", "hub")
    except MissingPackageError as problem:
        raise CheckpointError(f"{name}: no such folder; if it is on the hub: {problem}") from None
    try:
        commit = revision or pinned or "main"
        _check_size(repository, MANIFEST, commit, None)
        folder = Path(hub.hf_hub_download(repository, MANIFEST, revision=commit)).parent
        manifest = Manifest.read(folder)
        if sum(stored.size for stored in manifest.files.values()) > MOST_BYTES:
            raise CheckpointError(f"{name}: larger than {MOST_BYTES:,} bytes")
        for stored in manifest.files.values():
            if Path(stored.file).suffix not in SUFFIXES:
                raise CheckpointError(f"{name}: {stored.file!r} is not a file of a checkpoint")
            _check_size(repository, stored.file, folder.name, stored.size)
            hub.hf_hub_download(repository, stored.file, revision=folder.name)
    except SpanshotError:
        raise
    except Exception as problem:  # errors of the network, of the hub and of the disk have no common base class
        raise CheckpointError(f"{name}: cannot be loaded from the hub: {_reason(problem)}") from None
    return folder


def _check_size(repository: str, file: str, revision: str, expected: int | None) -> None:
    """Raise an error if a file on the hub has not the size it should have, before it is downloaded."""
    hub = need("huggingface_hub", "hub")
    if need("huggingface_hub.constants", "hub").HF_HUB_OFFLINE:
        return
    size = hub.get_hf_file_metadata(hub.hf_hub_url(repository, file, revision=revision)).size
    is_wrong = (size is None or size > _MOST_MANIFEST) if expected is None else size != expected
    if is_wrong:
        wanted = f"at most {_MOST_MANIFEST}" if expected is None else expected
        raise CheckpointError(f"{repository}: {file} has {size} bytes; expected {wanted}")


@dataclass(frozen=True, slots=True)
class Upload:
    """Where on the hub files are uploaded to, and how; see `Tagger.push_to_hub`."""

    repository: str
    message: str
    private: bool = False
    token: str | None = None
    revision: str | None = None

    def send(self, folder: Path) -> str:
        """Upload the files of a folder and return the id of the commit."""
        if not _REPOSITORY.fullmatch(self.repository):
            raise ConfigError(f"the name of a repository must be like 'user/name'; found {self.repository!r}")
        hub = need("huggingface_hub", "hub")
        api = hub.HfApi(token=self.token, library_name="spanshot", library_version=spanshot.__version__)
        try:
            api.create_repo(self.repository, private=self.private, exist_ok=True)
            if self.revision is not None:
                api.create_branch(self.repository, branch=self.revision, exist_ok=True)
            commit = api.upload_folder(
                repo_id=self.repository,
                folder_path=folder,
                revision=self.revision,
                commit_message=self.message,
                delete_patterns=[f"*{suffix}" for suffix in sorted(SUFFIXES)],  # files of an earlier version
            )
        except Exception as problem:  # errors of the network, of the hub and of the disk have no common base class
            raise ConfigError(f"{self.repository}: cannot be uploaded: {_reason(problem)}") from None
        return str(commit.oid)


def push_tagger(tagger: Tagger, upload: Upload, *, whole: bool = False, examples: bool = True) -> str:
    """Upload a tagger and return the id of the commit; see `Tagger.push_to_hub`."""
    with tempfile.TemporaryDirectory() as parent:
        folder = Path(parent) / "tagger"
        tagger.save(folder, whole=whole, examples=examples)
        card = tagger_card(tagger, upload.repository, examples=examples)
        (folder / CARD).write_text(card, encoding="utf-8", newline="\n")
        return upload.send(folder)


def push_folder(
    folder: str | Path,
    repository: str,
    *,
    private: bool = False,
    token: str | None = None,
    revision: str | None = None,
    message: str = "Upload a model",
) -> str:
    """Upload the checkpoint in a folder, such as an exported model, and return the id of the commit."""
    checkpoint = read_checkpoint(checkpoint_in(Path(folder)))
    with tempfile.TemporaryDirectory() as parent:
        copy = Path(parent) / "checkpoint"
        copy.mkdir()
        for name in [MANIFEST, *(stored.file for stored in checkpoint.manifest.files.values())]:
            if Path(name).suffix not in SUFFIXES:
                raise CheckpointError(f"{folder}: {name!r} is not a file of a checkpoint")
            shutil.copyfile(checkpoint.folder / name, copy / name)
        card = model_card(checkpoint.kind, sorted(checkpoint.manifest.files), repository)
        (copy / CARD).write_text(card, encoding="utf-8", newline="\n")
        return Upload(repository, message, private, token, revision).send(copy)


def _reason(problem: BaseException) -> str:
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return (lines[0] if lines else type(problem).__name__)[:300].rstrip(".")


def tagger_card(tagger: Tagger, repository: str, *, examples: bool = True) -> str:
    """Return the card of a tagger: its labels and options, and how to use it."""
    support = tagger.support
    rows = [f"| {_cell(label)} | {_cell(name)} | {count} |" for label, name, count in _label_rows(support)]
    kept = (
        f"The {len(support.sentences):,} examples are part of the repository (`tagger.json`), for everybody who can "
        "read it."
        if examples
        else "The examples are not part of the repository, so the tagger cannot learn more."
    )
    options = tagger.options
    chosen = {"nested": options.nested, "threshold": options.threshold, "precision": options.precision}
    settings = ", ".join(f"{name} = {setting}" for name, setting in chosen.items() if setting) or "the defaults"
    lines = [
        *_front_matter(),
        f"# {_cell(repository.partition('/')[2])}",
        "",
        f"Finds entities of {len(support.labels)} {'label' if len(support.labels) == 1 else 'labels'} in text. Learned "
        f"from {len(support.sentences):,} examples with [spanshot](https://spanshot.readthedocs.io) "
        f"{spanshot.__version__}.",
        "",
        "| label | description | marked in examples |",
        "| --- | --- | --- |",
        *rows,
        "",
        *_usage("spanshot.load", repository, "for entity in tagger(text):", "print(entity.text, entity.label)"),
        f"Options: {_cell(settings)}. {kept}",
        "",
        *_limits(),
    ]
    return "\n".join(lines)


def model_card(kind: str, files: list[str], repository: str) -> str:
    """Return the card of a checkpoint: its files, and how to use it."""
    function = "spanshot.load" if kind == "tagger" else "spanshot.load_model"
    lines = [
        *_front_matter(),
        f"# {_cell(repository.partition('/')[2])}",
        "",
        f"A {kind} of [spanshot](https://spanshot.readthedocs.io) {spanshot.__version__}.",
        "",
        *_usage(function, repository, "for entity in tagger(text):", "print(entity.text, entity.label)"),
        f"Files: {', '.join(f'`{file}`' for file in files)}.",
        "",
        *_limits(),
    ]
    return "\n".join(lines)


def _front_matter() -> list[str]:
    tags = ["few-shot", "named-entity-recognition", "spanshot"]
    return ["---", "library_name: spanshot", "pipeline_tag: token-classification", f"tags: {to_json(tags)}", "---", ""]


def _usage(function: str, repository: str, *lines: str) -> list[str]:
    loaded = f'tagger = {function}("{repository}")'
    if function.endswith("load_model"):
        loaded = f'tagger = {function}("{repository}").learn(examples)'
    pinned = f'`{function}("{repository}", revision="...")` loads the same files for ever: give the id of a commit.'
    code = ["```python", "import spanshot", "", loaded, lines[0], f"    {lines[1]}", "```"]
    return ["Install it with `pip install 'spanshot[hub]'`.", "", *code, "", pinned, ""]


def _limits() -> list[str]:
    return [
        "The repository holds data only (safetensors, JSON, TOML, graphs without code). A tagger finds what looks like "
        "its examples; measure it on texts of your own before you rely on it.",
        "",
    ]


def _label_rows(support: SupportSet) -> list[tuple[str, str, int]]:
    counts = Counter(span.label for sentence in support.sentences for span in sentence.spans)
    return [(label, name, counts[label]) for label, name in support.label_names.items()]


def _cell(text: str) -> str:
    """Return a text as it can stand in a table: on one line, without markup."""
    return re.sub(r"([\\`*_\[\]<>|#!])", r"\\\1", " ".join(text.split()))
