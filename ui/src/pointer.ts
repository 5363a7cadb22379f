// The mouse and touch: where in a text a selection, a click or a drag is.
import * as actions from "./actions";
import { snapped, wordAt, wordsIn } from "./segments";
import { emit, state } from "./store";
import type { Row, Span } from "./types";

/** Return the offset in a row's text of a place in the document; null if it is not in that text. */
function offsetOf(node: Node, offset: number, text: HTMLElement): number | null {
  if (!text.contains(node)) return null;
  const element = node instanceof HTMLElement ? node : node.parentElement;
  const segment = element?.closest<HTMLElement>("[data-start]");
  if (segment && node.nodeType === Node.TEXT_NODE) return Number(segment.dataset["start"]) + offset;
  if (segment) return offset ? Number(segment.dataset["end"]) : Number(segment.dataset["start"]);
  // Between segments, or in a tag: the end of the segment before.
  const all = [...text.querySelectorAll<HTMLElement>("[data-start]")];
  const place = element === text ? text.childNodes[offset] : element;
  let end = 0;
  for (const before of all) {
    if (place && !(before.compareDocumentPosition(place) & Node.DOCUMENT_POSITION_FOLLOWING)) break;
    end = Number(before.dataset["end"]);
  }
  return end;
}

function offsetAt(x: number, y: number, text: HTMLElement): number | null {
  const old = document as Document & { caretRangeFromPoint?(x: number, y: number): Range | null };
  if (document.caretPositionFromPoint) {
    const place = document.caretPositionFromPoint(x, y);
    return place && offsetOf(place.offsetNode, place.offset, text);
  }
  const range = old.caretRangeFromPoint?.(x, y);
  return range ? offsetOf(range.startContainer, range.startOffset, text) : null;
}

/** Take the browser's selection, or the word that was clicked. */
export function release(event: PointerEvent | MouseEvent, row: Row, text: HTMLElement): void {
  const native = getSelection();
  if (native && !native.isCollapsed && native.rangeCount) {
    const range = native.getRangeAt(0);
    const inside = text.contains(range.startContainer) || text.contains(range.endContainer);
    const start = offsetOf(range.startContainer, range.startOffset, text) ?? (inside ? 0 : null);
    const end = offsetOf(range.endContainer, range.endOffset, text) ?? (inside ? row.text.length : null);
    native.removeAllRanges();
    if (start === null || end === null || start >= end) return;
    const words = wordsIn(row, start, end);
    if (!words) return;
    const wide = event.altKey ? { start, end } : snapped(row, start, end)!;
    actions.select({ ...wide, anchor: words[0], head: words[1], isCursor: false });
    return;
  }
  const at = offsetAt(event.clientX, event.clientY, text);
  if (at === null || !row.words.length) return;
  const word = wordAt(row, at);
  if (at < row.words[word * 2]! - 1 || at > row.words[word * 2 + 1]! + 1) return;
  const from = event.shiftKey && state.selection ? state.selection.anchor : word;
  actions.selectWords(row, from, word, false);
}

/** Drag an edge of a span, word by word. */
export function dragEdge(event: PointerEvent, row: Row, span: Span, edge: "start" | "end"): void {
  event.preventDefault();
  event.stopPropagation();
  const text = (event.target as HTMLElement).closest<HTMLElement>(".text");
  if (!text) return;
  const follow = (moved: PointerEvent): void => {
    const at = offsetAt(moved.clientX, moved.clientY, text);
    if (at === null) return;
    const word = wordAt(row, at);
    const place = edge === "start" ? row.words[word * 2]! : row.words[word * 2 + 1]!;
    const start = edge === "start" ? place : span.start;
    const end = edge === "end" ? place : span.end;
    if (start < end) emit({ resizing: { span, start, end } });
  };
  const stop = (): void => {
    window.removeEventListener("pointermove", follow);
    window.removeEventListener("pointerup", stop);
    window.removeEventListener("pointercancel", stop);
    const { resizing } = state;
    if (resizing) void actions.resize(span, resizing.start, resizing.end);
  };
  window.addEventListener("pointermove", follow);
  window.addEventListener("pointerup", stop);
  window.addEventListener("pointercancel", stop);
}
