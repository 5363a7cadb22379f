"""Taggers on disk. Several processes may use one folder at the same time.

``taggers/t-NAME/000001`` is the first version of a tagger: a checkpoint like that of `Tagger.save`, without the model.
A change writes a new version under a temporary name and renames it, so a version is there completely or not at all,
whatever kills the process. Changes of one tagger hold a lock; readers need none.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from spanshot.checkpoint import read_checkpoint, write_checkpoint
from spanshot.errors import CheckpointError, ConfigError
from spanshot.head_file import HEAD, head_bytes
from spanshot.learner import LinearLearner
from spanshot.linear_tagger import LinearTagger
from spanshot.locks import locked
from spanshot.manifest import MANIFEST
from spanshot.model import Model
from spanshot.saved_tagger import SavedTagger
from spanshot.service.errors import ServiceError, not_found, overloaded
from spanshot.tagger import Tagger
from spanshot.tagger_file import TAGGER, TaggerFile, parse_tagger_json, tagger_json

NAME = "^[a-z0-9][a-z0-9_-]{0,63}$"
"""The names of taggers. They are the same on file systems that ignore case, and no path."""
_NAME = re.compile(NAME[1:-1])
_VERSION = re.compile("[0-9]{6,9}")
_PREFIX, _DELETED = "t-", ".deleted-"
LOCK_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class StoredTagger:
    """A version of a tagger on disk."""

    name: str
    version: int
    folder: Path
    stamp: tuple[int, int]
    """Differs between a tagger and one that was deleted and had the same name and version."""
    created: float
    """Seconds since 1970."""


class TaggerStore:
    """The taggers in a folder."""

    def __init__(self, folder: Path, versions: int = 10) -> None:
        self._taggers = folder / "taggers"
        self._locks = folder / "locks"
        self._versions = versions
        try:
            for path in (self._taggers, self._locks):
                path.mkdir(parents=True, exist_ok=True)
            self._sweep()
        except OSError as problem:
            raise ConfigError(f"{folder}: cannot be used for taggers: {problem.strerror}") from None

    def names(self) -> list[str]:
        """Return the names of all taggers, in alphabetical order."""
        names = []
        with os.scandir(self._taggers) as entries:
            for entry in entries:
                name = entry.name.removeprefix(_PREFIX)
                if entry.name.startswith(_PREFIX) and _NAME.fullmatch(name) and self.versions(name):
                    names.append(name)
        return sorted(names)

    def count(self) -> int:
        """Return the number of taggers, without looking into their folders."""
        with os.scandir(self._taggers) as entries:
            return sum(entry.name.startswith(_PREFIX) for entry in entries)

    def versions(self, name: str) -> list[int]:
        """Return the versions of a tagger, the oldest first; none if it does not exist."""
        try:
            with os.scandir(self._folder(name)) as entries:
                return sorted(int(entry.name) for entry in entries if _VERSION.fullmatch(entry.name))
        except FileNotFoundError:
            return []

    def find(self, name: str, version: int | None = None) -> StoredTagger:
        """Return the newest version of a tagger, or the one with that number."""
        for _ in range(3):  # a version may be removed at this moment
            versions = self.versions(name)
            if not versions:
                break
            if version is not None and version not in versions:
                raise not_found("version", f"{name}/{version}")
            with contextlib.suppress(FileNotFoundError):
                return self._stored(name, versions[-1] if version is None else version)
        raise not_found("tagger", name)

    def load(self, stored: StoredTagger, model: Model) -> Tagger:
        """Load a tagger, with the one model that all share."""
        checkpoint = read_checkpoint(stored.folder, [TAGGER, HEAD])
        content = parse_tagger_json(checkpoint.text(TAGGER))
        return SavedTagger(checkpoint, content, None, None, None).restore(model)

    def content(self, stored: StoredTagger) -> TaggerFile:
        """Return the examples and options of a tagger, without its head."""
        return parse_tagger_json(read_checkpoint(stored.folder, [TAGGER]).text(TAGGER))

    @contextmanager
    def changing(self, name: str) -> Iterator[None]:
        """Let no other thread or process change the tagger meanwhile."""
        self._folder(name)
        try:
            with locked(self._locks / f"{_PREFIX}{name}.lock", LOCK_SECONDS):
                yield
        except TimeoutError:
            raise overloaded(f"the tagger {name!r} is being changed") from None

    def save(self, name: str, tagger: Tagger) -> StoredTagger:
        """Save a tagger as the next version and return it; call it within `changing`."""
        model, head = tagger.model, tagger.sentence_tagger
        assert isinstance(model, Model)
        assert isinstance(model.method, LinearLearner)
        assert isinstance(head, LinearTagger)
        content = TaggerFile(tagger.support, tagger.options, model.method.digest, True, tagger.by_line)
        files = {TAGGER: tagger_json(content).encode(), HEAD: head_bytes(head, examples=True)}
        versions = self.versions(name)
        version = versions[-1] + 1 if versions else 1
        try:
            write_checkpoint(self._folder(name) / f"{version:06}", "tagger", files)
        except CheckpointError as problem:
            raise ServiceError(507, "not_saved", f"the tagger cannot be saved: {_reason(problem)}") from None
        for old in versions[: max(0, len(versions) + 1 - self._versions)]:
            self._remove(self._folder(name) / f"{old:06}")
        return self._stored(name, version)

    def delete(self, name: str) -> None:
        """Delete all versions of a tagger."""
        with self.changing(name):
            if not self.versions(name):
                raise not_found("tagger", name)
            self._remove(self._folder(name))

    def check_writable(self) -> None:
        """Raise `OSError` if nothing can be saved."""
        probe = self._locks / f".probe-{secrets.token_hex(8)}"
        probe.touch()
        probe.unlink()

    def _folder(self, name: str) -> Path:
        if not _NAME.fullmatch(name):  # requests are checked before; this is the last line of defence
            raise not_found("tagger", name[:80])
        return self._taggers / f"{_PREFIX}{name}"

    def _stored(self, name: str, version: int) -> StoredTagger:
        folder = self._folder(name) / f"{version:06}"
        status = (folder / MANIFEST).stat()
        return StoredTagger(name, version, folder, (status.st_ino, status.st_mtime_ns), status.st_mtime)

    def _remove(self, folder: Path) -> None:
        """Rename a folder, which is one step, and remove it then."""
        hidden = self._taggers / f"{_DELETED}{secrets.token_hex(8)}"
        for left in range(20, -1, -1):
            try:
                folder.rename(hidden)
            except PermissionError:  # on Windows: another process reads it
                if not left:
                    raise
                time.sleep(0.05)
            else:
                break
        shutil.rmtree(hidden, ignore_errors=True)

    def _sweep(self) -> None:
        """Remove what killed processes have left of deleted taggers."""
        with os.scandir(self._taggers) as entries:
            for entry in entries:
                if entry.name.startswith(_DELETED):
                    shutil.rmtree(entry.path, ignore_errors=True)


def _reason(problem: CheckpointError) -> str:
    """Return the reason without the path, which clients need not know."""
    return str(problem).rpartition(": ")[2]
