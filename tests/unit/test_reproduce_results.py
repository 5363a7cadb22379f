"""Tables, plots, rankings and estimates of `spanshot reproduce`, without any training."""

from __future__ import annotations

import json
import random
import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from spanshot.errors import ConfigError
from spanshot.evaluation.counts import Counts
from spanshot.evaluation.report import Interval, Report
from spanshot.research.configs import find_config
from spanshot.research.corpora.ace05 import read_ace05
from spanshot.research.experiments.reproduce import ablation, fewnerd, nested, snips
from spanshot.research.experiments.reproduce.catalogue import EXPERIMENTS, find_experiments
from spanshot.research.experiments.reproduce.curves import relative_losses
from spanshot.research.experiments.reproduce.episode_sets import is_nested, mislabelled
from spanshot.research.experiments.reproduce.jobs import Job, Progress, merged, read_measurement, write_measurement
from spanshot.research.experiments.reproduce.markdown import to_markdown, to_section
from spanshot.research.experiments.reproduce.page import to_page
from spanshot.research.experiments.reproduce.plots import draw
from spanshot.research.experiments.reproduce.postprocessing_grid import TUNED, best_settings, resolved
from spanshot.research.experiments.reproduce.ranking import (
    column_rankings,
    difference_remarks,
    difference_table,
    ranking_remark,
)
from spanshot.research.experiments.reproduce.results import Cell, Chart, Curve, Measured, Result, ResultTable
from spanshot.research.experiments.reproduce.time_left import TimeLeft
from spanshot.research.experiments.reproduce.workspace import Workspace
from spanshot.research.training.settings import RunSettings
from spanshot.types import Episode, ScoredSpan, Sentence, Span, SupportSet

CELL = Cell(Measured(0.6101, 0.004, Interval(0.592, 0.628), 3), 78.25, 1.5)
TABLE = ResultTable("1-shot", ("We",), {"ESD": (CELL,), "<b>|": (Cell(None, 21.74),)}, note="A note.")
BARS = Chart("bars", "Averages", "", "F1", ("ESD", "ProtoBERT"), (Curve("1-shot", (61.0, 63.0), (1.0, 2.0)),))
LINES = Chart(
    "lines", "Noise", "r", "ΔF1", (0.0, 0.5), (Curve("ESD", (0.0, 9.0), (0.0, 2.0)), Curve("NNShot", (0.0, 20.0)))
)
RESULT = Result("snips", "SNIPS", (TABLE,), (BARS, LINES), ("A remark.",), ("Seeds: 1.",))


def report(*episodes: tuple[int, int]) -> Report:
    """A report with (correct, missed) spans per episode."""
    counts = tuple(Counts(tp=tp, fn=fn) for tp, fn in episodes)
    return Report(counts, {"x": sum(counts, Counts())})


# Tables and pages


def test_a_cell_shows_mean_deviation_interval_and_the_paper_s_figure():
    assert CELL.text == "61.01 ± 0.40 (59.20 to 62.80)"
    assert CELL.paper_text == "78.25 ± 1.50"
    assert Cell(None, 21.74).text == "\u2013"


def test_markdown_has_the_paper_s_figures_in_brackets_and_the_plots_that_were_drawn():
    text = to_markdown(RESULT, ["bars.svg"])
    assert "| ESD | 61.01 ± 0.40 (59.20 to 62.80) [78.25 ± 1.50] |" in text
    assert "| <b>\\| | \u2013 [21.74] |" in text
    assert "![Averages](bars.svg)" in text
    assert "lines.svg" not in text
    assert "- A remark." in text


def test_a_section_has_all_plots_and_its_settings_in_a_box():
    text = to_section(RESULT, "pictures")
    assert "| ESD | 61.01 ± 0.40 (59.20 to 62.80)<br>[78.25 ± 1.50] |" in text
    assert [line for line in text.splitlines() if line.startswith("![")] == [
        f"![{chart.title}](pictures/{chart.name}.svg)" for chart in RESULT.charts
    ]
    assert '??? example "Settings"\n\n    - Seeds: 1.' in text
    assert "\n#" not in text


