"""Input files of a corpus: find them by pattern, open them, and scan them once for their rows and digest.

A file is named by an absolute path or by a URL of fsspec, such as ``s3://bucket/a.parquet``.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import TYPE_CHECKING, BinaryIO, cast

from typing_extensions import override

from spanshot.errors import DataError
from spanshot.formats.table_files import DELIMITERS
from spanshot.optional import need

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_COMPRESSED = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
_KINDS = {".parquet": "parquet", ".jsonl": "jsonl", ".ndjson": "jsonl", **dict.fromkeys(DELIMITERS, "csv")}
_STAMPS = ("ETag", "etag", "md5Hash", "mtime", "LastModified", "last_modified", "created")
"""Fields by which file systems tell versions of a file apart."""
_BUFFER = 1 << 20


@dataclass(frozen=True)
class FileKind:
    """The format of a file, by its name."""

    format: str
    """parquet, csv or jsonl."""
    delimiter: str = ""
    compression: str = ""

    @classmethod
    def of(cls, name: str) -> FileKind:
        """Return the format of a file.

        >>> FileKind.of("s3://bucket/texts.jsonl.gz")
        FileKind(format='jsonl', delimiter='', compression='gzip')
        """
        path = PurePosixPath(name.lower())
        compression = _COMPRESSED.get(path.suffix, "")
        suffix = path.with_suffix("").suffix if compression else path.suffix
        if suffix not in _KINDS:
            known = "Parquet (.parquet), JSON lines (.jsonl, .ndjson) or CSV (.csv, .tsv)"
            raise DataError.at(name, None, f"expected a file of {known}, optionally compressed (.gz, .zst)")
        if suffix == ".parquet" and compression:
            raise DataError.at(name, None, "compressed Parquet files cannot be read in parts; decompress it")
        return cls(_KINDS[suffix], DELIMITERS.get(suffix, ""), compression)


def is_url(name: str) -> bool:
    """Return whether a name is a URL of fsspec."""
    return "://" in name


def find_files(patterns: Iterable[str | Path]) -> list[str]:
    """Return the files that the patterns match, each once: sorted within a pattern, patterns in their order."""
    names: dict[str, None] = {}
    for pattern in map(str, patterns):
        with reading(pattern):
            matches = _match_url(pattern) if is_url(pattern) else _match_path(pattern)
        if not matches:
            raise DataError(f"no file matches {pattern!r}; check the path")
        names.update(dict.fromkeys(sorted(matches)))
    return list(names)


def _match_path(pattern: str) -> list[str]:
    path = Path(pattern)
    if path.is_dir():
        raise DataError.at(path, None, "is a folder; use a pattern such as 'FOLDER/*.parquet'")
    path = Path(os.path.normpath(path.absolute()))  # as typed, without following links
    if path.is_file():
        return [str(path)]
    root = Path(path.anchor)
    return [str(match) for match in root.glob(str(path.relative_to(root))) if match.is_file()]


def _match_url(pattern: str) -> list[str]:
    system, path = _filesystem(pattern)
    if not any(sign in path for sign in "*?["):
        return [pattern] if system.exists(path) else []
    return [system.unstrip_protocol(name) for name in system.glob(path) if system.isfile(name)]


def _filesystem(url: str) -> tuple[ModuleType, str]:  # a file system has no type of its own
    try:
        system, path = need("fsspec.core", "tables").url_to_fs(url)
    except (ValueError, ImportError) as error:  # an unknown protocol, or one that needs another package
        raise DataError.at(url, None, f"cannot be opened: {_reason(error)}") from None
    return system, path


@contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn errors of files and decompression into a `DataError` that names the file."""
    try:
        yield
    except (OSError, EOFError, zlib.error) as error:  # Arrow's errors of decompression are OSErrors
        raise DataError.at(name, None, f"cannot be read: {_reason(error)}") from error


def _reason(error: Exception) -> str:
    text = (isinstance(error, OSError) and error.strerror) or str(error).strip() or type(error).__name__
    return str(text).splitlines()[0]


def open_file(name: str) -> BinaryIO:
    """Open a file as it is."""
    if not is_url(name):
        return Path(name).open("rb")
    system, path = _filesystem(name)
    return cast("BinaryIO", system.open(path, "rb"))


def decompressed(raw: BinaryIO, kind: FileKind) -> BinaryIO:
    """Return the content of an open file, decompressed."""
    if kind.compression == "gzip":
        return cast("BinaryIO", io.BufferedReader(gzip.GzipFile(fileobj=raw), _BUFFER))
    if kind.compression == "zstd":
        pa = need("pyarrow", "tables")
        return cast("BinaryIO", io.BufferedReader(pa.CompressedInputStream(pa.PythonFile(raw, "r"), "zstd"), _BUFFER))
    return raw


def stamp_of(name: str) -> str:
    """Return size and version of a file without reading it: its time or tag, if the file system has one."""
    with reading(name):
        if not is_url(name):
            status = Path(name).stat()
            return f"{status.st_size} {status.st_mtime_ns}"
        system, path = _filesystem(name)
        info = system.info(path)
        version = next((str(info[field]) for field in _STAMPS if info.get(field)), "")
        return f"{info.get('size')} {version}" if version else ""


class HashedFile(io.RawIOBase):
    """Computes the digest of a file while it is read."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self.size = 0

    @override
    def readable(self) -> bool:
        return True

    @override
    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        block = self._file.read(len(view))
        view[: len(block)] = block
        self._digest.update(block)
        self.size += len(block)
        return len(block)

    def finish(self) -> str:
        """Read the rest of the file and return the digest of all of it."""
        while self.read(_BUFFER):
            pass
        return self._digest.hexdigest()
