"""Draw simple SVG pictures: boxes, text and arrows on a light card.

The card is opaque, so pictures read the same in light and dark mode. Meaning never depends on colour alone: kept and
dropped items also differ in line style and weight, so pictures survive black-and-white printing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

INK, FADED, CARD, EDGE = "#1b1f24", "#6b7280", "#fdfdfb", "#c9ced6"
BLUE, GREEN, AMBER = "#dbe9ff", "#dcf3e2", "#fdeecb"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
TIP = (
    '<marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
    f'<path d="M0 0 L10 5 L0 10 z" fill="{INK}"/></marker>'
)
CHARACTER = 0.56  # mean width of a character, in font sizes; used to centre and fit text


@dataclass
class Picture:
    """An SVG picture under construction. Coordinates are pixels from the top left."""

    width: int
    height: int
    title: str
    parts: list[str] = field(default_factory=list)

    def text(
        self,
        x: float,
        y: float,
        words: str,
        size: float = 15,
        anchor: str = "start",
        bold: bool = False,
        faded: bool = False,
        colour: str = "",
    ) -> None:
        """Write one line of text with its baseline at `y`."""
        weight = ' font-weight="600"' if bold else ""
        colour = colour or (FADED if faded else INK)
        place = f'x="{x:g}" y="{y:g}" font-size="{size:g}" text-anchor="{anchor}"'
        self.parts.append(f'<text {place} fill="{colour}"{weight}>{escape(words)}</text>')

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str = CARD,
        *,
        dashed: bool = False,
        thick: bool = False,
    ) -> None:
        """Draw a rounded rectangle."""
        line = ' stroke-dasharray="5 4"' if dashed else ""
        colour, stroke = (FADED, 1.2) if dashed else (INK, 2.6 if thick else 1.2)
        self.parts.append(
            f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="7" fill="{fill}" stroke="{colour}" '
            f'stroke-width="{stroke:g}"{line}/>'
        )

    def labelled(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        lines: list[str],
        fill: str = CARD,
        *,
        heading: bool = True,
    ) -> None:
        """Draw a box with centred lines of text; the first line is a heading."""
        self.box(x, y, width, height, fill)
        top = y + height / 2 - (len(lines) - 1) * 10 + 5
        for number, line in enumerate(lines):
            bold = heading and number == 0
            self.text(x + width / 2, top + 20 * number, line, 15 if bold else 13.5, "middle", bold=bold)

    def arrow(self, x1: float, y1: float, x2: float, y2: float) -> None:
        """Draw an arrow from one point to another."""
        place = f'x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"'
        self.parts.append(f'<line {place} stroke="{INK}" stroke-width="1.6" marker-end="url(#tip)"/>')

    def line(self, x1: float, y1: float, x2: float, y2: float) -> None:
        """Draw a thin line."""
        self.parts.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{EDGE}" stroke-width="1.2"/>')

    def polyline(self, points: Sequence[tuple[float, float]], colour: str, dash: str = "") -> None:
        """Draw lines from point to point."""
        line = f' stroke-dasharray="{dash}"' if dash else ""
        self.parts.append(
            f'<polyline points="{_points(points)}" fill="none" stroke="{colour}" stroke-width="2.4"{line}/>'
        )

    def polygon(self, points: Sequence[tuple[float, float]], colour: str) -> None:
        """Fill the area between points with a light shade."""
        self.parts.append(f'<polygon points="{_points(points)}" fill="{colour}" fill-opacity="0.13"/>')

    def dot(self, x: float, y: float, colour: str) -> None:
        """Draw a dot."""
        self.parts.append(f'<circle cx="{x:g}" cy="{y:g}" r="4" fill="{colour}"/>')

    def svg(self) -> str:
        """Return the picture as an SVG document."""
        size = f'viewBox="0 0 {self.width} {self.height}" width="{self.width}" height="{self.height}"'
        card = f'<rect width="{self.width}" height="{self.height}" rx="12" fill="{CARD}" stroke="{EDGE}"/>'
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" font-family="{FONT}">',
            f"<title>{escape(self.title)}</title>",
            f"<defs>{TIP}</defs>",
            card,
            *self.parts,
            "</svg>",
        ]
        return "\n".join(lines) + "\n"


def _points(points: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def text_width(words: str, size: float = 15) -> float:
    """Estimate the width of a line of text."""
    return len(words) * size * CHARACTER