def test_a_page_loads_nothing_and_escapes_names():
    page = to_page("All", [RESULT], {chart.name: draw(chart) for chart in RESULT.charts})
    assert "default-src 'none'" in page
    addresses = set(re.findall(r'(?:src|href)="([^"#][^"]*)"', page))
    assert not addresses
    assert "&lt;b&gt;|" in page
    assert "<b>|" not in page
    assert page.count("<svg") == 2
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_a_page_has_sortable_columns_with_numbers_as_keys():
    page = to_page("All", [RESULT], {})
    assert '<th scope="col"><button>We</button></th>' in page
    keys = re.findall(r'<td data-key="([^"]*)">61', page)
    assert float(keys[0]) == pytest.approx(61.01)


def test_json_holds_every_figure():
    record = json.loads(json.dumps(RESULT.to_dict()))
    cell = record["tables"][0]["rows"]["ESD"]["We"]
    assert cell["ours"]["mean"] == pytest.approx(61.01)
    assert cell["paper"] == 78.25
    assert record["charts"][1]["curves"]["ESD"]["means"] == [0.0, 9.0]


@pytest.mark.parametrize("chart", [BARS, LINES], ids=lambda chart: chart.name)
def test_a_plot_is_the_same_every_time_and_legible_without_colours(chart):
    document = draw(chart)
    assert document == draw(chart)
    shades = {tuple(int(code[at : at + 2], 16) for at in (1, 3, 5)) for code in re.findall(r"#[0-9a-f]{6}\b", document)}
    assert all(red == green == blue for red, green, blue in shades)
    assert chart.curves[0].name in document


# Rankings


def test_columns_with_the_same_ranking_share_a_remark():
    def row(paper, *ours):
        return tuple(Cell(Measured(f1), paper) for f1 in ours)

    rows = {"ESD": row(70, 0.6, 0.5, 0.1), "NNShot": row(40, 0.3, 0.2, 0.2), "Retriever": row(None, 0.9, 0.1, 0.1)}
    assert column_rankings("1-shot", ("We", "Mu", "Pl"), rows) == [
        "1-shot, We, Mu: the same ranking as in the paper: ESD, NNShot.",
        "1-shot, Pl: the ranking differs from the paper. Here: NNShot, ESD. Paper: ESD, NNShot.",
    ]
    assert column_rankings("1-shot", ("We",), {"ESD": (Cell(None, 70),), "NNShot": row(40, 0.3)}) == []


def test_a_different_ranking_is_said_and_methods_without_a_paper_figure_do_not_count():
    ours = {"ESD": 0.6, "ProtoBERT": 0.7, "NNShot": 0.9, "ConVEx": None}
    remark = ranking_remark("1-shot", ours, {"ESD": 70.0, "ProtoBERT": 50.0, "ConVEx": 1.0})
    assert remark == "1-shot: the ranking differs from the paper. Here: ProtoBERT, ESD. Paper: ESD, ProtoBERT."
    assert "the same ranking" in ranking_remark("1-shot", ours, {"ESD": 50.0, "ProtoBERT": 70.0})
    assert ranking_remark("1-shot", ours, {"ESD": 50.0}) == ""
    assert "apart from ties" in ranking_remark("1-shot", {"ESD": 0.6, "ProtoBERT": 0.6}, {"ESD": 1.0, "ProtoBERT": 2.0})


def test_methods_are_compared_on_the_seeds_that_both_have():
    reports = {"ESD": [report((9, 1), (8, 2)), report((0, 9), (0, 9))], "NNShot": [report((5, 5), (5, 5))]}
    (remark,) = difference_remarks("Avg.", "ESD", reports, "micro_f1")
    assert re.fullmatch(r"Avg\.: ESD \u2212 NNShot: \+\d+\.\d\d \(.* to .*\)\.", remark)


