"""Files as they were written once: a change of format shows here before users meet it."""

from pathlib import Path

from spanshot.formats.columns import read_columns, write_columns
from spanshot.research.corpora.episode_files import read_episodes, write_episodes
from spanshot.types import Sentence, Span

HERE = Path(__file__).parent


def test_a_column_file_is_rewritten_byte_for_byte(tmp_path):
    sentences = read_columns(HERE / "columns.txt")
    assert sentences[2] == Sentence(("Oslo", "Bergen", "ferry"), (Span(0, 1, "place"), Span(1, 2, "place")))
    write_columns(tmp_path / "again.txt", sentences)
    assert (tmp_path / "again.txt").read_bytes() == (HERE / "columns.txt").read_bytes()


def test_an_episode_file_is_rewritten_byte_for_byte(tmp_path):
    episodes = read_episodes(HERE / "episodes.jsonl")
    assert [episode.domain for episode in episodes] == ["", "travel", "biology"]
    assert episodes[0].support.labels == ("place", "day")
    assert episodes[1].support.sentences[0].spans == (Span(0, 1, "place"), Span(1, 2, "place"))
    assert episodes[2].query[0].spans == (Span(1, 3, "protein"), Span(1, 4, "gene"))
    write_episodes(tmp_path / "again.jsonl", episodes)
    assert (tmp_path / "again.jsonl").read_bytes() == (HERE / "episodes.jsonl").read_bytes()
