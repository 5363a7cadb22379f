"""Episodes of the experiments on Few-NERD and GENIA: the given files, or episodes drawn once with a fixed seed."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from spanshot.errors import DataError, EpisodeError
from spanshot.research.corpora.ace05 import read_ace05
from spanshot.research.corpora.episode_files import read_episodes, write_episodes
from spanshot.research.corpora.fewnerd import read_fewnerd_text
from spanshot.research.corpora.genia import read_genia
from spanshot.research.corpora.sampling import FewNerdSampler
from spanshot.research.experiments.reproduce.workspace import Workspace
from spanshot.types import Episode, Sentence, SupportSet

SEED = 1
NESTED_QUERY = 10
"""Query sentences of an episode with nested entities."""
TRIES = 100


def fewnerd_folder(workspace: Workspace, split: str) -> Path:
    """Return the folder of INTER or INTRA. For INTRA, ``intra_like`` serves if the official files are missing."""
    folder = workspace.data / "fewnerd" / split
    like = workspace.data / "fewnerd" / f"{split}_like"
    return like if not folder.is_dir() and like.is_dir() else folder


def fewnerd_episodes(workspace: Workspace, split: str, part: str, ways: int, shots: int, count: int) -> Path:
    """Return the file of dev or test episodes; without one, draw ``count`` episodes from the text of that part."""
    folder = fewnerd_folder(workspace, split)
    name = f"{part}_{ways}_{shots}.jsonl"
    for path in (folder / "episodes" / name, folder / name):
        if path.is_file():
            return path

    def draw() -> list[Episode]:
        sampler = FewNerdSampler(read_fewnerd_text(folder / f"{part}.txt"), ways, shots)
        rng = random.Random(f"{SEED} {split} {name}")
        return [sampler.sample(rng) for _ in range(count)]

    return _drawn(workspace, f"{folder.name}_{name}", draw)


def nested_episodes(workspace: Workspace, part: str, count: int) -> Path:
    """Return a file of 5-way 5~10-shot episodes: support sentences without nesting, every query sentence with nesting.

    ``dev`` episodes come from ACE05 if the data folder has it, otherwise from GENIA's dev split; ``test`` episodes from
    GENIA's train and test split, which no model here is trained on.
    """
    ace = workspace.data / "ace05"

    def draw() -> list[Episode]:
        if part == "dev" and ace.is_dir():
            sentences = read_ace05(ace)
        else:
            splits = ("dev",) if part == "dev" else ("train", "test")
            sentences = [s for split in splits for s in read_genia(workspace.data / "genia" / f"{split}.jsonl")]
        nested = [sentence for sentence in sentences if is_nested(sentence)]
        flat = [sentence for sentence in sentences if not is_nested(sentence)]
        return _nested_tasks(flat, nested, count, random.Random(f"{SEED} nested {part}"))

    name = "ace05" if part == "dev" and ace.is_dir() else "genia"
    return _drawn(workspace, f"{name}_nested_{part}_5_5.jsonl", draw)


def _nested_tasks(
    flat: Sequence[Sentence], nested: Sequence[Sentence], count: int, rng: random.Random
) -> list[Episode]:
    sampler = FewNerdSampler(flat, 5, 5, 1)
    episodes = []
    for _ in range(count * TRIES):
        episode = sampler.sample(rng)
        labels = set(episode.support.labels)
        fitting = [sentence for sentence in nested if {span.label for span in sentence.spans} <= labels]
        if len(fitting) >= NESTED_QUERY:
            episodes.append(replace(episode, query=tuple(rng.sample(fitting, NESTED_QUERY))))
        if len(episodes) == count:
            return episodes
    raise EpisodeError(f"too few sentences with nested entities of 5 labels; found {len(episodes)} episodes of {count}")


def is_nested(sentence: Sentence) -> bool:
    """Whether two spans of the sentence share a word.

    >>> from spanshot.types import Span
    >>> is_nested(Sentence(("a", "b"), (Span(0, 2, "x"), Span(1, 2, "y"))))
    True
    """
    spans = sorted(sentence.spans)
    return any(a.overlaps(b) for number, a in enumerate(spans) for b in spans[number + 1 :])


def noisy_episodes(workspace: Workspace, source: Path, ratio: float, first: int) -> Path:
    """Return a file of the first episodes of ``source`` with a share of their support entities mislabelled."""

    def draw() -> list[Episode]:
        rng = random.Random(f"{SEED} noise")
        return [mislabelled(episode, ratio, rng) for episode in read_episodes(source)[:first]]

    return _drawn(workspace, f"noise_{ratio:g}_{source.stem}_first_{first}.jsonl", draw)


def mislabelled(episode: Episode, ratio: float, rng: random.Random) -> Episode:
    """Give a share of the support entities another label of the episode. Every label keeps at least one example."""
    places = [(at, span) for at, sentence in enumerate(episode.support.sentences) for span in sentence.spans]
    labels = episode.support.labels
    for _ in range(TRIES):
        wrong = set(rng.sample(range(len(places)), round(ratio * len(places))))
        changed = [
            (at, replace(span, label=rng.choice([x for x in labels if x != span.label])) if number in wrong else span)
            for number, (at, span) in enumerate(places)
        ]
        if len(Counter(span.label for _, span in changed)) == len(labels):
            break
    else:
        raise EpisodeError(f"no way found to mislabel {ratio:.0%} of the entities and keep an example of each label")
    sentences = tuple(
        replace(sentence, spans=tuple(sorted(span for at, span in changed if at == number)))
        for number, sentence in enumerate(episode.support.sentences)
    )
    return replace(episode, support=SupportSet(labels, sentences))


def _drawn(workspace: Workspace, name: str, draw: Callable[[], list[Episode]]) -> Path:
    """Return the file of that name in the workspace; draw and write its episodes if there is none."""
    path = workspace.episodes / name
    if not path.is_file():
        workspace.episodes.mkdir(parents=True, exist_ok=True)
        try:
            write_episodes(path, draw())
        except FileNotFoundError as error:
            raise DataError(f"{error.filename}: no such file; --data must name the folder of the corpora") from None
    return path
