"""What the commands do, as plain functions of plain values; parsing is in ``cli``, rich output in ``display``."""

from __future__ import annotations

import importlib.util
import json
import random
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args, get_type_hints

from spanshot.errors import ConfigError, did_you_mean
from spanshot.evaluation.runs import ComparisonReport, RunReport, spreads
from spanshot.files import write_text
from spanshot.formats.columns import read_columns
from spanshot.formats.files import read_text
from spanshot.json_text import JsonValue, to_json
from spanshot.research.corpora.episode_files import write_episodes
from spanshot.research.corpora.genia import read_genia
from spanshot.research.corpora.sampling import FewNerdSampler, MinimumIncludingSampler
from spanshot.settings import choose, field_help
from spanshot.types import Episode, Sentence

if TYPE_CHECKING:
    from spanshot.research.cli.comparison import ComparisonDisplay

FORMATS = ("guess", "columns", "genia")
RULES = ("fewnerd", "minimum")


def from_home(assignments: Sequence[str]) -> list[str]:
    """``data.folder=~/snips`` with the home folder in its place: shells do that only where a word begins."""
    found = []
    for assignment in assignments:
        key, equals, value = assignment.partition("=")
        found.append(f"{key}{equals}{Path(value).expanduser()}" if value.startswith("~/") else assignment)
    return found


# Train


def default_run(config: Path, seed: int) -> Path:
    """Where a run goes if nothing is said: ``configs/snips/esd.toml`` to ``runs/snips-esd-seed1``."""
    from spanshot.research.training.settings import config_name

    return Path("runs") / f"{config_name(config)}-seed{seed}"


def train(config: Path, assignments: Sequence[str], run: Path | None, tensorboard: bool) -> tuple[Path, Iterator[Any]]:
    """The folder of the run and its events, the first of which is yet to come; all input is read by then."""
    from spanshot.allocator import keep_memory
    from spanshot.research.training.events import Finished, TensorBoard
    from spanshot.research.training.run import run_training
    from spanshot.research.training.settings import RunSettings

    keep_memory()
    if tensorboard and importlib.util.find_spec("tensorboard") is None:
        raise ConfigError("TensorBoard is not installed: run `pip install 'spanshot[tensorboard]'`")
    settings = RunSettings.read(config, from_home(assignments))
    folder = run or default_run(config, settings.seed)
    events = run_training(settings, folder)

    def recorded() -> Iterator[Any]:
        board = TensorBoard(folder) if tensorboard else None
        try:
            for event in events:
                if board and not isinstance(event, Finished):
                    board.record(event)
                yield event
        finally:
            if board:
                board.close()

    return folder, recorded()


def is_under_way(run: Path) -> bool:
    """Whether the folder holds a run that was stopped before its end."""
    from spanshot.research.training.state import NAME

    return (run / NAME).is_file()


def unbiased_f1(run: Path, step: int) -> float | None:
    """Dev F1 without the O bias after ``step``, as the run has noted it."""
    from spanshot.research.training.events import METRICS

    found = None
    for line in read_text(run / METRICS).splitlines():
        record = json.loads(line)
        if record["step"] == step and "dev_f1_unbiased" in record:
            found = record["dev_f1_unbiased"]
    return found


# Evaluate


def evaluate(
    runs: Sequence[Path],
    split: str,
    assignments: Sequence[str],
    first: int,
    progress: Callable[[Path, int, int], None],
    on: Path | None = None,
    *,
    finetune: bool = False,
) -> list[RunReport]:
    """Measure the runs one by one. Each is noted in its folder, unless only a part or a variant was asked for."""
    from spanshot.allocator import keep_memory
    from spanshot.research.corpora.source import known_split
    from spanshot.research.experiments.measure import evaluation_file, measure

    keep_memory()
    known_split(split)
    whole = not (first or on or finetune) and not any(assignment.startswith("method.") for assignment in assignments)
    found = []
    for run in runs:

        def watch(done: int, of: int, run: Path = run) -> None:
            progress(run, done, of)

        own = measure(run, split, from_home(assignments), first, watch, on, finetune=finetune)
        if whole:
            write_text(evaluation_file(run, split), [to_json(own.to_dict(counts_of_episodes=True), indent=2), "\n"])
        found.append(own)
    return found


def evaluation_document(reports: Sequence[RunReport]) -> dict[str, JsonValue]:
    """Return one JSON document on all runs."""
    return {"runs": [report.to_dict() for report in reports], "over_runs": spreads(tuple(reports))}


# Compare


def seeds_of(text: str) -> list[int]:
    """The seeds of ``1,2,3``; none of an empty text."""
    try:
        seeds = [int(part) for part in text.split(",")] if text else []
    except ValueError:
        raise ConfigError(f"--seeds must look like 1,2,3; found {text!r}") from None
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"--seeds must name each seed once; found {text!r}")
    return seeds


def compare(
    configs: Sequence[Path],
    assignments: Sequence[str],
    folder: Path,
    seeds: Sequence[int],
    split: str,
    first: int,
    shown: ComparisonDisplay,
) -> ComparisonReport | None:
    """Train and evaluate what is not yet; then all figures side by side. None in all but the main process."""
    from accelerate import PartialState

    from spanshot.allocator import keep_memory
    from spanshot.research.corpora.source import known_split
    from spanshot.research.experiments.compare import check, compare, plan, trainings

    keep_memory()
    known_split(split)
    runs = plan(configs, from_home(assignments), folder, seeds)
    check(runs, split)
    for run, events in trainings(runs):
        shown.train(runs, run, events, goes_on=is_under_way(run.folder))
    if not PartialState().is_main_process:
        return None
    with shown.evaluating(runs) as progress:
        return compare(runs, split, first, progress)


