"""The spaCy component in real pipelines: entities, nesting, batches, saving and loading in another process."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

pytest.importorskip("spacy")

import spacy
from spacy.tokens import DocBin
from spacy.training import Example

import spanshot
from spanshot.errors import ConfigError, EpisodeError
from spanshot.integrations.spacy import SpanshotPipe
from spanshot.types import Entity, Reason
from stub_tagger import NameTagger

EXAMPLES = [
    "[Oslo](city) and [Ada](person) met today .",
    "they asked for [Mary Ann](person) in [New York](city)",
    "nobody knows why [Rome](city) came before [Carl Friedrich](person)",
]
TEXT = "They saw Ada in Oslo."


@pytest.fixture
def nlp():
    nlp = spacy.blank("en")
    nlp.add_pipe("spanshot", config={"examples": EXAMPLES})
    nlp.get_pipe("spanshot")._tagger = NameTagger()
    return nlp


def found(doc):
    return [(span.text, span.label_) for span in doc.ents]


def test_entities_spans_scores_and_evidence_are_on_the_doc(nlp):
    doc = nlp(TEXT)
    assert found(doc) == [("Ada", "person"), ("Oslo", "city")]
    assert [span.text for span in doc.spans["spanshot"]] == ["Ada", "Oslo"]
    assert doc.ents[0]._.score == doc.spans["spanshot"][0]._.score == pytest.approx(0.1)
    assert doc.ents[0]._.because == [{"text": "Ada", "example": "Ada !", "weight": 1.0}]
    assert doc[0:2]._.score is None


def test_nested_entities_are_spans_and_the_longest_are_entities(nlp):
    doc = nlp.make_doc("New York Times")
    nested = [
        Entity("New York Times", "paper", 0, 14, 0.5),
        Entity("New York", "city", 0, 8, 0.75),
        Entity("New York", "state", 0, 8, 0.25, (Reason("Ohio", "in Ohio", 1.0),)),
    ]
    nlp.get_pipe("spanshot").annotate(doc, nested)
    assert found(doc) == [("New York Times", "paper")]
    assert [(s.text, s.label_, s._.score) for s in doc.spans["spanshot"]] == [
        ("New York Times", "paper", 0.5),
        ("New York", "city", 0.75),
        ("New York", "state", 0.25),
    ]


def test_entities_set_by_earlier_components_stay(nlp):
    nlp.add_pipe("entity_ruler", before="spanshot").add_patterns([{"label": "GPE", "pattern": "Oslo"}])
    doc = nlp(TEXT)
    assert found(doc) == [("Ada", "person"), ("Oslo", "GPE")]
    assert [span.text for span in doc.spans["spanshot"]] == ["Ada", "Oslo"]


def test_a_stream_is_tagged_in_batches_and_in_order(nlp):
    texts = [f"{name} {number}" for number in range(50) for name in ("Ada", "Oslo")]
    docs = list(nlp.pipe(texts, batch_size=16))
    assert [doc.text for doc in docs] == texts
    assert [doc.ents[0].text for doc in docs] == [text.split()[0] for text in texts]


def test_without_settings_the_component_finds_what_the_tagger_finds():
    examples = ["[Steve Jobs](PER) founded [Apple](ORG) in 1976.", "[Ada Lovelace](PER) wrote to [IBM](ORG)."]
    text = "On Monday Bill Gates left Microsoft for a holiday with his old friends from school."
    pipeline = spacy.blank("en")
    pipeline.add_pipe("spanshot", config={"examples": examples})
    entities = [(entity["text"], entity["score"]) for entity in pipeline(text)._.spanshot]
    assert entities == [(entity.text, pytest.approx(entity.score)) for entity in spanshot.learn(examples)(text)]


def test_annotations_survive_a_docbin(nlp):
    stored = DocBin(docs=[nlp(TEXT)], store_user_data=True).to_bytes()
    [doc] = DocBin().from_bytes(stored).get_docs(nlp.vocab)
    assert found(doc) == [("Ada", "person"), ("Oslo", "city")]
    assert doc.ents[0]._.score == pytest.approx(0.1)


def test_a_component_without_examples_says_what_to_do():
    nlp = spacy.blank("en")
    nlp.add_pipe("spanshot")
    with pytest.raises(ConfigError, match="has no examples; set them in its config"):
        nlp(TEXT)


def annotated(nlp):
    doc = nlp.make_doc(TEXT)
    doc.ents = [doc.char_span(9, 12, "person"), doc.char_span(16, 20, "city")]
    return Example(nlp.make_doc(TEXT), doc)


def test_initialize_learns_from_annotated_docs(monkeypatch):
    nlp = spacy.blank("en")
    pipe = nlp.add_pipe("spanshot")
    learned = []
    monkeypatch.setattr(SpanshotPipe, "_learn", lambda self, examples: learned.extend(examples))
    nlp.initialize(lambda: [annotated(nlp)])
    [sentence] = learned
    assert [(span.start, span.end, span.label) for span in sentence.spans] == [(2, 3, "person"), (4, 5, "city")]
    with pytest.raises(EpisodeError, match="no entities and no spans"):
        pipe.initialize(lambda: [])


def test_a_saved_pipeline_gives_the_same_entities_in_another_process(model, tmp_path):
    nlp = spacy.blank("en")
    nlp.add_pipe("spanshot", config={"examples": EXAMPLES, "model": str(model)})
    doc = nlp(TEXT)
    wanted = [(span.text, span.label_) for span in doc.spans["spanshot"]]
    assert wanted
    nlp.to_disk(tmp_path / "pipeline")
    program = (
        "import spacy, sys, spanshot.integrations.spacy\n"
        "nlp = spacy.load(sys.argv[1])\n"
        "doc = nlp(sys.argv[2])\n"
        "print([(span.text, span.label_) for span in doc.spans['spanshot']])\n"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "pipeline"), TEXT]
    source = str(Path(spanshot.__file__).parents[1])
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": source})
    assert done.stdout.strip() == str(wanted), done.stderr

    again = spacy.blank("en")
    again.add_pipe("spanshot")
    again.from_bytes(nlp.to_bytes())
    doc = again(TEXT)
    assert [(span.text, span.label_) for span in doc.spans["spanshot"]] == wanted


def test_the_package_announces_the_component_to_spacy():
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    entry = project["project"]["entry-points"]["spacy_factories"]["spanshot"]
    assert entry == "spanshot.integrations.spacy:make_component"
