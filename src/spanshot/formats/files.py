"""Read text files, with errors that name the file and the line."""

from __future__ import annotations

from pathlib import Path

from spanshot.errors import DataError

MAX_WORDS = 1_000
"""Longest sentence that is read: far above any real one, so a longer one is a lost sentence boundary."""


def read_text(path: str | Path, *, exact: bool = False) -> str:
    """A whole UTF-8 file. Line ends are read as ``\\n`` and a byte order mark is dropped, unless ``exact``."""
    path = Path(path)
    if path.is_dir():
        raise DataError.at(path, None, "is a directory; name a file in it")
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise DataError.at(path, None, "no such file; check the path") from None
    except OSError as error:
        raise DataError.at(path, None, f"cannot be read: {error.strerror}") from error
    try:
        text = raw.decode("utf-8" if exact else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError.at(path, line, f"byte 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8") from error
    return text if exact else text.replace("\r\n", "\n")


def too_long(found: int) -> str:
    """What to say of a sentence of more than ``MAX_WORDS`` words."""
    return f"the sentence has {found:,} words; is a blank line between sentences missing? at most {MAX_WORDS:,} words"
