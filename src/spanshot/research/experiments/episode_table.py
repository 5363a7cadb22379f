"""Table: micro F1 on files of episodes, such as Few-NERD's, read as raw text."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from spanshot.research.experiments.growth import f1_of
from spanshot.research.experiments.ledger import Ledger, Row, markdown
from spanshot.research.experiments.raw_text import Outcome, compare, read_text_episodes
from spanshot.research.experiments.systems import System

KEYS = ("file", "system", "start")
BLOCK = 25
"""Episodes that make one row."""


def measure(ledger: Ledger, path: Path, system: System, first: int, watch: Callable[[str], None]) -> None:
    """Measure a system on the first episodes of a file (0: all); skip rows in the ledger."""
    episodes = read_text_episodes(path)
    episodes = episodes[:first] if first else episodes
    for start in range(0, len(episodes), BLOCK):
        block = episodes[start : start + BLOCK]
        row: Row = {"file": path.stem, "system": system.name, "start": start}
        row |= {"identity": system.identity, "episodes": len(block)}
        if ledger.has(row, "identity", "episodes"):
            continue
        totals = []
        for episode in block:
            tag = system.learn(episode.labels, episode.support)
            totals.append(sum(compare(episode, tag([example.text for example in episode.query])), Outcome()))
        ledger.add(
            {
                **row,
                "tp": [total.tp for total in totals],
                "fp": [total.fp for total in totals],
                "fn": [total.fn for total in totals],
            }
        )
        watch(f"{path.stem}, {system.name}: {start + len(block)} of {len(episodes)} episodes")


def tables(rows: Iterable[Row], resamples: int = 2000) -> str:
    """Return micro F1 with a 95 % bootstrap interval over episodes."""
    pooled: dict[tuple[str, str], list[np.ndarray]] = {}
    for row in rows:
        counts = np.array([row["tp"], row["fp"], row["fn"]]).T
        pooled.setdefault((str(row["file"]), str(row["system"])), []).append(counts)
    lines = []
    for (file, system), parts in sorted(pooled.items()):
        counts = np.concatenate(parts)  # [episodes, 3]
        drawn = np.random.default_rng(0).integers(len(counts), size=(resamples, len(counts)))
        low, high = np.quantile(f1_of(counts[drawn].sum(1)), (0.025, 0.975))
        tp, fp, fn = counts.sum(0).tolist()
        f1 = float(f1_of(counts.sum(0)[None])[0])
        shares = f"{100 * tp / max(1, tp + fp):.1f} / {100 * tp / max(1, tp + fn):.1f}"
        lines.append([file, system, f"{f1:.2f} ({low:.2f} to {high:.2f})", shares, str(len(counts))])
    return markdown(["episodes", "system", "micro F1", "P / R", "number"], lines)