def test_a_table_of_differences_has_a_row_for_each_other_method_and_marks_what_is_missing():
    measured = {"ESD": [report((9, 1), (8, 2))], "NNShot": [report((5, 5), (5, 5))], "ProtoBERT": []}
    missing = {"ESD": [], "NNShot": [report((5, 5))], "ProtoBERT": []}
    table = difference_table("ESD", "ESD", {"1-shot": measured, "5-shot": missing}, "micro_f1")
    assert table.columns == ("1-shot", "5-shot")
    assert table.rows["ESD \u2212 ProtoBERT"] == ("\u2013", "\u2013")
    (remark,) = difference_remarks("1-shot", "ESD", measured, "micro_f1")
    assert table.rows["ESD \u2212 NNShot"] == (remark.split(": ")[2].rstrip("."), "\u2013")


def test_relative_losses_start_at_zero():
    points = [[Counts(tp=8, fn=2), Counts(tp=6, fn=4)], [Counts(tp=4, fn=6), Counts(tp=3, fn=7)]]
    losses, halves = relative_losses(points)
    assert losses[0] == halves[0] == 0.0
    first, second = 2 * 14 / (2 * 14 + 6), 2 * 7 / (2 * 7 + 13)
    assert losses[1] == pytest.approx(100 * (first - second) / first)


# Episodes


def test_a_share_of_the_support_entities_is_mislabelled_and_every_label_keeps_an_example():
    sentences = tuple(Sentence(("a", "b"), (Span(0, 1, label),)) for label in "xxxxyyyyzz")
    episode = Episode(SupportSet(("x", "y", "z"), sentences), sentences[:1])
    noisy = mislabelled(episode, 0.3, random.Random(1))
    pairs = zip(episode.support.sentences, noisy.support.sentences, strict=True)
    assert sum(before != after for before, after in pairs) == 3
    assert noisy.support.labels == ("x", "y", "z")
    assert noisy.query == episode.query
    assert mislabelled(episode, 0.0, random.Random(1)) == episode


def test_nested_means_that_two_spans_share_a_word():
    assert is_nested(Sentence(("a", "b", "c"), (Span(0, 2, "x"), Span(1, 2, "y"))))
    assert not is_nested(Sentence(("a", "b", "c"), (Span(0, 1, "x"), Span(1, 2, "x"))))


def test_the_share_of_nested_episodes_grows_and_keeps_the_earlier_ones():
    nested_counts, flat_counts = [Counts(tp=1)] * 10, [Counts(fn=1)] * 10
    parts = [nested.mixture(nested_counts, flat_counts, ratio) for ratio in nested.RATIOS]
    assert [part.count(Counts(tp=1)) for part in parts] == [0, 2, 4, 6, 8, 10]
    for fewer, more in pairwise(parts):
        assert all(b == Counts(tp=1) for a, b in zip(fewer, more, strict=True) if a == Counts(tp=1))


def test_the_grid_finds_settings_that_keep_nested_spans():
    outer, inner = ScoredSpan(Span(0, 4, "x"), 0.9), ScoredSpan(Span(0, 2, "y"), 0.8)
    episode = [((outer.span, inner.span), [outer, inner])]
    settings, f1 = best_settings(TUNED["bsnms"], [episode], (0.1, 0.5, 0.9))
    assert f1 == 1.0
    assert resolved([episode], TUNED["bsnms"](*settings)).micro_f1 == 1.0
    assert resolved([episode], TUNED["bsnms"](0.1, 0.1, 0.9)).micro_f1 < 1.0


ACE_TEXT = """<DOC><BODY><TEXT>
The mayor of Oslo spoke. She left
the town hall.
</TEXT></BODY></DOC>
"""
ACE_XML = """<source_file><document>
<entity ID="1" TYPE="PER" SUBTYPE="Individual"><entity_mention><extent>
<charseq START="{0}" END="{1}">The mayor of Oslo</charseq></extent></entity_mention></entity>
<entity ID="2" TYPE="LOC" SUBTYPE="Town"><entity_mention><extent>
<charseq START="{2}" END="{1}">Oslo</charseq></extent></entity_mention></entity>
<entity ID="3" TYPE="GPE" SUBTYPE="Nation"><entity_mention><extent>
<charseq START="{0}" END="{0}">T</charseq></extent></entity_mention></entity>
</document></source_file>
"""


