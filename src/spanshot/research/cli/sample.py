"""``spanshot sample``: sample few-shot episodes from labelled text."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from spanshot.cli.console import visible
from spanshot.cli.new_app import new_app
from spanshot.cli.output import refuse_same_file
from spanshot.errors import ConfigError, did_you_mean
from spanshot.formats.columns import LabelColumn, read_columns
from spanshot.formats.files import read_text
from spanshot.types import Episode, Sentence

FORMATS = ("guess", "columns", "genia")
RULES = ("fewnerd", "minimum")

app = new_app()


@app.command()
def sample(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Labelled text: CoNLL columns or GENIA's JSON lines.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Episode file to write.")],
    rule: Annotated[
        str,
        typer.Option(
            metavar="RULE",
            help="fewnerd: N random labels per episode, K to 2K spans of each, from all files together. "
            "minimum: all labels of a file, at least K spans of each in a minimal support set; each file is a domain.",
        ),
    ] = "fewnerd",
    ways: Annotated[int | None, typer.Option(metavar="N", help="Labels per episode (fewnerd). Default: 5.")] = None,
    shots: Annotated[
        int, typer.Option(metavar="K", help="Minimum number of spans per label in the support set (K).")
    ] = 1,
    query_shots: Annotated[
        int | None,
        typer.Option(metavar="K", help="Minimum number of spans per label in the query (fewnerd). Default: --shots."),
    ] = None,
    query_size: Annotated[
        int | None, typer.Option(metavar="N", help="Number of query sentences (minimum). Default: 20.")
    ] = None,
    count: Annotated[int, typer.Option(metavar="N", help="Number of episodes.")] = 100,
    seed: Annotated[int, typer.Option(metavar="N", help="Random seed; the same seed samples the same episodes.")] = 1,
    kind: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="Format of the files: columns, genia or guess.")
    ] = "guess",
    scheme: Annotated[
        str | None, typer.Option(metavar="SCHEME", help="Tag scheme of columns: io, bio or bioes. Default: guess.")
    ] = None,
    label_column: Annotated[
        str, typer.Option(metavar="PLACE", help="Position of the tag in columns: first or last.")
    ] = "last",
) -> None:
    """Sample few-shot episodes from labelled text, to train or evaluate on."""
    from spanshot.research.corpora.episode_files import write_episodes

    refuse_same_file("--output", output, files)
    rules = Sampling(rule, ways, shots, query_shots, query_size, count, seed)
    drawn = draw([(path.stem, read_labelled(path, kind, scheme, label_column)) for path in files], rules)
    write_episodes(output, drawn.episodes)
    print(
        visible(
            f"{output}: {len(drawn.episodes)} episodes over {len(drawn.labels)} labels; on average "
            f"{drawn.support:.1f} support and {drawn.query:.1f} query sentences"
        )
    )
    if drawn.left_out:
        few = ", ".join(f"{label} ({spans})" for label, spans in drawn.left_out.items())
        print(visible(f"Skipped labels with too few spans: {few}"))


@dataclass(frozen=True)
class Sampling:
    """How to sample episodes. None is the default of the rule."""

    rule: str = "fewnerd"
    ways: int | None = None
    shots: int = 1
    query_shots: int | None = None
    query_size: int | None = None
    count: int = 100
    seed: int = 1

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            hint = did_you_mean(self.rule, RULES)
            raise ConfigError(f"--rule must be one of {', '.join(RULES)}; found {self.rule!r}{hint}")
        if self.count < 1:
            raise ConfigError(f"--count must be at least 1; found {self.count}")
        unsupported = {"--ways": self.ways, "--query-shots": self.query_shots}
        for option, value in ({"--query-size": self.query_size} if self.rule == "fewnerd" else unsupported).items():
            if value is not None:
                raise ConfigError(f"{option} cannot be used with --rule {self.rule}")


@dataclass(frozen=True)
class Drawn:
    """Episodes, and labels that were skipped with the number of their spans."""

    episodes: list[Episode]
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def labels(self) -> set[str]:
        """All labels of the episodes."""
        return {label for episode in self.episodes for label in episode.support.labels}

    @property
    def support(self) -> float:
        """Mean number of support sentences."""
        return statistics.fmean(len(episode.support.sentences) for episode in self.episodes)

    @property
    def query(self) -> float:
        """Mean number of query sentences."""
        return statistics.fmean(len(episode.query) for episode in self.episodes)


def draw(files: Sequence[tuple[str, list[Sentence]]], rules: Sampling) -> Drawn:
    """Sample episodes. The Few-NERD rule uses all files together; for the minimum rule, each file is a domain."""
    from spanshot.research.corpora.sampling import FewNerdSampler, MinimumIncludingSampler

    rng = random.Random(rules.seed)
    if rules.rule == "fewnerd":
        everything = [sentence for _, sentences in files for sentence in sentences]
        sampler = FewNerdSampler(everything, rules.ways or 5, rules.shots, rules.query_shots)
        return Drawn([sampler.sample(rng) for _ in range(rules.count)], sampler.left_out)
    size = rules.query_size or 20
    samplers = [MinimumIncludingSampler(sentences, rules.shots, size, domain) for domain, sentences in files]
    return Drawn([samplers[number % len(samplers)].sample(rng) for number in range(rules.count)])


def read_labelled(path: Path, kind: str, scheme: str | None, label_column: str = "last") -> list[Sentence]:
    """Read the labelled sentences of a column file or of GENIA's JSON lines."""
    from spanshot.research.corpora.genia import read_genia

    if kind not in FORMATS:
        raise ConfigError(f"--format must be one of {', '.join(FORMATS)}; found {kind!r}{did_you_mean(kind, FORMATS)}")
    if kind == "guess":
        kind = "genia" if read_text(path).lstrip().startswith("{") else "columns"
    if kind == "genia":
        return read_genia(path)
    return read_columns(path, scheme=scheme, label_column=_label_column(label_column))


def _label_column(name: str) -> LabelColumn:
    match name:
        case "first" | "last":
            return name
        case _:
            raise ConfigError(f"--label-column must be 'first' or 'last'; found {name!r}")
