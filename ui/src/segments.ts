// Cut a text into segments, each under the same spans, and give overlapping spans separate lines.
import type { Bounds, Row, Span } from "./types";

export type Kind = "mark" | "suggestion" | "selection" | "cursor";

export interface Layer extends Span {
  kind: Kind;
  color: number;
  score?: number;
  focused: boolean;
  lane: number;
}

export interface Segment extends Bounds {
  layers: Layer[];
  /** The layers that end here, shortest first: their tags follow the segment. */
  ending: Layer[];
}

/** The last word of a span, up to this length, stays on one line with the tag. */
export const LONGEST = 30;

/** Whether a layer is a span, not the selection or the cursor. */
export const isSpan = (layer: Layer): boolean => layer.kind === "mark" || layer.kind === "suggestion";

/** Give each span the lowest line that no overlapping span has; short spans are nearest to the text. */
export function setLanes(layers: Layer[]): void {
  const placed: Layer[] = [];
  const order = layers.filter(isSpan).sort((a, b) => a.end - a.start - (b.end - b.start) || a.start - b.start);
  for (const layer of order) {
    const taken = new Set(
      placed.filter((other) => other.start < layer.end && layer.start < other.end).map((other) => other.lane),
    );
    layer.lane = 0;
    while (taken.has(layer.lane)) layer.lane++;
    placed.push(layer);
  }
}

export function segmentsOf(text: string, layers: Layer[]): Segment[] {
  setLanes(layers);
  const edges = new Set([0, text.length]);
  for (const layer of layers) {
    edges.add(layer.start);
    edges.add(layer.end);
    const word = text.lastIndexOf(" ", layer.end - 1) + 1;
    if (isSpan(layer) && word > layer.start) edges.add(word);
  }
  const sorted = [...edges].sort((a, b) => a - b);
  const segments: Segment[] = [];
  for (let i = 0; i + 1 < sorted.length; i++) {
    const start = sorted[i]!;
    const end = sorted[i + 1]!;
    const covering = layers.filter((layer) => layer.start <= start && end <= layer.end);
    const ending = covering.filter((layer) => isSpan(layer) && layer.end === end).sort((a, b) => a.lane - b.lane);
    segments.push({ start, end, layers: covering, ending });
  }
  return segments;
}

/** Return the first and the last word that a range touches, by their positions; null if it touches none. */
export function wordsIn(row: Row, start: number, end: number): [number, number] | null {
  let first = -1;
  let last = -1;
  for (let word = 0; word * 2 < row.words.length; word++) {
    if (row.words[word * 2]! < end && start < row.words[word * 2 + 1]!) {
      if (first < 0) first = word;
      last = word;
    }
  }
  return first < 0 ? null : [first, last];
}

/** Widen a range to whole words; null if it touches none. */
export function snapped(row: Row, start: number, end: number): Bounds | null {
  const words = wordsIn(row, start, end);
  return words && { start: row.words[words[0] * 2]!, end: row.words[words[1] * 2 + 1]! };
}

/** Return the word at or nearest to an offset. */
export function wordAt(row: Row, offset: number): number {
  let best = 0;
  let distance = Infinity;
  for (let word = 0; word * 2 < row.words.length; word++) {
    const away = Math.max(row.words[word * 2]! - offset, offset - row.words[word * 2 + 1]!, 0);
    if (away < distance) {
      best = word;
      distance = away;
    }
  }
  return best;
}

export const sameSpan = (a: Span, b: Span): boolean =>
  a.start === b.start && a.end === b.end && a.label === b.label;
