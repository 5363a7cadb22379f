"""The manifest of a checkpoint: which files belong to it, with sizes and digests."""

from __future__ import annotations

import hashlib
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from spanshot.errors import CheckpointError, DataError
from spanshot.files import write_text
from spanshot.json_text import Fields, JsonValue, parse_json, to_json

MANIFEST = "checkpoint.json"
FORMAT = 1
KINDS = ("model", "tagger")
_MOST_BYTES = 1_000_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")  # a name that is safe on every platform
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?|checkpoint\.json", re.IGNORECASE)
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class StoredFile:
    """A file of a checkpoint: its name on disk, size in bytes and digest."""

    file: str
    size: int
    sha256: str

    @classmethod
    def of(cls, file: str, content: bytes) -> StoredFile:
        """Describe a file with this content."""
        return cls(file, len(content), hashlib.sha256(content).hexdigest())

    def matches(self, content: bytes) -> bool:
        """Return whether the content is the one described."""
        return len(content) == self.size and hashlib.sha256(content).hexdigest() == self.sha256


@dataclass(frozen=True)
class Manifest:
    """The content of `checkpoint.json`."""

    kind: str
    files: Mapping[str, StoredFile]
    """The files of the checkpoint by logical name."""
    unused: tuple[StoredFile, ...]
    """Files that an interrupted save may have left behind."""

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read and validate the manifest in a folder."""
        path = folder / MANIFEST
        try:
            if not stat.S_ISREG(path.stat().st_mode):
                raise CheckpointError(f"{path}: not a regular file")
            if path.stat().st_size > _MOST_BYTES:
                raise CheckpointError(f"{path}: damaged: more than {_MOST_BYTES:,} bytes")
            return cls._parse(path.read_bytes().decode("utf-8"), path)
        except FileNotFoundError:
            raise CheckpointError(f"{folder}: not a checkpoint: {MANIFEST} missing") from None
        except UnicodeDecodeError as error:
            raise CheckpointError(f"{path}: damaged: not UTF-8 at byte {error.start}") from None
        except DataError as error:
            raise CheckpointError(f"{path}: damaged: {error}") from None
        except OSError as error:
            raise CheckpointError(f"{path}: cannot be read: {error.strerror}") from None

    @classmethod
    def _parse(cls, text: str, path: Path) -> Manifest:
        fields = Fields.of(parse_json(text))
        number = fields.integer("format")
        if number != FORMAT:
            raise CheckpointError(
                f"{path}: checkpoint format {str(number)[:20]}; this version of spanshot reads format {FORMAT}"
            )
        kind = fields.text("kind")
        if kind not in KINDS:
            raise DataError(f"field 'kind' must be one of {', '.join(KINDS)}")
        entries = fields.object("files")
        files = {_checked_name(name): _stored(entries.object(name)) for name in entries.record}
        return cls(kind, files, tuple(_stored(Fields.of(item)) for item in fields.list("unused")))

    def write(self, folder: Path) -> None:
        """Replace the manifest in a folder, in one atomic step."""
        record: dict[str, JsonValue] = {
            "format": FORMAT,
            "kind": self.kind,
            "files": {name: vars(stored) for name, stored in self.files.items()},
            "unused": [vars(stored) for stored in self.unused],
        }
        write_text(folder / MANIFEST, [to_json(record, indent=1), "\n"])


def read_stored(folder: Path, stored: StoredFile) -> bytes:
    """Read a file and verify its size and digest."""
    path = folder / stored.file
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise CheckpointError(f"{path}: damaged: not a regular file")
        if status.st_size != stored.size:
            raise CheckpointError(f"{path}: damaged: {status.st_size} bytes, but {stored.size} in {MANIFEST}")
        content = path.read_bytes()
    except FileNotFoundError:
        raise CheckpointError(f"{path}: missing") from None
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror}") from None
    if not stored.matches(content):
        raise CheckpointError(f"{path}: damaged: its digest differs from the one in {MANIFEST}")
    return content


def remove_stored(folder: Path, stored: StoredFile) -> bool:
    """Remove a file if it has the content described. Return False only if it has and could not be removed."""
    try:
        read_stored(folder, stored)
    except CheckpointError:  # missing, or changed by somebody else
        return True
    try:
        (folder / stored.file).unlink()
    except OSError:  # on Windows: another process reads it
        return False
    return True


def _stored(fields: Fields) -> StoredFile:
    size, digest = fields.integer("size"), fields.text("sha256")
    if not 0 <= size < 2**53 or not _DIGEST.fullmatch(digest):
        raise DataError("a file has no valid size and digest")
    return StoredFile(_checked_name(fields.text("file")), size, digest)


def _checked_name(name: str) -> str:
    if len(name) > 100 or not _NAME.fullmatch(name) or _RESERVED.fullmatch(name):
        raise DataError(f"invalid file name {name[:100]!a}")
    return name
