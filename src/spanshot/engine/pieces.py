"""Words to pieces. The only place that splits words into pieces and long sentences into windows."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tokenizers import Tokenizer

from spanshot.errors import ConfigError
from spanshot.words import windows

MAX_PIECES_PER_WORD = 64
MASKS = ("[MASK]", "<mask>")  # names of the piece that hides another; encoders without one use the unknown piece
HIDDEN = "[MASK]"
"""A word that training hides from the encoder, which reads its mask piece. No word of a text looks like this."""
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")  # JSON can contain them; tokenizers reject them
_MOST_CACHED = 50_000
_SIMPLE_PATTERN = re.compile(r"[^()|*+?{}]*(?:[*+]|\{[0-9]{1,4},?[0-9]{0,4}\})?")
"""Regular expressions that a tokenizer may have: characters and classes, of which the last may be repeated."""


@dataclass(frozen=True, slots=True)
class Row:
    """The pieces that the transformer reads at once: those of a sentence, or of a window of a long one."""

    sentence: int
    ids: tuple[int, ...]
    words: tuple[int, ...]
    """Positions in the sentence of the words whose vectors are taken from this row."""
    first: tuple[int, ...]
    """The position in ``ids`` of the first piece of each of these words."""
    last: tuple[int, ...]
    second: int
    """Where the second sentence of a pair starts in ``ids``; their number if there is none."""


class Pieces:
    """Splits words into pieces one by one, so that every word has pieces of its own.

    A word without any piece (control characters, for instance) becomes the unknown piece, or the padding piece if there
    is none. A sentence of more than ``longest`` pieces is read in windows that overlap by half. The vector of a word
    comes from the window in which it stands farthest from an edge, so no word is cut off.
    """

    def __init__(self, tokenizer: Tokenizer, longest: int, unknown: str | None, padding_id: int) -> None:
        tokenizer.no_truncation()
        tokenizer.no_padding()
        self.tokenizer = tokenizer
        self.longest = longest
        self.unknown = unknown
        self._unknown_id: int = (tokenizer.token_to_id(unknown) if unknown else None) or padding_id
        self.padding_id = padding_id
        masks = (tokenizer.token_to_id(name) for name in MASKS)
        self.mask_id: int = next((number for number in masks if number is not None), self._unknown_id)
        bare = tokenizer.encode("a", add_special_tokens=False).ids
        framed = tokenizer.encode("a", add_special_tokens=True).ids
        at = next(i for i in range(len(framed)) if framed[i : i + len(bare)] == bare)
        self._before, self._after = tuple(framed[:at]), tuple(framed[at + len(bare) :])
        pair = tokenizer.encode("a", "a", add_special_tokens=True).ids
        self._between = tuple(pair[at + len(bare) : len(pair) - len(self._after) - len(bare)])
        self._cache: dict[str, tuple[int, ...]] = {}

    def __getstate__(self) -> dict[str, object]:
        """Leave out the cache: it holds words of texts."""
        return {**self.__dict__, "_cache": {}}

    def of_word(self, word: str) -> tuple[int, ...]:
        """Split a word that is not in the cache. This runs in the calling thread, which is safe after a fork."""
        valid = _LONE_SURROGATES.sub("\ufffd", word)
        ids = tuple(self.tokenizer.encode([valid], is_pretokenized=True, add_special_tokens=False).ids)
        ids = (self.mask_id,) if word == HIDDEN else ids or (self._unknown_id,)
        if len(self._cache) >= _MOST_CACHED:
            self._cache = {}
        self._cache[word] = ids
        return ids

    def rows(self, sentences: Sequence[Sequence[str]], breaks: Sequence[int] = ()) -> list[Row]:
        """Return the rows of all sentences, in order: one per sentence, unless it is too long.

        ``breaks`` gives for each sentence, if it is a pair, the number of words of the first: the separator of the
        tokenizer follows them. Of a word of very many pieces, the first ones and the last one are kept.
        """
        room = self.longest - len(self._before) - len(self._after) - (len(self._between) if breaks else 0)
        most = min(MAX_PIECES_PER_WORD, room)
        rows: list[Row] = []
        for number, words in enumerate(sentences):
            pieces = [self._cache.get(word) or self.of_word(word) for word in words]
            if any(len(word_pieces) > most for word_pieces in pieces):
                pieces = [ids if len(ids) <= most else (*ids[: most - 1], ids[-1]) for ids in pieces]
            bounds = [(0, len(pieces))]
            if sum(map(len, pieces)) > room:
                bounds = windows(list(map(len, pieces)), room, room // 2)
            cuts = [0, *((end + start) // 2 for (_, end), (start, _) in pairwise(bounds)), len(pieces)]
            between = breaks[number] if breaks else None
            for (start, end), (keep_from, keep_to) in zip(bounds, pairwise(cuts), strict=True):
                ids = list(self._before)
                first, last = [], []  # pieces of each word that is kept
                second = len(ids) if between is not None and between < start else None
                for word in range(start, end):
                    if word == between:
                        ids += self._between
                        second = len(ids)
                    word_pieces = pieces[word]
                    if keep_from <= word < keep_to:
                        first.append(len(ids))
                        last.append(len(ids) + len(word_pieces) - 1)
                    ids += word_pieces
                ids += self._after
                second = len(ids) if second is None else second
                kept = tuple(range(keep_from, keep_to))
                rows.append(Row(number, tuple(ids), kept, tuple(first), tuple(last), second))
        return rows


def read_tokenizer(content: bytes, path: Path) -> Tokenizer:
    """Build a tokenizer from a `tokenizer.json` for words that are given one by one."""
    try:
        record = json.loads(content.decode("utf-8"))
        _add_prefix_space(record.get("pre_tokenizer"))
        _check_patterns([value for name, value in record.items() if name != "model"])
        return Tokenizer.from_str(json.dumps(record, ensure_ascii=False))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 at byte {error.start}") from None
    except RecursionError:
        raise ConfigError(f"{path}: JSON is nested too deeply") from None
    except BaseException as problem:
        raise _as_error(problem, path) from None


def build_pieces(tokenizer: Tokenizer, *, longest: int, unknown: str | None, padding_id: int, path: Path) -> Pieces:
    """Return pieces of a tokenizer that may be damaged."""
    try:
        return Pieces(tokenizer, longest=longest, unknown=unknown, padding_id=padding_id)
    except BaseException as problem:
        raise _as_error(problem, path) from None


def _add_prefix_space(pre_tokenizer: object) -> None:
    """Let a byte-level tokenizer see every word as one after a space."""
    if isinstance(pre_tokenizer, dict):
        if pre_tokenizer.get("type") == "ByteLevel":
            pre_tokenizer["add_prefix_space"] = True
        parts = pre_tokenizer.get("pretokenizers")
        for part in parts if isinstance(parts, list) else ():
            _add_prefix_space(part)


def _check_patterns(value: object) -> None:
    """Refuse regular expressions with groups or several repetitions: on some words they take exponential time."""
    if isinstance(value, dict):
        pattern = value.get("Regex")
        if isinstance(pattern, str) and not _SIMPLE_PATTERN.fullmatch(pattern):
            raise ConfigError(f"the pattern {pattern[:40]!a} is not supported")
        _check_patterns(list(value.values()))
    elif isinstance(value, list):
        for item in value:
            _check_patterns(item)


def _as_error(problem: BaseException, path: Path) -> BaseException:
    """Return an error that names the file, unless the user wants to stop. The tokenizers library can panic."""
    if not isinstance(problem, Exception) and type(problem).__name__ != "PanicException":
        return problem
    reason = (str(problem).strip() or type(problem).__name__).splitlines()[0][:200]
    return ConfigError(f"{path}: not a tokenizer: {reason}")
