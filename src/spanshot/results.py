"""The result of tagging a text: a list of entities that a notebook can show."""

from __future__ import annotations

from collections.abc import Iterable

from spanshot.types import Entity


class Entities(list[Entity]):
    """The entities of a text, by position. A notebook shows the text with its entities highlighted."""

    def __init__(self, entities: Iterable[Entity] = (), text: str = "") -> None:
        super().__init__(entities)
        self.text = text

    def _repr_html_(self) -> str:
        from spanshot.integrations.notebook import entities_html

        return entities_html(self.text, self)
