"""The comparison of heads on the same vectors, with vectors that separate labels perfectly, and filling of pages."""

import numpy as np
import pytest

from spanshot.errors import DataError
from spanshot.heads.linear import Prior
from spanshot.heads.settings import HeadSettings
from spanshot.research.corpora.episode_files import write_episodes
from spanshot.research.experiments import heads
from spanshot.research.experiments.pages import fill_page
from spanshot.research.experiments.user_like import episode_files
from spanshot.types import Episode, Sentence, Span, SupportSet

WORDS = {"Rome": 0, "Oslo": 0, "Friday": 1, "Monday": 1}


class Source:
    """Vectors that say the label of single words, and nothing of other spans."""

    def prior(self, names):
        return Prior(np.zeros((len(names), 4), np.float32), np.full(len(names), -2, np.float32), (False,) * len(names))

    def span_vectors(self, sentences, bounds):
        return [
            np.stack([np.eye(4, dtype=np.float32)[self.kind(sentence.words[a:b])] for a, b in own])
            for sentence, own in zip(sentences, bounds, strict=True)
        ]

    def kind(self, words):
        return WORDS.get(words[0], 2) if len(words) == 1 else 3

    def head_settings(self):
        return HeadSettings()


def sentence(text, *spans):
    return Sentence(tuple(text.split()), tuple(Span(*span) for span in spans))


@pytest.fixture
def files(tmp_path):
    support = SupportSet(("city", "day"), (sentence("to Rome on Friday", (1, 2, "city"), (3, 4, "day")),))
    query = (sentence("on Monday to Oslo", (1, 2, "day"), (3, 4, "city")), sentence("nothing here"))
    for shots in (1, 5):
        write_episodes(tmp_path / f"travel_{shots}.jsonl", [Episode(support, query)])
    return episode_files(tmp_path)


def test_every_head_solves_a_task_whose_vectors_separate_the_labels(files):
    source = Source()
    compared = heads.heads(source.head_settings()) | heads.ridge_grid()
    results = heads.measure(source, files, compared, 0, lambda _: None)
    assert {name: heads.best_figures(own) for name, own in results.items()} == {
        name: {1: 100, 5: 100} for name in compared
    }


def test_of_the_ridge_settings_only_the_best_is_shown(files):
    grid = dict(list(heads.ridge_grid().items())[:4])
    table = heads.tables(heads.measure(Source(), files, grid, 0, lambda _: None))
    assert table.count("| ridge, penalty") == 1


def test_overlapping_spans_are_decoded_best_first():
    bounds = np.array([[0, 1], [0, 2], [2, 3]])
    decoded = list(heads.decode(np.array([[0.1, 0.5], [0.9, 0.2], [0.0, 0.3]], np.float32), bounds))
    assert [(start, end, label) for _, start, end, label in decoded] == [(0, 2, 0), (2, 3, 1)]


def test_a_page_takes_the_table_of_its_name_and_keeps_the_rest(tmp_path):
    (tmp_path / "growth.txt").write_text("| new |\n", encoding="utf-8")
    page = "before\n<!-- table: growth -->\n| old |\n<!-- end of table -->\nafter\n"
    filled = fill_page(page, tmp_path)
    assert filled == "before\n<!-- table: growth -->\n\n| new |\n\n<!-- end of table -->\nafter\n"
    assert fill_page(filled, tmp_path) == filled
    assert fill_page(page.replace("growth", "other"), tmp_path) == page.replace("growth", "other")


def test_a_table_without_an_end_is_an_error(tmp_path):
    with pytest.raises(DataError, match="has no"):
        fill_page("<!-- table: growth -->\n", tmp_path)