def test_ace05_is_read_with_nested_mentions_of_the_paper_s_types(tmp_path):
    plain = re.sub("<[^>]*>", "", ACE_TEXT)
    start, last = plain.index("The mayor"), plain.index("Oslo") + 3
    (tmp_path / "doc.sgm").write_text(ACE_TEXT, encoding="utf-8")
    (tmp_path / "doc.apf.xml").write_text(ACE_XML.format(start, last, last - 3), encoding="utf-8")
    first, second = read_ace05(tmp_path)
    assert first.words == ("The", "mayor", "of", "Oslo", "spoke", ".")
    assert first.spans == (Span(0, 4, "PER-Individual"), Span(3, 4, "LOC-Town"))
    assert second.spans == ()


# Jobs


@dataclass(frozen=True)
class Answer:
    """A measurement that needs no run."""

    name: str = "answer"
    value: int = 42

    def describe(self):
        return {"value": self.value}

    def measure(self, folder, count):
        count(1, 1)
        return {"answer": self.value}


def test_a_measurement_is_taken_once_and_again_only_if_it_changes(tmp_path):
    job = Job(tmp_path / "run", None, (Answer(),))
    seen: list[Progress] = []
    assert not job.is_done
    job.work(seen.append)
    assert job.is_done
    assert [progress.share for progress in seen] == [0.999, 1.0]
    before = (tmp_path / "run" / "measurement_answer.json").stat().st_mtime_ns
    job.work(seen.append)
    assert (tmp_path / "run" / "measurement_answer.json").stat().st_mtime_ns == before
    assert read_measurement(job.folder, Answer(value=43)) is None


def test_a_damaged_record_is_measured_again(tmp_path):
    write_measurement(tmp_path, Answer(), {"answer": 42})
    path = tmp_path / "measurement_answer.json"
    path.write_text(path.read_text(encoding="utf-8")[:20], encoding="utf-8")
    assert read_measurement(tmp_path, Answer()) is None


def test_experiments_share_runs_and_lower_ranks_come_first(tmp_path):
    one, two = Answer("one"), Answer("two")
    jobs = merged(
        [
            Job(tmp_path / "late", rank=5),
            Job(tmp_path / "shared", None, (one,), rank=4),
            Job(tmp_path / "alone", rank=0, alone=True),
            Job(tmp_path / "shared", None, (one, two), rank=1),
        ]
    )
    assert [job.name for job in jobs] == ["shared", "late", "alone"]
    assert jobs[0].measurements == (one, two)


def test_the_time_left_follows_the_pace_of_the_sitting(tmp_path):
    now = 0.0
    jobs = [Job(tmp_path / name, None, (Answer(),), minutes=10) for name in "ab"]
    left = TimeLeft(jobs, 1, lambda: now)
    assert left.seconds == 1200
    left.update(Progress("a", "train", 0, 10, 0.0))
    now = 1200.0
    left.update(Progress("a", "train", 5, 10, 0.5))
    assert left.seconds == pytest.approx(15 * 1200 / 5)
    left.update(Progress("a", "done", 1, 1, 1.0))
    assert (left.done, left.total) == (1, 2)


# The plan


def test_every_experiment_of_the_paper_has_a_name():
    assert list(EXPERIMENTS) == [
        "snips", "fewnerd", "ablation", "nested", "postprocessing", "efficiency", "errors", "noise", "search",
    ]  # fmt: skip
    assert find_experiments(["all"]) == list(EXPERIMENTS.values())
    with pytest.raises(ConfigError, match=r"no experiment 'snip'; choose from .*did you mean 'snips'"):
        find_experiments(["snip"])


def test_the_paper_s_averages_fit_its_columns():
    for by_method in snips.PAPER.values():
        for method, figures in by_method.items():
            mean = sum(f1 for f1, _ in figures[:7]) / 7
            assert figures[7][0] == pytest.approx(mean, abs=0.06), method
    for by_method in fewnerd.PAPER.values():
        for method, figures in by_method.items():
            mean = sum(f1 for f1, _ in figures[:4]) / 4
            assert figures[4][0] == pytest.approx(mean, abs=0.02), method


