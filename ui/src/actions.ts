// What users do: each function is one key or one click.
import { api } from "./api";
import { offsetsOf } from "./offsets";
import { sameSpan, wordsIn } from "./segments";
import { currentRow, emit, state, type Selection } from "./store";
import { act, attempt, notify, reload } from "./sync";
import type { Filter, Focus, Bounds, Row, Span } from "./types";

/** Characters of a row as the server counts them. */
function place(row: Row, range: Bounds): { text: number } & Bounds {
  const { points } = offsetsOf(row.text);
  return { text: row.id, start: points(range.start), end: points(range.end) };
}

const say = (text: string): void => emit({ said: text });
const wordsOf = (row: Row, range: Bounds): string => row.text.slice(range.start, range.end);

/** Record what users have seen of the current text, so that `step` notices later changes. */
function look(): void {
  state.seen = { row: state.current, revision: currentRow()?.revision ?? 0 };
}

export function spansOf(row: Row): Focus[] {
  const all: Focus[] = [
    ...row.marks.map((mark) => ({ ...mark, kind: "mark" as const })),
    ...row.suggested.map((suggestion) => ({ ...suggestion, kind: "suggestion" as const })),
  ];
  return all.sort((a, b) => a.start - b.start || a.end - b.end);
}

/** On narrow screens the popover lies at the bottom: keep the text above it. */
function keepInView(): void {
  if (matchMedia("(max-width: 760px)").matches)
    window.dispatchEvent(new CustomEvent("spanshot-scroll", { detail: state.current }));
}

export function focusOn(focus: Focus | null, popover = false): void {
  emit({ focus, vanished: null, selection: null, typed: null, popover });
  look();
  keepInView();
  const row = currentRow();
  if (focus && row) {
    const what = focus.kind === "mark" ? "marked as" : "suggested as";
    say(`${wordsOf(row, focus)}, ${what} ${focus.label}`);
  }
}

/** Make a text the current one and focus its first suggestion. */
export function goTo(id: number, scroll = true): void {
  if (!id) return;
  const row = state.rows.get(id);
  const first = row?.suggested[0];
  emit({
    current: id,
    selection: null,
    typed: null,
    popover: false,
    focus: first ? { ...first, kind: "suggestion" } : null,
    vanished: null,
  });
  look();
  if (row) say(`Text ${id}: ${row.text}. ${row.suggested.length} suggestions, ${row.marks.length} marks.`);
  if (scroll) window.dispatchEvent(new CustomEvent("spanshot-scroll", { detail: id }));
}

export function move(by: number): void {
  const at = state.ids.indexOf(state.current);
  const id = state.ids[Math.min(Math.max(at + by, 0), state.ids.length - 1)];
  if (id && id !== state.current) goTo(id);
}

export async function goToNext(): Promise<void> {
  const next = await attempt(api.next(state.current));
  if (!next) return;
  if (next.id === null) notify("All texts are reviewed.");
  else await jumpTo(next.id);
}

/**
 * Focus the next or the previous span of the current text. Return false at its end: then the key moves on to the
 * buttons of the page. If the spans have changed since users last saw them, they meant one that is gone: stay here.
 */
export function step(by: 1 | -1): boolean {
  const row = currentRow();
  if (!row) return false;
  const { focus, selection, seen } = state;
  const vanished = state.vanished?.row === row.id ? state.vanished : null;
  const from = focus ?? selection ?? vanished;
  const all = spansOf(row);
  const at = focus ? all.findIndex((span) => sameSpan(span, focus)) : -1;
  const behind = from ? all.filter((span) => span.start < from.start).length : by > 0 ? 0 : all.length;
  const target = all[at >= 0 ? at + by : by > 0 ? behind : behind - 1];
  if (target) {
    focusOn(target);
    return true;
  }
  const isSaving = focus !== null && at < 0;
  const hasChanged = vanished !== null || isSaving || (seen?.row === row.id && seen.revision !== row.revision);
  emit({ vanished: null });
  look();
  if (hasChanged) say("No further span in this text");
  return hasChanged;
}

export function select(selection: Selection | null): void {
  emit({ selection, focus: null, vanished: null, typed: null });
  look();
  keepInView();
  const row = currentRow();
  if (selection && row) say(`${wordsOf(row, selection)} selected`);
}

export function selectWords(row: Row, anchor: number, head: number, isCursor: boolean): void {
  const last = row.words.length / 2 - 1;
  const [from, to] = [Math.max(0, Math.min(anchor, last)), Math.max(0, Math.min(head, last))];
  const [low, high] = from < to ? [from, to] : [to, from];
  select({ start: row.words[low * 2]!, end: row.words[high * 2 + 1]!, anchor: from, head: to, isCursor });
}

/** Move the word cursor, or extend the selection. */
export function moveCursor(by: number, extend: boolean): void {
  const row = currentRow();
  if (!row || !row.words.length) return;
  const { selection, focus } = state;
  if (!selection) {
    const words = focus && wordsIn(row, focus.start, focus.end);
    const from = words ? (by > 0 ? words[1] + 1 : words[0] - 1) : by > 0 ? 0 : row.words.length / 2 - 1;
    selectWords(row, from, from, !extend);
  } else if (extend) selectWords(row, selection.anchor, selection.head + by, false);
  else selectWords(row, selection.head + by, selection.head + by, true);
}

