"""The experiments behind the tables of the default model, with systems whose answers are known."""

from pathlib import Path

import numpy as np
import pytest

from spanshot.errors import DataError
from spanshot.heads.settings import ScoreSettings
from spanshot.research.corpora.episode_files import write_episodes
from spanshot.research.experiments import (
    calibration,
    episode_table,
    growth,
    score_fitting,
    suggestion_order,
    systems,
    user_like,
)
from spanshot.research.experiments.calibration import Reliability
from spanshot.research.experiments.ledger import Ledger
from spanshot.research.experiments.raw_text import Mark, TextEpisode, TextExample, compare
from spanshot.research.experiments.systems import BOTH, EXAMPLES, NAMES, System
from spanshot.types import Entity, Episode, Sentence, Span, SupportSet


def text_example(text: str, *marks: tuple[int, int, str]) -> TextExample:
    return TextExample(text, frozenset(Mark(*mark) for mark in marks))


def lookup(labels, support):
    """Find the texts that the examples mark; without examples, the texts that equal a label."""
    known = {(example.text[m.start : m.end], m.label) for example in support for m in example.marks}
    known = known or {(label, label) for label in labels}

    def tag(texts):
        places = [[(text.find(word), word, label) for word, label in known] for text in texts]
        return [[Entity(w, label, at, at + len(w), 0.9) for at, w, label in own if at >= 0] for own in places]

    return tag


LOOKUP = System("lookup", "1", lookup, (BOTH, EXAMPLES, NAMES))
EPISODE = Episode(
    SupportSet(("city",), (Sentence(("to", "Rome"), (Span(1, 2, "city"),)),)),
    (
        Sentence(("Rome", "fell"), (Span(0, 1, "city"),)),
        Sentence(("my", "city"), ()),
        Sentence(("Oslo", "won"), (Span(0, 1, "city"),)),
    ),
)


@pytest.fixture
def folder(tmp_path):
    for shots in (1, 5):
        write_episodes(tmp_path / f"travel_{shots}.jsonl", [EPISODE, EPISODE])
    return tmp_path


def test_a_text_without_entities_in_which_one_is_found_is_a_false_alarm():
    episode = TextEpisode(("city",), (), (text_example("no city"), text_example("Rome", (0, 4, "city"))))
    empty, marked = compare(episode, [[Entity("no", "city", 0, 2)], []])
    assert (empty.empty, empty.false_alarms, empty.fp) == (1, 1, 1)
    assert (marked.empty, marked.false_alarms, marked.fn) == (0, 0, 1)


def test_verbatim_recall_ignores_case_but_not_the_label():
    support = (text_example("to Rome", (3, 7, "city")), text_example("Rome won", (0, 4, "club")))
    query = (text_example("ROME", (0, 4, "city")), text_example("Rome", (0, 4, "date")))
    first, second = compare(TextEpisode(("city", "club", "date"), support, query), [[Entity("ROME", "city", 0, 4)], []])
    assert (first.verbatim, first.verbatim_found) == (1, 1)
    assert (second.verbatim, second.fn) == (0, 1)


def test_examples_only_hides_the_names_from_the_system_and_restores_the_labels(folder):
    seen = []

    def learn(labels, support):
        seen.extend(labels)
        return lookup(labels, support)

    ledger = Ledger(folder / "out.json", user_like.KEYS)
    user_like.measure(
        ledger, user_like.episode_files(folder), System("x", "1", learn), [EXAMPLES], first=1, watch=seen.append
    )
    assert "city" not in seen
    assert "label 1" in seen
    assert [row["tp"] for row in ledger] == [1, 1]


def test_names_only_gives_the_system_no_example(folder):
    ledger = Ledger(folder / "out.json", user_like.KEYS)
    user_like.measure(ledger, user_like.episode_files(folder), LOOKUP, [NAMES], 1, lambda _: None)
    (first, _) = ledger
    assert (first["tp"], first["false_alarms"], first["empty"]) == (0, 1, 1)


def test_measured_rows_are_skipped_unless_the_weights_have_changed(folder):
    ledger = Ledger(folder / "out.json", user_like.KEYS)
    files = user_like.episode_files(folder)
    message: list[str] = []
    user_like.measure(ledger, files, LOOKUP, [BOTH], 0, message.append)
    assert len(message) == 4
    again = Ledger(folder / "out.json", user_like.KEYS)
    user_like.measure(again, files, LOOKUP, [BOTH], 0, message.append)
    assert len(message) == 4
    user_like.measure(again, files, System("lookup", "2", lookup), [BOTH], 0, message.append)
    assert len(message) == 8
    assert len(list(again)) == 4


