"""Read text files as UTF-8; errors name the file and the line."""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from spanshot.errors import DataError

MAX_WORDS = 1_000
"""Longest sentence that is read: far above any real one, so a longer one is a lost sentence boundary."""

_CHUNK = 1 << 20
_WIDE = {
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


def read_text(path: str | Path, *, exact: bool = False) -> str:
    r"""Read a whole UTF-8 file. ``\r\n`` and ``\r`` become ``\n`` and a byte order mark is dropped, unless ``exact``.

    The file is read once and in order, so pipes can be read too.
    """
    path = Path(path)
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise DataError.at(path, None, "no such file; check the path") from None
    except OSError as error:
        if is_folder(path):
            raise DataError.at(path, None, "is a directory; name a file in it") from None
        raise DataError.at(path, None, f"cannot be read: {error.strerror}") from error
    except ValueError:  # a null byte, or half of a surrogate pair
        raise DataError(f"{str(path)!r} is not a file name; check the path") from None
    with file:
        try:
            return _decoded(file, path, exact=exact)
        except OSError as error:
            raise DataError.at(path, None, f"cannot be read: {error.strerror}") from error


def is_folder(path: Path) -> bool:
    """Return whether the path is a folder; False for a path that cannot be looked up."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


_NULL = "null byte"


def _decoded(file: IO[bytes], path: Path, *, exact: bool) -> str:
    decoder = codecs.getincrementaldecoder("utf-8" if exact else "utf-8-sig")()
    line_ends = io.IncrementalNewlineDecoder(None, translate=not exact)
    parts: list[str] = []
    raw = b"x"
    while raw:
        raw = file.read(_CHUNK)
        if not parts:
            for mark, encoding in _WIDE.items():
                if raw.startswith(mark):
                    raise DataError.at(path, None, f"looks like {encoding}; save the file as UTF-8")
        try:
            if (null := raw.find(b"\0")) >= 0:
                raise UnicodeDecodeError("utf-8", raw, null, null + 1, _NULL)
            text = decoder.decode(raw, final=not raw)
        except UnicodeDecodeError as error:
            before = error.object[: error.start].decode("utf-8", "replace")
            line = "".join([*parts, line_ends.decode(before)]).count("\n") + 1
            problem = f"byte 0x{error.object[error.start]:02x} is not UTF-8; save the file as UTF-8"
            if error.reason == _NULL:
                problem = "has a null byte, which text does not have; remove it, or save the file as UTF-8"
            raise DataError.at(path, line, problem) from None
        parts.append(line_ends.decode(text, final=not raw))
    return "".join(parts)


def lines_of(text: str) -> Iterator[tuple[int, str]]:
    r"""Yield the lines of a text with their numbers, without a list of them all. Only ``\n`` ends a line.

    ``str.splitlines`` would also break at U+2028 and similar characters, which do occur in words.

    >>> list(lines_of("a\n\nb"))
    [(1, 'a'), (2, ''), (3, 'b')]
    """
    number, start = 1, 0
    while (end := text.find("\n", start)) >= 0:
        yield number, text[start:end]
        number, start = number + 1, end + 1
    yield number, text[start:]


def too_long(words: int) -> str:
    """Return the message for a sentence of more than ``MAX_WORDS`` words."""
    return f"the sentence has {words:,} words; is a blank line between sentences missing? at most {MAX_WORDS:,} words"