/** Focus a suggestion after the current place, so that decisions follow one another. */
function focusNext(row: Row, after: number): void {
  const next = row.suggested.find((suggestion) => suggestion.start >= after) ?? row.suggested[0];
  emit({ focus: next ? { ...next, kind: "suggestion" } : null });
}

export async function mark(label: string, all = false): Promise<void> {
  const row = currentRow();
  const { selection, focus } = state;
  const target = selection ?? focus;
  if (!row || !target || !label) return;
  const kind = all ? "mark-all" : "mark";
  if (focus && !selection && focus.kind === "mark" && focus.label !== label) {
    if (await act({ do: "relabel", ...place(row, focus), label: focus.label, new: label })) {
      emit({ focus: { ...focus, label } });
    }
    if (!all) return;
  }
  emit({ selection: null, typed: null, popover: false, focus: { start: target.start, end: target.end, label, kind: "mark" } });
  if (await act({ do: kind, ...place(row, target), label })) say(`${wordsOf(row, target)} marked as ${label}`);
  const after = currentRow();
  if (focus?.kind === "suggestion" && !selection && after?.id === row.id) focusNext(after, focus.end);
}

export async function markAll(): Promise<void> {
  if (state.focus) await mark(state.focus.label, true);
}

export async function accept(): Promise<void> {
  const row = currentRow();
  const { focus } = state;
  if (!row || focus?.kind !== "suggestion") return;
  await act({ do: "mark", ...place(row, focus), label: focus.label });
  say(`Accepted ${wordsOf(row, focus)} as ${focus.label}`);
  const after = currentRow();
  if (after?.id === row.id) focusNext(after, focus.end);
}

/** Reject a suggestion, or delete a mark. */
export async function reject(): Promise<void> {
  const row = currentRow();
  const { focus } = state;
  if (!row || !focus) return;
  emit({ focus: null });
  const [kind, done] = focus.kind === "mark" ? ["unmark", "Deleted"] : ["reject", "Rejected"];
  await act({ do: kind, ...place(row, focus), label: focus.label });
  say(`${done} ${wordsOf(row, focus)}`);
  const after = currentRow();
  if (after?.id === row.id && focus.kind === "suggestion") focusNext(after, focus.end);
}

export async function remove(row: Row, mark: Span): Promise<void> {
  emit({ current: row.id, focus: null, selection: null });
  await act({ do: "unmark", ...place(row, mark), label: mark.label });
}

/** Accept or reject all suggestions of the current text, mark it as reviewed, and go on. */
export async function finish(answer: "accept" | "reject"): Promise<void> {
  const row = currentRow();
  if (!row) return;
  const spans = row.suggested.map((suggestion) => {
    const { start, end } = place(row, suggestion);
    return { start, end, label: suggestion.label };
  });
  if (await act({ do: "review", text: row.id, [answer]: spans })) {
    say(`Text ${row.id} reviewed, ${spans.length} suggestions ${answer}ed`);
    if (state.current === row.id) move(1);
  }
}

export async function toggleReviewed(row: Row): Promise<void> {
  await act(row.reviewed ? { do: "reopen", text: row.id } : { do: "review", text: row.id });
}

export async function resize(mark: Span, start: number, end: number): Promise<void> {
  const row = currentRow();
  emit({ resizing: null });
  if (!row || (mark.start === start && mark.end === end) || start >= end) return;
  const moved = place(row, { start, end });
  emit({ focus: { start, end, label: mark.label, kind: "mark" } });
  await act({ do: "resize", ...place(row, mark), label: mark.label, new_start: moved.start, new_end: moved.end });
}

/** Move an edge of the focused span by one word. A suggestion is accepted with its new edges. */
export async function resizeBy(edge: "start" | "end", by: number): Promise<void> {
  const row = currentRow();
  const { focus } = state;
  const words = row && focus && wordsIn(row, focus.start, focus.end);
  if (!words) return;
  let [first, last] = words;
  if (edge === "start") first = Math.max(0, Math.min(first + by, last));
  else last = Math.min(row.words.length / 2 - 1, Math.max(last + by, first));
  const [start, end] = [row.words[first * 2]!, row.words[last * 2 + 1]!];
  if (focus.kind === "mark") await resize(focus, start, end);
  else if (start !== focus.start || end !== focus.end) {
    emit({ focus: { start, end, label: focus.label, kind: "mark" } });
    await act({ do: "mark", ...place(row, { start, end }), label: focus.label });
  }
}

export const undo = (): Promise<unknown> => act({ do: "undo" });
export const redo = (): Promise<unknown> => act({ do: "redo" });

export async function setFilter(change: Partial<Filter>): Promise<void> {
  emit({ filter: { ...state.filter, ...change } });
  await reload();
  const row = currentRow();
  if (row) goTo(row.id);
}

export async function jumpTo(id: number): Promise<void> {
  if (!state.ids.includes(id)) await setFilter({ status: "all", label: "", search: "" });
  goTo(id);
}

export function setTheme(theme: typeof state.theme): void {
  localStorage.setItem("spanshot-theme", theme);
  emit({ theme });
}
