"""What can be compared, what is done already, and what is put side by side; no model is trained here."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from spanshot.errors import CheckpointError, ConfigError
from spanshot.evaluation.counts import Counts
from spanshot.evaluation.report import Report
from spanshot.evaluation.runs import RunReport
from spanshot.research import methods
from spanshot.research.cli.compare import parse_seeds
from spanshot.research.cli.comparison_table import to_markdown
from spanshot.research.experiments import compare as compare_module
from spanshot.research.experiments.compare import (
    PlannedRun,
    check,
    compare,
    config_names,
    plan,
    recorded_evaluation,
    trainings,
)
from spanshot.research.experiments.measure import evaluation_file, subject
from spanshot.research.methods import Method
from spanshot.research.methods.esd import EsdSettings
from spanshot.research.training.events import Finished
from spanshot.research.training.settings import RunSettings
from spanshot.settings import to_toml


def table(**sections) -> dict[str, dict[str, object]]:
    found = {
        "method": {"name": "esd"},
        "data": {"kind": "episodes", "train": "train.jsonl", "dev": "dev.jsonl", "test": "test.jsonl"},
        "train": {"steps": 5},
    }
    return {key: {**found.get(key, {}), **sections.get(key, {})} for key in {**found, **sections}}


@pytest.fixture
def write(tmp_path):
    """Writes a config file."""

    def written(name: str, **sections) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(to_toml(table(**sections)), encoding="utf-8")
        return path

    return written


def refusal(*arguments, **options) -> str:
    with pytest.raises(ConfigError) as error:
        plan(*arguments, **options)
    return str(error.value)


# Which runs


def test_there_is_a_run_for_each_config_and_seed_in_a_folder_of_its_own(write, tmp_path):
    configs = [write("a.toml"), write("b.toml", method={"isa": False})]
    runs = plan(configs, ["train.steps=7"], tmp_path / "runs", [3, 1])
    assert [run.folder.name for run in runs] == ["a-seed3", "a-seed1", "b-seed3", "b-seed1"]
    assert [run.settings.seed for run in runs] == [3, 1, 3, 1]
    assert {run.settings.train.steps for run in runs} == {7}
    assert [run.settings.model.method.isa for run in runs] == [True, True, False, False]


def test_without_seeds_each_config_has_its_own(write, tmp_path):
    config = write("a.toml")
    config.write_text("seed = 9\n" + config.read_text())
    assert [run.folder.name for run in plan([config, write("b.toml")], [], tmp_path)] == ["a-seed9", "b-seed1"]


def test_configs_of_one_name_are_told_apart_by_their_folders(tmp_path):
    paths = [tmp_path / "x" / "esd.toml", tmp_path / "y" / "esd.toml", tmp_path / "configs" / "snips" / "proto.toml"]
    assert config_names(paths) == ["x-esd", "y-esd", "snips-proto"]
    with pytest.raises(ConfigError, match="have the same name x-esd; rename one"):
        config_names([tmp_path / "a" / "x" / "esd.toml", tmp_path / "b" / "x" / "esd.toml"])


def test_seeds_are_numbers_each_given_once():
    assert parse_seeds("") == []
    assert parse_seeds("1, 2,30") == [1, 2, 30]
    for text in ("1,x", "1,,2", "1,2,1"):
        with pytest.raises(ConfigError, match="--seeds must"):
            parse_seeds(text)


# What is refused before anything begins


def test_configs_on_other_episodes(write, tmp_path):
    first = write("a.toml")
    other = write("b.toml", method={"isa": False}, data={"test": "other.jsonl", "dev": "more.jsonl"})
    message = refusal([first, other], [], tmp_path)
    assert message.startswith(f"{first} and {other} use different episodes: data.dev is 'dev.jsonl' and 'more.j")
    assert "data.test is 'test.jsonl' and 'other.jsonl'" in message
    assert "data.train" not in message
    assert len(plan([first, other], ["data.test=t.jsonl", "data.dev=d.jsonl"], tmp_path)) == 2


def test_configs_on_another_kind_of_data(write, tmp_path):
    other = write("b.toml")
    other.write_text(to_toml({**table(), "data": {"kind": "snips", "folder": "data"}}))
    message = refusal([write("a.toml"), other], [], tmp_path)
    assert "data.kind is 'episodes' and 'snips' (KEY" in message


def test_a_config_given_twice(write, tmp_path, monkeypatch):
    config = write("a.toml")
    monkeypatch.chdir(tmp_path)
    assert refusal([config, Path("a.toml")], [], tmp_path) == "a.toml is given twice; give each config once"


def test_configs_that_overrides_make_the_same(write, tmp_path):
    configs = [write("a.toml"), write("b.toml", method={"isa": False})]
    assert "have the same settings" in refusal(configs, ["method.isa=true"], tmp_path)


def test_configs_that_differ_in_a_seed_which_is_given_anyway(write, tmp_path):
    first, other = write("a.toml"), write("b.toml")
    other.write_text("seed = 2\n" + other.read_text())
    assert len(plan([first, other], [], tmp_path)) == 2
    assert "have the same settings" in refusal([first, other], [], tmp_path, [5])
    assert "seeds are given twice" in refusal([first], ["seed=3"], tmp_path, [5])


def test_no_training_at_all(write, tmp_path):
    assert "train.steps is 0" in refusal([write("a.toml")], ["train.steps=0"], tmp_path)


@pytest.mark.parametrize("ended", [False, True])
def test_a_folder_that_holds_a_run_with_other_settings(write, tmp_path, ended):
    config = write("a.toml")
    (run,) = plan([config], [], tmp_path)
    run.folder.mkdir()
    (run.folder / "config.toml").write_text(to_toml(run.settings.to_table()))
    if ended:
        (run.folder / "result.json").write_text("{}")
    (again,) = plan([config], [], tmp_path)
    assert again.is_trained == ended
    assert f"{run.folder} contains a run with other settings" in refusal([config], ["train.batch=3"], tmp_path)


def test_all_that_training_needs_is_opened_first(write, tmp_path, monkeypatch):
    runs = plan([write("a.toml"), write("b.toml", encoder={"name": "none"})], [], tmp_path)
    opened = []
    source = SimpleNamespace(training=lambda: opened.append("train"), episodes=opened.append)
    runs = [replace(run, settings=replace(run.settings, data=source)) for run in runs]
    monkeypatch.setattr(compare_module, "new_method", lambda settings: opened.append(settings.model.encoder.name))
    check(runs, "test")
    assert opened == ["train", "dev", "test", "minilm", "none"]


# What is done already


ENDED = Finished(best_step=4, best_f1=0.5, o_bias=0.75, stopped_early=False, seconds=90.0)
REPORT = Report.of([{"city": Counts(tp=3, fn=1)}, {"city": Counts(tp=1, fp_span=1)}])
PLAIN = Report.of([{"city": Counts(tp=1, fn=3)}, {"city": Counts(tp=1, fp_span=1)}])


def finish(run: PlannedRun, report: Report = REPORT, plain: Report | None = PLAIN, **changes) -> None:
    """What training and evaluating leave in a run's folder."""
    run.folder.mkdir(parents=True, exist_ok=True)
    (run.folder / "result.json").write_text(json.dumps(asdict(ENDED)))
    report = RunReport(
        run=str(run.folder),
        subject=subject(run.settings, "test", ENDED.best_step, ENDED.best_f1),
        metric="micro_f1",
        report=report,
        o_bias=None if plain is None else 0.75,
        without_o_bias=plain,
        parameters=1234,
        seconds_to_learn=0.25,
        seconds_per_sentence=0.125,
        digest="same",
        training_seconds=ENDED.seconds,
    )
    document = {**report.to_dict(counts_of_episodes=True), **changes}
    evaluation_file(run.folder, "test").write_text(json.dumps(document))


