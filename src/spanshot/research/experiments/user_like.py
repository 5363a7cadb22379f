"""Table: F1 on the domains of users, with label names, with examples, and with both.

Each domain has files of episodes with one and with five examples per label. Counts are pooled over the episodes of a
file (micro F1); the mean is over domains.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean

from spanshot.errors import DataError
from spanshot.research.experiments.ledger import Ledger, Row, markdown
from spanshot.research.experiments.raw_text import Outcome, Tag, TextEpisode, compare, read_text_episodes
from spanshot.research.experiments.systems import BOTH, EXAMPLES, NAMES, System
from spanshot.types import Entity

KEYS = ("system", "mode", "shots", "domain", "episode")
SHOTS = (1, 5)
COUNTS = tuple(Outcome.__dataclass_fields__)
Watch = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class EpisodeFile:
    """A file ``DOMAIN_SHOTS.jsonl``."""

    domain: str
    shots: int
    path: Path


def episode_files(folder: Path, shots: Sequence[int] = SHOTS) -> list[EpisodeFile]:
    """Return the episode files of a folder."""
    paths = [(k, path) for k in shots for path in sorted(folder.glob(f"*_{k}.jsonl"))]
    files = [EpisodeFile(path.stem.rpartition("_")[0], k, path) for k, path in paths]
    if not files:
        raise DataError(f"{folder}: no files named DOMAIN_{shots[0]}.jsonl")
    return files


def learn(system: System, mode: str, episode: TextEpisode) -> Tag:
    """Learn the labels of an episode from names, examples or both."""
    if mode == NAMES:
        return system.learn(episode.labels, ())
    if mode == BOTH:
        return system.learn(episode.labels, episode.support)
    plain = {label: f"label {number}" for number, label in enumerate(episode.labels, start=1)}
    real = {name: label for label, name in plain.items()}
    tag = system.learn(list(real), [example.renamed(plain) for example in episode.support])

    def tag_with_real_labels(texts: Sequence[str]) -> list[list[Entity]]:
        return [[replace(entity, label=real[entity.label]) for entity in entities] for entities in tag(texts)]

    return tag_with_real_labels


def measure(
    ledger: Ledger, files: Iterable[EpisodeFile], system: System, modes: Sequence[str], first: int, watch: Watch
) -> None:
    """Measure a system on the first episodes of each file (0: all); skip episodes in the ledger."""
    for number, (file, episode) in _by_number(files, first):
        for mode in modes:
            row: Row = {
                "system": system.name,
                "mode": mode,
                "shots": file.shots,
                "domain": file.domain,
                "episode": number,
                "identity": system.identity,
            }
            if ledger.has(row, "identity"):
                continue
            began = time.process_time()
            tag = learn(system, mode, episode)
            learned = time.process_time()
            outcomes = compare(episode, tag([example.text for example in episode.query]))
            total = sum(outcomes, Outcome())
            ledger.add(
                {
                    **row,
                    **asdict(total),
                    "seconds_to_learn": round(learned - began, 3),
                    "seconds_to_tag": round(time.process_time() - learned, 3),
                }
            )
            watch(f"{system.name}, {mode}, {file.domain}, {file.shots}-shot, episode {number}: F1 {total.f1:.1f}")


def _by_number(files: Iterable[EpisodeFile], first: int) -> Iterator[tuple[int, tuple[EpisodeFile, TextEpisode]]]:
    """Yield the first episode of each file, then the second, and so on: partial results cover all domains."""
    episodes = [(file, read_text_episodes(file.path)) for file in files]
    longest = max(len(file_episodes) for _, file_episodes in episodes)
    for number in range(min(longest, first) if first else longest):
        for file, file_episodes in episodes:
            if number < len(file_episodes):
                yield number, (file, file_episodes[number])


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of a system in one mode, with a number of examples per label."""

    system: str
    mode: str
    shots: int
    domains: dict[str, Outcome]
    episodes: int

    @property
    def f1(self) -> float:
        """Mean F1 over domains, in percent."""
        return fmean(outcome.f1 for outcome in self.domains.values())

    @property
    def total(self) -> Outcome:
        """Counts of all domains."""
        return sum(self.domains.values(), Outcome())


def summaries(rows: Iterable[Row]) -> list[Summary]:
    """Pool the rows of a ledger by system, mode and number of examples."""
    pooled: dict[tuple[str, str, int], Summary] = {}
    for row in rows:
        system, mode, shots, domain = str(row["system"]), str(row["mode"]), int(str(row["shots"])), str(row["domain"])
        summary = pooled.setdefault((system, mode, shots), Summary(system, mode, shots, {}, 0))
        counts = Outcome(**{name: int(str(row[name])) for name in COUNTS})
        summary.domains[domain] = summary.domains.get(domain, Outcome()) + counts
        pooled[system, mode, shots] = Summary(system, mode, shots, summary.domains, summary.episodes + 1)
    order = {BOTH: 0, EXAMPLES: 1, NAMES: 2}
    return sorted(pooled.values(), key=lambda s: (s.system, order.get(s.mode, 3), s.shots))


def tables(rows: Iterable[Row]) -> str:
    """Return two Markdown tables: all domains together, and one row per domain."""
    pooled = summaries(rows)
    overall = []
    for summary in pooled:
        total = summary.total
        precision = 100 * total.tp / max(1, total.tp + total.fp)
        recall = 100 * total.tp / max(1, total.tp + total.fn)
        overall.append(
            [
                summary.system,
                summary.mode,
                str(summary.shots),
                f"{summary.f1:.1f}",
                f"{precision:.1f} / {recall:.1f}",
                f"{total.false_alarms} of {total.empty} ({100 * total.false_alarms / max(1, total.empty):.0f} %)",
                f"{100 * total.verbatim_found / max(1, total.verbatim):.1f} % of {total.verbatim}",
                str(summary.episodes),
            ]
        )
    header = ["system", "learned from", "examples per label", "mean F1", "P / R, pooled"]
    header += ["false alarms", "recall of repeated entities", "episodes"]
    domains = sorted({domain for summary in pooled for domain in summary.domains})
    columns = [f"{summary.system}, {summary.mode}, {summary.shots}" for summary in pooled]
    domain_rows = [[domain.replace("_", " "), *(_f1_in(summary, domain) for summary in pooled)] for domain in domains]
    by_domain = markdown(["F1 by domain", *columns], domain_rows)
    return f"{markdown(header, overall)}\n\n{by_domain}\n"


def _f1_in(summary: Summary, domain: str) -> str:
    return f"{summary.domains[domain].f1:.1f}" if domain in summary.domains else ""


def short_table(rows: Iterable[Row], system: str) -> str:
    """Return the mean F1 of one system as a small Markdown table."""
    f1: dict[str, dict[int, str]] = {}
    for summary in summaries(rows):
        if summary.system == system:
            f1.setdefault(summary.mode, {})[summary.shots] = f"{summary.f1:.1f}"
    shots = sorted({k for cells in f1.values() for k in cells})
    header = ["mean F1, learned from", *(f"{k} example{'s' if k > 1 else ''} per label" for k in shots)]
    return markdown(header, [[mode, *(cells.get(k, "") for k in shots)] for mode, cells in f1.items()])
