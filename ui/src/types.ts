/** Characters of a text, up to but not including `end`. */
export interface Bounds {
  start: number;
  end: number;
}

export interface Span extends Bounds {
  label: string;
}

export interface Suggestion extends Span {
  score: number;
}

/** A text with its annotation. All offsets are UTF-16 units. */
export interface Row {
  id: number;
  revision: number;
  text: string;
  source: string;
  /** Start and end of each word in turn. */
  words: number[];
  marks: Span[];
  rejected: Span[];
  suggested: Suggestion[];
  reviewed: boolean;
}

export interface Label {
  label: string;
  name: string;
  color: number;
  marks: number;
  rejected: number;
  suggested: number;
  threshold: number | null;
  default: number | null;
  precision: number | null;
  recall: number | null;
  tested: number;
  confusions: { label: string; count: number }[];
}

export interface Status {
  state: "loading" | "learning" | "reading" | "ready" | "waiting";
  done: number;
  total: number;
  error: string;
  finetuning: { done: number; total: number; message: string } | null;
  finetuned: boolean;
  current: boolean;
}

export interface Summary {
  revision: number;
  changed: number[];
  name: string;
  path: string;
  texts: number;
  reviewed: number;
  with_suggestions: number;
  labels: Label[];
  nested: boolean;
  undo: string | null;
  redo: string | null;
  actions: number;
  status: Status;
}

export interface Reason {
  kind: "example" | "rejected" | "name" | "text" | "rest";
  weight: number;
  text?: number;
  start?: number;
  end?: number;
  label?: string;
  words?: string;
  example?: string;
}

export type StatusFilter = "all" | "suggestions" | "unreviewed" | "reviewed";

export interface Filter {
  status: StatusFilter;
  label: string;
  search: string;
}

/** A span of the current text that keys act on. */
export interface Focus extends Span {
  kind: "mark" | "suggestion";
  score?: number;
}

export type Dialog = "help" | "export" | "add" | null;
