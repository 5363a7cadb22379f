"""The bodies of requests and answers."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from spanshot.service.store import NAME
from spanshot.types import Entity, Reason


def _unicode(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("must be valid Unicode; found half of a surrogate pair") from None
    return text


Text = Annotated[str, AfterValidator(_unicode)]
TaggerName = Annotated[str, Field(pattern=NAME, description="Lower-case letters, digits, - and _.", examples=["news"])]
NamePath = Annotated[str, Path(pattern=NAME, description="The name of a tagger.", examples=["news"])]
Share = Annotated[float, Field(ge=0, le=1)]
Position = Annotated[int, Field(ge=0, lt=2**31)]
VersionNumber = Annotated[int, Field(ge=1, lt=10**9)]


class Closed(BaseModel):
    """A body without unknown fields, whose values are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True)


class SpanIn(Closed):
    """A labelled span of a text."""

    start: Position = Field(description="First character, counted in Unicode code points.")
    end: Position = Field(description="One past the last character.")
    label: Text


class ExampleIn(Closed):
    """A text in which every span of the labels is marked."""

    text: Text
    entities: list[SpanIn]
    rejected: list[SpanIn] = Field(default=[], description="Spans that do not have the label.")
    annotated: list[Text] | None = Field(default=None, description="The labels that were looked for, if not all.")


Examples = Annotated[
    list[Text | ExampleIn],
    Field(
        description="Inline markup, such as `[Oslo](city) is cold.`, or records of text and spans.",
        examples=[["[Oslo](city) is cold.", "We met in [Rome](city)."]],
    ),
]
Labels = Annotated[
    list[Text] | dict[Text, Text],
    Field(description="Labels to find by name until they have examples, or descriptions of labels."),
]


class NewTagger(Closed):
    """A tagger to be learned."""

    name: TaggerName
    examples: Examples = []
    labels: Labels = []
    nested: bool = Field(default=False, description="Find entities within entities.")
    threshold: Share | dict[Text, Share] | None = Field(default=None, description="Lowest score; one for each label.")
    precision: Annotated[float, Field(gt=0, lt=1)] | None = Field(
        default=None, description="Choose thresholds such that about this share of the entities is right."
    )


class MoreExamples(Closed):
    """Examples to be added to a tagger."""

    examples: Examples = []
    labels: Labels = []


class Restore(Closed):
    """A version to return to."""

    version: VersionNumber


class OneText(Closed):
    """A text to be tagged."""

    text: Text = Field(examples=["Is Bergen rainy?"])
    version: VersionNumber | None = Field(default=None, description="Use this version of the tagger.")


class ManyTexts(Closed):
    """Texts to be tagged."""

    texts: list[Text]
    version: VersionNumber | None = Field(default=None, description="Use this version of the tagger.")


class EntityOut(BaseModel):
    """An entity: the characters `start` up to but not including `end`, in Unicode code points."""

    start: int
    end: int
    label: str
    text: str
    score: float

    @classmethod
    def of(cls, entity: Entity) -> EntityOut:
        """Return an entity as it is sent."""
        return cls.model_construct(
            start=entity.start, end=entity.end, label=entity.label, text=entity.text, score=entity.score
        )


class ReasonOut(BaseModel):
    """A part of the reason for a decision."""

    kind: str = Field(description="example, rejected, name, text or rest.")
    text: str
    example: str
    weight: float = Field(description="What it adds to the score before calibration.")

    @classmethod
    def of(cls, reason: Reason) -> ReasonOut:
        """Return a reason as it is sent."""
        return cls(kind=reason.kind, text=reason.text, example=reason.example, weight=reason.weight)


class ExplainedEntity(EntityOut):
    """An entity and the reasons for it."""

    because: list[ReasonOut]

    @classmethod
    def of(cls, entity: Entity) -> ExplainedEntity:
        """Return an entity as it is sent, with its reasons."""
        return cls(
            start=entity.start,
            end=entity.end,
            label=entity.label,
            text=entity.text,
            score=entity.score,
            because=[ReasonOut.of(reason) for reason in entity.because],
        )


class Tagged(BaseModel):
    """The entities of a text, and the version of the tagger that found them."""

    version: int
    entities: list[EntityOut]


class TaggedMany(BaseModel):
    """The entities of each text."""

    version: int
    results: list[list[EntityOut]]


class Explained(BaseModel):
    """The entities of a text with the reasons for them."""

    version: int
    entities: list[ExplainedEntity]


class TaggerOut(BaseModel):
    """A tagger."""

    name: str
    version: int
    created: str = Field(description="When this version was saved, in UTC.")
    labels: dict[str, str] = Field(description="The labels and their descriptions, if they have one.")
    examples: int = Field(description="Number of examples.")
    nested: bool
    threshold: float | dict[str, float] | None
    precision: float | None


class ChangedTagger(TaggerOut):
    """A tagger that was created or changed."""

    warnings: list[str] = Field(description="What could not be used, and labels to look after.")


class TaggerList(BaseModel):
    """Taggers by name."""

    taggers: list[TaggerOut]
    next: str | None = Field(description="Give this as `after` to get more.")


class VersionList(BaseModel):
    """The versions of a tagger that are kept."""

    versions: list[int]


class ExampleOut(BaseModel):
    """An example of a tagger."""

    id: str
    text: str
    entities: list[dict[str, int | str]]
    rejected: list[dict[str, int | str]]
    annotated: list[str] | None


class ExampleList(BaseModel):
    """The examples of a tagger."""

    version: int
    examples: list[ExampleOut]


class Status(BaseModel):
    """The state of the service."""

    status: str


class ErrorOut(BaseModel):
    """An error."""

    error: str = Field(description="A code for programs.")
    message: str = Field(description="What is wrong and what to do.")
