"""Table: models that were trained in different ways (corpora, encoder, method), on the domains of users.

Models of the linear method have the threshold that suits each of them best, as `fit-scores` finds it. Others have the
O bias that was chosen in training.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from spanshot.checkpoint import write_checkpoint
from spanshot.errors import ConfigError
from spanshot.research import checkpoint
from spanshot.research.corpora.many import ManyCorpora
from spanshot.research.experiments import calibration, score_fitting, user_like
from spanshot.research.experiments.ledger import Ledger, Row, markdown
from spanshot.research.experiments.score_fitting import Figures
from spanshot.research.experiments.systems import BOTH, EXAMPLES, NAMES, Options, find_system, score_settings
from spanshot.research.experiments.user_like import SHOTS, EpisodeFile
from spanshot.research.export_model import exported_files
from spanshot.research.methods.linear import Linear
from spanshot.research.training.folder import CONFIG, read_result
from spanshot.research.training.settings import RunSettings
from spanshot.settings import read_table

KEYS = ("run",)
Watch = Callable[[str], None]


def measure(ledger: Ledger, run: Path, files: Sequence[EpisodeFile], cache: Path, watch: Watch) -> None:
    """Add the row of a finished run. Exported models and single outcomes are kept in ``cache``."""
    result = read_result(run)
    if result is None:
        raise ConfigError(f"{run}: not a finished training run")
    settings = RunSettings.of(read_table(run / CONFIG))
    if not isinstance(settings.data, ManyCorpora):
        raise ConfigError(f"{run}: not trained on many corpora")
    saved = checkpoint.load(run)
    by_names: Figures | None = None
    if isinstance(saved.method, Linear):
        learned_from = BOTH
        exported = cache / run.name
        write_checkpoint(exported, "model", exported_files(saved, int8=False))
        with_examples, by_names = _best_figures(exported, files, cache, watch)
    else:
        learned_from = EXAMPLES
        with_examples = _figures(run, files, cache, watch)
    row: Row = {
        "run": run.name,
        "method": settings.model.method_name,
        "encoder": Path(settings.model.encoder.name).name,
        "corpora": len(settings.data.names()),
        "steps": settings.train.steps,
        "minutes": round(result.seconds / 60, 1),
        "learned from": learned_from,
    }
    for k in SHOTS:
        row[f"f1 {k}"] = round(with_examples.f1[k], 2)
        row[f"alarms {k}"] = round(with_examples.alarms[k], 4)
        row[f"names {k}"] = round(by_names.f1[k], 2) if by_names else ""
    ledger.add(row)


def _best_figures(
    model: Path, files: Sequence[EpisodeFile], cache: Path, watch: Watch
) -> tuple[Figures, Figures | None]:
    """Return the figures of an exported model with names and examples, and with names alone."""
    guesses = Ledger(cache / f"{model.name}-guesses.json", calibration.KEYS)
    system = find_system(str(model), Options(threshold=calibration.LOWEST))
    calibration.measure(guesses, files, system, (BOTH, NAMES), watch)
    fitted = score_fitting.fit(guesses, score_settings(str(model)))
    return fitted.with_examples, fitted.names_only


def _figures(run: Path, files: Sequence[EpisodeFile], cache: Path, watch: Watch) -> Figures:
    """Return the figures of a run as it tags."""
    outcomes = Ledger(cache / f"{run.name}-outcomes.json", user_like.KEYS)
    user_like.measure(outcomes, files, find_system(str(run)), (EXAMPLES,), 0, watch)
    by_shots = {summary.shots: summary for summary in user_like.summaries(outcomes)}
    return Figures(
        {k: summary.f1 for k, summary in by_shots.items()},
        {k: summary.total.false_alarms / max(1, summary.total.empty) for k, summary in by_shots.items()},
    )


def tables(ledger: Ledger) -> str:
    """Return the rows as a Markdown table: the linear method first, then by encoder and number of corpora."""
    header = ["method", "encoder", "corpora", "steps", "minutes", "learned from"]
    header += ["F1, 1 per label", "5 per label", "false alarms", "names only"]
    rows = [
        [
            *(str(row[name]) for name in ("method", "encoder", "corpora", "steps", "minutes", "learned from")),
            *(f"{row[f'f1 {k}']:.1f}" for k in SHOTS),
            " / ".join(f"{100 * float(str(row[f'alarms {k}'])):.0f} %" for k in SHOTS),
            f"{row[f'names {SHOTS[0]}']:.1f}" if row[f"names {SHOTS[0]}"] != "" else "",
        ]
        for row in sorted(
            ledger, key=lambda row: (row["method"] != Linear.name, row["encoder"] != "minilm", row["corpora"])
        )
    ]
    return markdown(header, rows)