def test_counts_are_pooled_over_episodes_and_f1_is_averaged_over_domains():
    counts = {"fp": 0, "empty": 0, "false_alarms": 0, "verbatim": 0, "verbatim_found": 0}
    rows = [
        {"system": "s", "mode": BOTH, "shots": 1, "domain": "a", "episode": 0, "tp": 1, "fn": 1, **counts},
        {"system": "s", "mode": BOTH, "shots": 1, "domain": "a", "episode": 1, "tp": 0, "fn": 2, **counts},
        {"system": "s", "mode": BOTH, "shots": 1, "domain": "b", "episode": 0, "tp": 1, "fn": 0, **counts},
    ]
    (summary,) = user_like.summaries(rows)
    assert summary.f1 == pytest.approx((100 * 2 / 5 + 100) / 2)
    assert "| s | names and examples | 1 | 70.0 |" in user_like.tables(rows)
    assert "| b | 100.0 |" in user_like.tables(rows)
    assert user_like.short_table(rows, "s").splitlines()[-1] == "| names and examples | 70.0 |"


def test_a_folder_without_episode_files_is_a_clear_error(tmp_path):
    with pytest.raises(DataError, match=r"no files named DOMAIN_1\.jsonl"):
        user_like.episode_files(tmp_path)


def test_a_file_that_holds_other_json_is_not_taken_for_results(tmp_path):
    (tmp_path / "x.json").write_text("[1]", encoding="utf-8")
    with pytest.raises(DataError, match="not a file of results"):
        Ledger(tmp_path / "x.json", ("a",))


def curve(*f1: float) -> growth.Curve:
    """A curve whose draws and blocks all have the same F1."""
    counts = {}
    for size, share in zip((5, 10, 25), f1, strict=True):
        right = round(100 * share)
        counts[size] = np.tile([right, 100 - right, 100 - right], (5, growth.BLOCKS, 1))
    return growth.Curve("corpus", "system", counts, {})


def test_only_a_fall_that_holds_over_draws_and_texts_is_a_drop():
    assert curve(0.5, 0.6, 0.7).drops() == []
    assert curve(0.5, 0.6, 0.4).drops() == [(5, 25, pytest.approx(-10)), (10, 25, pytest.approx(-20))]
    noisy = curve(0.5, 0.5, 0.5)
    noisy.counts[10][0] = [40, 60, 60]
    assert noisy.drops() == []


def test_growth_counts_labels_that_the_examples_do_not_show_yet_as_missed(tmp_path, monkeypatch):
    monkeypatch.setattr(growth, "TEST_TEXTS", 1)
    draw = growth.Draw(
        0,
        (text_example("to Rome", (3, 7, "city")), text_example("on Friday", (3, 9, "day"))),
        (text_example("Rome Friday noon", (0, 4, "city"), (5, 11, "day"), (12, 16, "time")),),
    )
    episode = draw.episode(1)
    assert episode.labels == ("city",)
    assert {mark.label for mark in episode.query[0].marks} == {"city", "day"}


def test_calibration_error_is_the_mean_distance_between_score_and_accuracy():
    scores = np.array([0.95] * 8 + [0.35] * 2)
    right = np.array([1.0] * 6 + [0.0] * 2 + [1.0, 0.0])
    assert Reliability.of(scores, right).error == pytest.approx(0.8 * 0.2 + 0.2 * 0.15)


def test_episode_files_are_measured_block_by_block(folder, monkeypatch):
    monkeypatch.setattr(episode_table, "BLOCK", 1)
    ledger = Ledger(folder / "out.json", episode_table.KEYS)
    message: list[str] = []
    episode_table.measure(ledger, folder / "travel_1.jsonl", LOOKUP, 1, message.append)
    episode_table.measure(ledger, folder / "travel_1.jsonl", LOOKUP, 0, message.append)
    assert message == ["travel_1, lookup: 1 of 1 episodes", "travel_1, lookup: 2 of 2 episodes"]
    assert "66.67 (66.67 to 66.67)" in episode_table.tables(ledger)


def test_annotation_follows_the_order_and_stops():
    pool = [text_example(str(number)) for number in range(20)]
    rounds = list(
        suggestion_order.annotate(
            ["city"], pool, lambda *_: None, lambda _, texts: sorted(range(len(texts)), reverse=True), limit=10
        )
    )
    assert [len(annotated) for annotated in rounds] == [5, 10]
    assert [example.text for example in rounds[-1]] == [str(number) for number in range(19, 9, -1)]