# Sample


@dataclass(frozen=True)
class Sampling:
    """How episodes are to be drawn; None stands for the rule's own default."""

    rule: str = "fewnerd"
    ways: int | None = None
    shots: int = 1
    query_shots: int | None = None
    query_size: int | None = None
    count: int = 100
    seed: int = 1

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise ConfigError(
                f"--rule must be one of {', '.join(RULES)}; found {self.rule!r}{did_you_mean(self.rule, RULES)}"
            )
        if self.count < 1:
            raise ConfigError(f"--count must be at least 1; found {self.count}")
        foreign = ("query_size",) if self.rule == "fewnerd" else ("ways", "query_shots")
        for name in foreign:
            if getattr(self, name) is not None:
                raise ConfigError(f"--{name.replace('_', '-')} has no meaning under --rule {self.rule}; leave it out")


@dataclass(frozen=True)
class Drawn:
    """Episodes, and labels that have too few spans to be drawn, with how many they have."""

    episodes: list[Episode]
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def labels(self) -> set[str]:
        """All labels that any episode is about."""
        return {label for episode in self.episodes for label in episode.support.labels}

    @property
    def support(self) -> float:
        """Support sentences of an episode, on average."""
        return statistics.fmean(len(episode.support.sentences) for episode in self.episodes)

    @property
    def query(self) -> float:
        """Query sentences of an episode, on average."""
        return statistics.fmean(len(episode.query) for episode in self.episodes)


def draw(files: Sequence[tuple[str, list[Sentence]]], how: Sampling) -> Drawn:
    """Draw episodes. Few-NERD's rule takes all files together; under the minimum rule each is a domain."""
    rng = random.Random(how.seed)
    if how.rule == "fewnerd":
        everything = [sentence for _, own in files for sentence in own]
        sampler = FewNerdSampler(everything, how.ways or 5, how.shots, how.query_shots)
        return Drawn([sampler.sample(rng) for _ in range(how.count)], sampler.left_out)
    size = how.query_size or 20
    samplers = [MinimumIncludingSampler(own, how.shots, size, domain) for domain, own in files]
    return Drawn([samplers[number % len(samplers)].sample(rng) for number in range(how.count)])


def read_labelled(path: Path, kind: str, scheme: str | None, label_column: str = "last") -> list[Sentence]:
    """Labelled sentences of a column file or of GENIA's JSON lines."""
    if kind not in FORMATS:
        raise ConfigError(f"--format must be one of {', '.join(FORMATS)}; found {kind!r}{did_you_mean(kind, FORMATS)}")
    if kind == "guess":
        kind = "genia" if read_text(path).lstrip().startswith("{") else "columns"
    return read_genia(path) if kind == "genia" else read_columns(path, scheme=scheme, label_column=label_column)  # type: ignore[arg-type] # said by the reader


def sample(
    files: Sequence[Path], kind: str, scheme: str | None, how: Sampling, output: Path, label_column: str = "last"
) -> Drawn:
    """Draw episodes from labelled files and write them."""
    drawn = draw([(path.stem, read_labelled(path, kind, scheme, label_column)) for path in files], how)
    write_episodes(output, drawn.episodes)
    return drawn


# Tell


@dataclass(frozen=True)
class Setting:
    """One setting as a user sees it."""

    name: str
    kind: str
    default: str
    """As written in TOML; empty if it must be given."""
    help: str


def methods() -> dict[str, str]:
    """The idea of every method by its name: what its file opens with."""
    from spanshot.research.methods import METHODS

    return {
        name: str(sys.modules[method.__module__].__doc__).strip().splitlines()[0] for name, method in METHODS.items()
    }


def settings(method: str | None) -> dict[str, list[Setting]]:
    """All settings by section, as in a config file; of one method, or of all."""
    from spanshot.research.corpora.sources import SOURCES
    from spanshot.research.methods import METHODS
    from spanshot.research.model_settings import EncoderSettings
    from spanshot.research.training.settings import TrainSettings, WarmStartSettings

    if method is not None:
        choose({"name": method}, "name", METHODS, "method")
    chosen = {method: METHODS[method]} if method is not None else METHODS
    kinds: dict[str, type] = {f'[method] name = "{name}"': own.Settings for name, own in chosen.items()}
    kinds |= {f'[data] kind = "{name}"': own for name, own in SOURCES.items()}
    kinds |= {"[encoder]": EncoderSettings, "[train]": TrainSettings, "[warm_start]": WarmStartSettings}
    seed = Setting("seed", "int", "1", "Of all that is left to chance; it stands above the sections.")
    return {"": [seed], **{title: _settings_of(kind) for title, kind in kinds.items() if fields(kind)}}


def _settings_of(kind: type) -> list[Setting]:
    help_of, hints = field_help(kind), get_type_hints(kind)
    found = []
    for own in fields(kind):
        hint = hints[own.name]
        named = f"list of {get_args(hint)[0].__name__}" if get_args(hint) else hint.__name__
        default = "" if own.default is MISSING else _as_toml(own.default)
        found.append(Setting(own.name, named, default, help_of[own.name]))
    return found


def _as_toml(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_as_toml, value))}]"
    return json.dumps(value) if isinstance(value, bool | str) else repr(value)
