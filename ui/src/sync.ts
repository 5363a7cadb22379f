// Keep the page in step with the server: the summary, the list of texts, and the rows that are near the view.
import { api, RequestError, type Done } from "./api";
import { sameSpan } from "./segments";
import { emit, state } from "./store";
import type { Row, Span, Summary } from "./types";

let visible: number[] = [];
let wanted = new Set<number>();
let fetching = false;
let pending = 0; // actions that the server has not confirmed yet
let queue: Promise<unknown> = Promise.resolve();

export const visibleIds = (): number[] => visible.slice(0, 60);

function problem(error: unknown): void {
  if (error instanceof DOMException && error.name === "AbortError") return;
  if (error instanceof RequestError) {
    if (error.status === 401) emit({ connection: "refused" });
    else notify(error.message, true);
  } else emit({ connection: "lost" });
}

let timer = 0;
export function notify(text: string, error = false): void {
  clearTimeout(timer);
  emit({ toast: { text, error }, said: text });
  timer = window.setTimeout(() => emit({ toast: null }), error ? 7000 : 2600);
}

export const tellAdded = (count: number): void => notify(`${count} ${count === 1 ? "text" : "texts"} added`);

function keep(rows: Row[]): void {
  for (const row of rows) {
    const known = state.rows.get(row.id);
    if (!known || known.revision <= row.revision) state.rows.set(row.id, row);
  }
  const row = state.rows.get(state.current);
  if (row && state.focus && !pending) {
    const { focus } = state;
    const isFocused = (span: Span): boolean => sameSpan(span, focus);
    if (row.marks.some(isFocused)) state.focus = { ...focus, kind: "mark" };
    else if (!row.suggested.some(isFocused)) {
      state.vanished = { row: row.id, start: focus.start };
      state.focus = null;
    }
  }
}

/** Load the rows that are shown, and others soon after. */
export function want(ids: number[], near: number[]): void {
  visible = near;
  for (const id of ids) if (!state.rows.has(id)) wanted.add(id);
  void fetchRows();
}

async function fetchRows(): Promise<void> {
  if (fetching || !wanted.size) return;
  fetching = true;
  const ids = [...wanted].slice(0, 200);
  for (const id of ids) wanted.delete(id); // changes that arrive meanwhile are fetched again
  try {
    keep(await api.rows(ids, visibleIds()));
    emit({ connection: "ok" });
  } catch (error) {
    wanted = new Set();
    problem(error);
  } finally {
    fetching = false;
  }
  if (wanted.size) void fetchRows();
}

function take(summary: Summary): void {
  const before = state.summary;
  const near = new Set(visible);
  for (const id of summary.changed) {
    if (near.has(id) || id === state.current) wanted.add(id);
    else state.rows.delete(id);
  }
  const isNews = !before || summary.revision >= before.revision;
  emit({ summary: isNews ? summary : before, connection: "ok" });
  void fetchRows();
  if (isNews && before && before.texts !== summary.texts) void reload();
}

/** Load the list of texts that the filter lets through. */
export async function reload(): Promise<void> {
  try {
    const { ids } = await api.list(state.filter);
    const current = ids.includes(state.current) ? state.current : (ids[0] ?? 0);
    emit({ ids, current, ...(current === state.current ? {} : { focus: null, selection: null }) });
  } catch (error) {
    problem(error);
  }
}

/** Send an action; its effect is shown when the server has saved it. Actions are sent one after the other. */
export function act(action: object): Promise<Done | null> {
  pending++;
  state.vanished = null;
  const sent = queue.then(() => send(action));
  queue = sent;
  return sent;
}

async function send(action: object): Promise<Done | null> {
  try {
    const done = await api.act(action, visibleIds()).finally(() => pending--);
    keep(done.rows);
    take(done.summary);
    if (done.message) notify(done.message);
    return done;
  } catch (error) {
    problem(error);
    if (state.connection === "lost") notify("Not saved: the server does not answer.", true);
    return null;
  }
}

export async function attempt<T>(work: Promise<T>): Promise<T | null> {
  try {
    return await work;
  } catch (error) {
    problem(error);
    return null;
  }
}

export async function start(): Promise<void> {
  let heard = 0; // replies to actions do not count: changes by others may lie before them
  for (;;) {
    try {
      const summary = heard ? await api.changes(heard) : await api.summary();
      take(summary);
      if (!heard) await reload();
      heard = summary.revision;
    } catch (error) {
      problem(error);
      if (state.connection === "refused") return;
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  }
}
