"""The SNIPS few-shot episodes of Hou et al. 2020: seven folds, each with another test domain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from spanshot.errors import ConfigError, DataError, SpanshotError, did_you_mean
from spanshot.formats.files import read_text
from spanshot.formats.json_values import Place, parse_json
from spanshot.research.corpora.json_files import tagged_sentence
from spanshot.types import Episode, Sentence, SupportSet

FOLDS = range(1, 8)
DOMAINS = ("We", "Mu", "Pl", "Bo", "Se", "Re", "Cr")  # test domains, fold by fold
SPLITS = ("train", "valid", "test")


def snips_file(folder: str | Path, fold: int, shots: int, split: str) -> Path:
    """The released file of one fold: in ``folder`` itself, or in the folder of that shot count below it."""
    if split not in SPLITS:
        raise ConfigError(f"split must be one of {', '.join(SPLITS)}; found {split!r}{did_you_mean(split, SPLITS)}")
    if fold not in FOLDS:
        raise ConfigError(f"SNIPS has the folds {FOLDS[0]} to {FOLDS[-1]}; found {fold}")
    if shots == 1:
        inner, name = "xval_snips", f"snips_{split}_{fold}.json"
    else:
        inner, name = f"xval_snips_shot_{shots}", f"snips-{split}-{fold}-shot-{shots}.json"
    folder = Path(folder)
    looked_for = [folder / inner / name, folder / name, folder / "snips" / inner / name]
    for path in looked_for:
        if path.is_file():
            return path
    raise DataError(
        f"no SNIPS file for fold {fold}, {shots}-shot, {split}; looked for {', '.join(map(str, looked_for))}"
    )


def read_snips_episodes(path: str | Path) -> list[Episode]:
    """Episodes of ``{domain: [{"support": {"seq_ins", "seq_outs"}, "query" or "batch": {...}}]}``, BIO tags.

    A query label that the support lacks is refused: the release has none (its supports hold every label of
    the domain), and to drop it silently would raise the scores.
    """
    path = Path(path)
    return snips_episodes(path, parse_json(path, read_text(path)))


def snips_episodes(path: Path, record: Any) -> list[Episode]:
    """Episodes of a parsed SNIPS file."""
    place = Place(path)
    if not isinstance(record, dict):
        raise place.error("expected an object of domains, each with a list of episodes")
    episodes = []
    for domain in record:
        for number, entry in enumerate(place.take(record, domain, list), start=1):
            inside = place.within(f"{domain}, episode {number}")
            query_key = "batch" if isinstance(entry, dict) and "query" not in entry and "batch" in entry else "query"
            support, query = (_sentences(entry, key, inside) for key in ("support", query_key))
            try:
                episodes.append(Episode(SupportSet.of(support), tuple(query), domain))
            except SpanshotError as error:
                raise inside.error(str(error)) from error
    if not episodes:
        raise place.error("holds no episode")
    return episodes


def _sentences(entry: Any, key: str, place: Place) -> list[Sentence]:
    part = place.take(entry, key, dict)
    place = place.within(key)
    words, tags = place.take(part, "seq_ins", list), place.take(part, "seq_outs", list)
    if len(words) != len(tags):
        raise place.error(f"{len(words)} sentences in 'seq_ins' but {len(tags)} in 'seq_outs'")
    return [
        tagged_sentence(*pair, "bio", place.within(f"sentence {number}"))
        for number, pair in enumerate(zip(words, tags, strict=True), start=1)
    ]