def test_the_order_is_measured_again_with_other_weights_only(tmp_path, monkeypatch):
    examples = tuple(text_example(f"to Rome {number}", (3, 7, "city")) for number in range(60))
    monkeypatch.setattr(suggestion_order, "draws", lambda *_: [growth.Draw(0, examples[:50], examples[50:])])

    class Silent:
        def pipe(self, texts):
            return [[] for _ in texts]

    orders = {"random": suggestion_order.random_order}
    ledger = Ledger(tmp_path / "out.json", suggestion_order.KEYS)
    message: list[str] = []
    for identity, measured in (("1", 4), ("1", 4), ("2", 8)):
        suggestion_order.measure(ledger, Path("a.jsonl"), orders, lambda *_: Silent(), identity, 1, message.append)
        assert len(message) == measured
    assert len(list(ledger)) == 4


def guesses_row(shots: int, domain: str, scores: list[float], right: list[int], **fields) -> dict:
    row = {"mode": BOTH, "shots": shots, "domain": domain, "episode": 0, "gold": sum(right), "empty": []}
    row |= {"scores": scores, "right": right, "examples": [shots] * len(scores), "texts": list(range(len(scores)))}
    return row | fields


def test_the_fitted_map_finds_the_probability_behind_distorted_scores():
    rng = np.random.default_rng(0)
    chance = rng.uniform(0.05, 0.95, 6000)
    right = (rng.random(6000) < chance).astype(int)
    distorted = 1 / (1 + np.exp(-(np.log(chance / (1 - chance)) / 2 + 1)))
    rows = [
        guesses_row(1, "a", distorted[:3000].tolist(), right[:3000].tolist()),
        guesses_row(1, "b", distorted[3000:].tolist(), right[3000:].tolist()),
    ]
    found = calibration.reliabilities(rows, lowest=0.0)
    assert found[1, "as returned"].error > 0.1
    assert found[1, "map of other domains"].error < 0.03
    slope, _, shift = score_fitting.logistic_map([score_fitting.Guesses.of(rows, ScoreSettings())])
    assert (slope, shift) == (pytest.approx(2, abs=0.1), pytest.approx(-2, abs=0.15))


def test_calibration_does_not_depend_on_rows_that_other_commands_have_measured():
    rows = [guesses_row(1, domain, [0.3, 0.6, 0.9] * 20, [0, 1, 1] * 20) for domain in "ab"]
    others = [{**row, "mode": mode, "right": [0] * 60} for row in rows for mode in (EXAMPLES, NAMES)]
    assert calibration.tables([*rows, *others], lowest=0.0) == calibration.tables(rows, lowest=0.0)


def test_thresholds_with_few_false_alarms_are_preferred_if_they_cost_little():
    def chosen(low: list[int]) -> tuple[float, int]:
        """F1 and false alarms if 50 right guesses have a high score and others, of which the wrong ones stand in
        texts without entities, a low one."""
        empty = [50 + number for number, right in enumerate(low) if not right]
        row = guesses_row(1, "a", [0.6] * 50 + [0.4] * len(low), [1] * 50 + low, empty=empty)
        guesses = score_fitting.Guesses.of([row], ScoreSettings())
        return guesses.figures(*score_fitting.best_thresholds([guesses], np.zeros(1)))

    assert chosen([1] * 10 + [0] * 10) == (pytest.approx(200 * 60 / 130), 10)  # 1.4 points more than without them
    assert chosen([1] * 9 + [0] * 10) == (pytest.approx(200 * 50 / 109), 0)  # 0.4 points less


def test_other_thresholds_of_the_same_weights_are_measured_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(systems, "load_model", lambda _: None)
    (tmp_path / "weights.safetensors").write_bytes(b"1")
    (tmp_path / "engine.toml").write_text("threshold = 0.1", encoding="utf-8")
    before = systems.find_system(str(tmp_path)).identity
    assert systems.find_system(str(tmp_path)).identity == before
    (tmp_path / "engine.toml").write_text("threshold = 0.2", encoding="utf-8")
    assert systems.find_system(str(tmp_path)).identity != before


def test_figures_are_drawn_as_svg(tmp_path):
    pytest.importorskip("matplotlib")
    from spanshot.research.experiments.plots import plot_growth, plot_reliability

    plot_growth([curve(0.5, 0.6, 0.7)], tmp_path / "growth.svg")
    plot_reliability({(1, "as returned"): Reliability.of(np.array([0.5]), np.array([1.0]))}, tmp_path / "scores.svg")
    assert all(
        (tmp_path / name).read_text(encoding="utf-8").count("<svg") == 1 for name in ("growth.svg", "scores.svg")
    )
