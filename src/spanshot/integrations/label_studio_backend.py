"""What an ML backend of Label Studio exchanges with it: labelling configurations, predictions and annotations."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from spanshot.errors import DataError
from spanshot.formats.char_spans import MarkedText, sentences_of
from spanshot.formats.json_values import JsonObject, JsonValue, Place
from spanshot.formats.label_studio import read_label_studio
from spanshot.types import Entity, Sentence

_TAGS = {"Labels": "labels", "HyperTextLabels": "hypertextlabels"}
"""The tags that label spans of text, and the type of their results."""
_TEXTS = {"Text", "HyperText"}
_LONGEST = 100_000
_FIELD = re.compile(r"\$([A-Za-z0-9_.-]+)")
_DECLARATION = re.compile(r"<!\s*(DOCTYPE|ENTITY)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class LabelConfig:
    """The part of a labelling configuration that labels spans of a text."""

    from_name: str
    """The name of the tag with the labels."""
    to_name: str
    """The name of the tag with the text."""
    type: str
    field: str
    """The field of a task that holds the text."""
    labels: Mapping[str, str]
    """The labels, with their descriptions (the attribute ``hint``) or an empty string."""

    @classmethod
    def parse(cls, text: str) -> LabelConfig:
        """Read a labelling configuration: the first tag with labels for a text.

        >>> config = LabelConfig.parse('<View><Labels name="l" toName="t"><Label value="city"/></Labels>'
        ...                            '<Text name="t" value="$body"/></View>')
        >>> config.field, dict(config.labels)
        ('body', {'city': ''})
        """
        if len(text) > _LONGEST or _DECLARATION.search(text):
            raise DataError("the labelling configuration is too long, or declares entities")
        try:
            root = ElementTree.fromstring(text)
        except (ElementTree.ParseError, ValueError) as problem:
            raise DataError(f"the labelling configuration is not XML: {str(problem)[:100]}") from None
        texts = {tag.get("name", ""): tag for tag in root.iter() if tag.tag in _TEXTS}
        for tag in root.iter():
            target = texts.get(tag.get("toName", ""))
            if tag.tag not in _TAGS or target is None:
                continue
            labels = {child.get("value", "").strip(): child.get("hint", "").strip() for child in tag.iter("Label")}
            labels.pop("", None)
            field = _FIELD.fullmatch(target.get("value", "").strip())
            if labels and field:
                return cls(tag.get("name", ""), target.get("name", ""), _TAGS[str(tag.tag)], field[1], labels)
        raise DataError('the labelling configuration has no <Labels> for a <Text value="$...">')

    def text_of(self, task: Mapping[str, JsonValue]) -> str:
        """Return the text in the fields of a task; empty if it has none."""
        text = task.get(self.field)
        return text if isinstance(text, str) else ""


def prediction(entities: Sequence[Entity], config: LabelConfig, version: str) -> JsonObject:
    """Return entities as a prediction; its score is that of the least certain one, to annotate such tasks first."""
    regions: list[JsonValue] = [
        {
            "id": f"span{number}",
            "from_name": config.from_name,
            "to_name": config.to_name,
            "type": config.type,
            "score": entity.score,
            "value": {"start": entity.start, "end": entity.end, "text": entity.text, config.type: [entity.label]},
        }
        for number, entity in enumerate(entities, start=1)
        if entity.label in config.labels
    ]
    score = min((entity.score for entity in entities), default=1.0)
    return {"model_version": version, "score": score, "result": regions}


def example_of(task: Mapping[str, JsonValue], annotation: JsonObject, config: LabelConfig) -> Sentence | None:
    """Return an annotation as an example; None if it was skipped or has no text.

    An annotation without any span is an example, too: it shows what has no label.
    """
    text = config.text_of(task)
    if annotation.get("was_cancelled") or not text.strip():
        return None
    regions = annotation.get("result")
    labelled: list[JsonValue] = [
        region
        for region in (regions if isinstance(regions, list) else [])
        if isinstance(region, dict) and region.get("from_name") == config.from_name
    ]
    record: JsonObject = {"data": {"text": text}, "annotations": [{"result": labelled}]}
    for marked in read_label_studio([(Place("annotation"), record)]):
        if isinstance(marked, MarkedText):
            sentences, _ = sentences_of(marked)
            return sentences[0] if sentences else None
    return None
