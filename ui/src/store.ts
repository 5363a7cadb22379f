// The state of the page. Components read `state` and are drawn again after `emit`.
import { useEffect, useState } from "preact/hooks";
import type { Bounds, Dialog, Filter, Focus, Row, Span, Summary } from "./types";

export interface Selection extends Bounds {
  /** The word where the selection began, for Shift and arrows. */
  anchor: number;
  head: number;
  /** Only a place for the keyboard so far. */
  isCursor: boolean;
}

export interface State {
  summary: Summary | null;
  ids: number[];
  rows: Map<number, Row>;
  filter: Filter;
  current: number;
  focus: Focus | null;
  /** Where the focused span was, if an update has removed it. */
  vanished: { row: number; start: number } | null;
  /** The revision of the current text when users last moved in it. */
  seen: { row: number; revision: number } | null;
  selection: Selection | null;
  /** A span that is being resized, and its new edges. */
  resizing: ({ span: Span } & Bounds) | null;
  /** Whether the focused span shows what can be done with it: after a click, not while keys are used. */
  popover: boolean;
  /** Text typed into the label picker. */
  typed: string | null;
  dialog: Dialog;
  toast: { text: string; error: boolean } | null;
  connection: "ok" | "lost" | "refused";
  openLabel: string;
  panel: boolean;
  theme: "auto" | "light" | "dark";
  /** Announced to screen readers. */
  said: string;
}

export const state: State = {
  summary: null,
  ids: [],
  rows: new Map(),
  filter: { status: "all", label: "", search: "" },
  current: 0,
  focus: null,
  vanished: null,
  seen: null,
  selection: null,
  resizing: null,
  popover: false,
  typed: null,
  dialog: null,
  toast: null,
  connection: "ok",
  openLabel: "",
  panel: false,
  theme: (localStorage.getItem("spanshot-theme") as State["theme"]) ?? "auto",
  said: "",
};

const listeners = new Set<() => void>();
let scheduled = false;

export function emit(change: Partial<State> = {}): void {
  Object.assign(state, change);
  if (scheduled) return;
  scheduled = true;
  queueMicrotask(() => {
    scheduled = false;
    for (const listener of listeners) listener();
  });
}

export function useStore(): State {
  const [, draw] = useState(0);
  useEffect(() => {
    const listener = (): void => draw((count) => count + 1);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return state;
}

/** The name of the project without the end of its file's name. */
export const projectName = (summary: Summary): string => summary.name.replace(".spanshot.jsonl", "");

export const currentRow = (): Row | undefined => state.rows.get(state.current);

export const colorOf = (label: string): number =>
  state.summary?.labels.find((known) => known.label === label)?.color ?? 0;