def never(*arguments: object) -> None:
    raise AssertionError("nothing is left to do")


@pytest.fixture
def runs(write, tmp_path) -> list[PlannedRun]:
    return plan([write("a.toml"), write("b.toml", method={"isa": False})], [], tmp_path / "runs")


def test_a_finished_comparison_is_read_from_the_folders(runs, monkeypatch):
    for run in runs:
        finish(run)
    for name in ("measure", "new_method", "run_training"):
        monkeypatch.setattr(compare_module, name, never)
    check(runs, "test")
    assert list(trainings(runs)) == []
    found = compare(runs, "test", 0, never)
    assert [own.name for own in found.configs] == ["a", "b"]
    (own,) = found.configs[0].runs
    assert own.f1 == REPORT.micro_f1
    assert own.interval == REPORT.confidence()["micro_f1"]
    assert own.f1_without_o_bias == PLAIN.micro_f1
    assert own.interval_without_o_bias == PLAIN.confidence()["micro_f1"]
    assert own.report == REPORT
    assert (own.subject.step, own.training_seconds, own.parameters) == (4, 90.0, 1234)
    assert (own.seconds_to_learn, own.seconds_per_sentence) == (0.25, 0.125)
    noted = json.loads((runs[0].folder.parent / "comparison.json").read_text())
    assert noted == json.loads(json.dumps(found.to_dict()))
    assert noted["configs"][1]["config"] == str(runs[1].config)


