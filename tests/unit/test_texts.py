"""Texts to tag, as they are read from files and streams."""

from __future__ import annotations

import os
from pathlib import Path
from typing import ClassVar

import pytest

from spanshot.cli import texts
from spanshot.cli.texts import Text, read_texts


def read(path: Path, *, whole: bool = False) -> list[str]:
    items = [item for chunk in read_texts([], [path], whole, 8) for item in chunk]
    assert all(isinstance(item, Text) for item in items)
    return [item.text for item in items]


@pytest.mark.parametrize("whole", [False, True])
def test_a_byte_order_mark_is_not_part_of_a_text(tmp_path, whole):
    path = tmp_path / "in.txt"
    path.write_bytes("\ufeffOslo is cold".encode())
    assert read(path, whole=whole) == ["Oslo is cold"]


class Block(bytes):
    """Bytes that count how many others are copied to be put before them."""

    copied: ClassVar[int] = 0

    def __radd__(self, before: bytes) -> bytes:
        Block.copied += len(before)
        return bytes(before) + bytes(self)


def test_a_line_in_many_blocks_is_joined_once_so_that_it_takes_linear_time(monkeypatch):
    blocks = [Block(b"x" * 1000) for _ in range(200)] + [Block(b"x\nshort\n\nlast"), Block(b"")]
    whole = b"".join(blocks)
    monkeypatch.setattr(os, "read", lambda descriptor, size: blocks.pop(0))
    Block.copied = 0
    lines = list(texts._stream_lines(0))
    assert lines == whole.splitlines(keepends=True)
    assert Block.copied <= len(whole)
