"""Corpora that tests of workers need: one that fails, one that tells about its process. Workers import this file."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from dataclasses import dataclass

from spanshot.errors import DataError


@dataclass(frozen=True)
class FailingSource:
    """Fails after some draws, in a way that users cannot fix."""

    draws: int = 3

    def training(self) -> Callable[[random.Random], object]:
        counted = []

        def draw(rng: random.Random) -> int:
            counted.append(rng)
            return 1 // (self.draws + 1 - len(counted))

        return draw


@dataclass(frozen=True)
class MissingSource:
    """Cannot be read."""

    def training(self) -> Callable[[random.Random], object]:
        raise DataError.at("corpus.txt", 3, "found 3 columns; expected 2")


@dataclass(frozen=True)
class ProcessSource:
    """Draws facts about the process that draws: its number, and whether torch is loaded."""

    def training(self) -> Callable[[random.Random], object]:
        return lambda rng: (os.getpid(), "torch" in sys.modules)