def test_only_runs_that_have_not_ended_are_trained(runs, monkeypatch):
    finish(runs[0])
    monkeypatch.setattr(compare_module, "run_training", lambda settings, folder: iter([folder]))
    assert [(run.name, list(events)) for run, events in trainings(runs)] == [("b", [runs[1].folder])]


@pytest.mark.parametrize(
    "change",
    [
        {"data": {"kind": "episodes", "train": "train.jsonl", "dev": "dev.jsonl", "test": "elsewhere.jsonl"}},
        {"method": {"name": "esd", "refine": "greedy"}},
        {"seed": 2},
        {"step": 3},
        {"dev_f1": 0.4},
        {"split": "dev"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_an_evaluation_of_something_else_does_not_count(runs, change):
    finish(runs[0])
    assert recorded_evaluation(runs[0], "test", 0) is not None
    finish(runs[0], **change)
    assert recorded_evaluation(runs[0], "test", 0) is None


@pytest.mark.parametrize(
    "spoil", [lambda text: text[:50], lambda _: "[]", lambda text: text.replace("seconds_to_learn", "speed")]
)
def test_a_damaged_or_older_evaluation_does_not_count(runs, spoil):
    finish(runs[0])
    path = evaluation_file(runs[0].folder, "test")
    path.write_text(spoil(path.read_text()))
    assert recorded_evaluation(runs[0], "test", 0) is None


def test_an_evaluation_of_a_part_lies_beside_that_of_the_whole(runs):
    finish(runs[0])
    assert recorded_evaluation(runs[0], "test", 2) is None
    assert evaluation_file(runs[0].folder, "test", 2) != evaluation_file(runs[0].folder, "test")


def test_a_damaged_result_is_told(runs):
    finish(runs[0])
    (runs[0].folder / "result.json").write_text('{"seconds": 3}')
    with pytest.raises(CheckpointError, match=r"result.json: damaged.* to train it again"):
        assert runs[0].result


def test_evaluations_of_files_that_changed_in_between_are_not_compared(runs):
    finish(runs[0])
    finish(runs[1], digest="other")
    with pytest.raises(ConfigError, match="are about different episodes"):
        compare(runs, "test", 0, never)
    assert not (runs[0].folder.parent / "comparison.json").exists()


# The figures


class Plain(Method):
    """A method without an O bias."""

    name, Settings = "plain", EsdSettings

    def episode_loss(self, episode):
        raise NotImplementedError

    def fit(self, support):
        return lambda sentences: [[] for _ in sentences]


def test_a_method_without_an_o_bias_has_no_figure_without_it(runs, monkeypatch, tmp_path):
    monkeypatch.setitem(methods._CLASSES, "plain", "Plain")
    monkeypatch.setitem(sys.modules, f"{methods.__name__}.plain", SimpleNamespace(Plain=Plain))
    settings = RunSettings.of(table(method={"name": "plain"}))
    run = PlannedRun("plain", tmp_path / "plain.toml", settings, tmp_path / "runs" / "plain-seed1")
    finish(run, plain=None)
    finish(runs[0])
    found = compare([run, runs[0]], "test", 0, never)
    (figures,) = found.configs[0].runs
    assert figures.o_bias is figures.f1_without_o_bias is figures.interval_without_o_bias is None
    assert found.to_dict()["configs"][0]["over_seeds"]["f1_without_o_bias"] is None
    lines = to_markdown(found).splitlines()
    column = [cell.strip() for cell in lines[0].split("|")].index("without O bias")
    assert [line.split("|")[column].strip()[:5] for line in lines[2:4]] == ["none", "50.00"]


def test_several_seeds_give_mean_and_deviation(write, tmp_path):
    runs = plan([write("a.toml")], [], tmp_path / "runs", [1, 2])
    for run, correct in zip(runs, (5, 7), strict=True):
        finish(run, Report.of([{"city": Counts(tp=correct, fn=10 - correct, fp_span=10 - correct)}]))
    found = compare(runs, "test", 0, never)
    (own,) = found.configs
    assert own.over_seeds("f1") == pytest.approx((0.6, 0.02**0.5))
    over = own.to_dict()["over_seeds"]
    assert over["step"] == {"mean": 4.0, "deviation": 0.0}
    assert over["recall"]["mean"] == pytest.approx(0.6)
    table = to_markdown(found)
    assert "60.00 ± 14.14" in table
    assert "over 2 seeds" in table
    assert "| 4, 4 |" in table


def test_markdown_is_one_line_per_config_with_the_best_in_bold(runs):
    finish(runs[0], PLAIN)
    finish(runs[1], REPORT)
    head, rule, first, second, empty, remark, difference = to_markdown(compare(runs, "test", 0, never)).splitlines()
    assert head.startswith("| config (method) | micro F1 | without O bias | P / R | parameters | training time |")
    assert {len(line.split("|")) for line in (head, rule, first, second)} == {11}
    assert first.startswith("| a (esd) | 50.00 (")
    assert second.startswith("| b (esd) | **80.00 (")
    assert second.endswith(" | 80.00 / 80.00 | 1,234 | 1 min 30 s | 4 | 125.00 | 250.00 |")
    assert empty == ""
    assert remark.startswith("On 2 test episodes; in brackets 95 % bootstrap intervals")
    assert difference.startswith("b \u2212 a: +30.00 (")


def test_the_best_config_is_compared_with_each_other_on_the_same_episodes(write, tmp_path):
    runs = plan([write("a.toml"), write("b.toml", method={"isa": False})], [], tmp_path / "runs")
    easy_and_hard = [Counts(tp=9, fn=1), Counts(tp=1, fn=9)] * 20
    better = [replace(counts, tp=counts.tp + 1, fn=counts.fn - 1) for counts in easy_and_hard]
    finish(runs[0], Report.of({"city": counts} for counts in easy_and_hard))
    finish(runs[1], Report.of({"city": counts} for counts in better))
    found = compare(runs, "test", 0, never)
    ((config, difference),) = found.differences
    assert config.name == "a"
    assert difference.f1 == pytest.approx(found.configs[1].runs[0].f1 - found.configs[0].runs[0].f1)
    assert difference.is_clear  # although the intervals of both overlap
    assert found.configs[0].runs[0].interval.high > found.configs[1].runs[0].interval.low
    noted = json.loads((runs[0].folder.parent / "comparison.json").read_text())["differences"]
    assert noted == [{"first": "b", "second": "a", "f1": difference.f1, "interval": list(difference.interval)}]


def test_a_name_cannot_break_the_to_markdown(write, tmp_path):
    (run,) = plan([write("a|b.toml")], [], tmp_path / "runs")
    finish(run)
    assert "| a\\|b (esd) |" in to_markdown(compare([run], "test", 0, never))