def files_of_snips(folder: Path) -> None:
    """Write empty files in the layout of SNIPS: enough to plan runs."""
    for inner, name in (("xval_snips", "snips_{}_{}.json"), ("xval_snips_shot_5", "snips-{}-{}-shot-5.json")):
        (folder / inner).mkdir(parents=True)
        for split in ("train", "valid", "test"):
            for fold in range(1, 8):
                (folder / inner / name.format(split, fold)).write_text("{}", encoding="utf-8")


VARIANT_RUNS = ("esd", "esd-paper", "esd-released", "esd-random-start", "esd-narrow", "esd-dropout")


def test_the_laptop_plan_starts_with_the_variants_the_ablation_and_the_main_methods_on_snips(tmp_path):
    files_of_snips(tmp_path / "data" / "snips")
    workspace = Workspace("laptop", tmp_path / "data", tmp_path / "out")
    chosen = [EXPERIMENTS["snips"], EXPERIMENTS["ablation"]]
    jobs = merged(job for experiment in chosen for job in experiment.jobs(workspace))
    names = [job.name for job in jobs]
    rows = {name for name in names if name.startswith("snips-ablation-esd-no-")}
    assert len(rows) == 12
    variants = {f"snips-ablation-{name}-{domain}-1shot-seed1" for name in VARIANT_RUNS for domain in ("We", "Se")}
    assert set(names[:12]) == variants
    assert set(names[12:26]) == rows | {f"snips-ablation-esd-We-1shot-seed{seed}" for seed in (2, 3)}
    main = [job for job in jobs[26:54] if re.fullmatch(r"snips-(esd|proto|structshot)-\w\w-\dshot-seed1", job.name)]
    assert len(main) == 28  # seven domains: ESD for each setting, the others once for both
    folders = {1: "xval_snips", 5: "xval_snips_shot_5"}
    for job in main:
        shots, is_esd = job.settings.data.shots, job.settings.model.method_name == "esd"
        assert is_esd or shots == 5
        items = [item for item in job.measurements if not item.name.endswith("nnshot")]
        assert [item.assignments for item in items] == ([()] if is_esd else [("data.shots=1",), ("data.shots=5",)])
        expected = [folders[shots]] if is_esd else [folders[1], folders[5]]
        assert [item.tune_on.parent.name for item in items] == expected
    encoders = {job.settings.model.encoder.name for job in jobs}
    assert encoders == {"minilm"}
    assert all(not job.settings.train.start for job in jobs)


def test_the_paper_budget_has_the_paper_s_settings(tmp_path):
    files_of_snips(tmp_path / "data" / "snips")
    workspace = Workspace("paper", tmp_path / "data", tmp_path / "out")
    jobs = {job.name: job.settings for job in EXPERIMENTS["snips"].jobs(workspace)}
    assert len([name for name in jobs if name.startswith("snips-esd-We-1shot")]) == 10
    rates = {name: jobs[f"snips-esd-{name}-seed1"].train for name in ("We-1shot", "Mu-1shot", "Bo-1shot", "Mu-5shot")}
    assert {name: (train.encoder_rate, train.head_rate) for name, train in rates.items()} == {
        "We-1shot": (5e-5, 5e-4),
        "Mu-1shot": (5e-6, 1e-4),
        "Bo-1shot": (1e-5, 1e-4),
        "Mu-5shot": (5e-5, 5e-4),
    }
    settings = jobs["snips-esd-We-1shot-seed1"]
    assert settings.model.encoder.name == "bert-base-uncased"
    assert settings.train.steps == 4500


@pytest.mark.parametrize(
    ("variant", "config"), [("the paper's equations", "snips/esd-paper"), ("the released code", "snips/esd-released")]
)
def test_the_variants_of_the_ablation_are_the_packaged_configs(tmp_path, variant, config):
    files_of_snips(tmp_path / "data" / "snips")
    workspace = Workspace("laptop", tmp_path / "data", tmp_path / "out")
    name = ablation.VARIANTS[variant].name
    (job,) = (job for job in ablation.jobs(workspace) if job.name == f"snips-ablation-{name}-We-1shot-seed1")
    assert job.settings.model.method == RunSettings.read(find_config(config)).model.method


def test_an_unknown_budget_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="--budget must be one of small, laptop, paper; found 'smal'"):
        Workspace("smal", tmp_path, tmp_path)
