// Requests to the server that served this page. The token comes from the address and is sent in a header.
import { offsetsOf } from "./offsets";
import type { Bounds, Reason, Row, Span, Summary } from "./types";

const KEY = "spanshot-token";

function readToken(): string {
  const inAddress = new URLSearchParams(location.hash.slice(1)).get("token");
  if (inAddress) sessionStorage.setItem(KEY, inAddress);
  return inAddress || (sessionStorage.getItem(KEY) ?? "");
}

const token = readToken();

export class RequestError extends Error {
  constructor(
    message: string,
    readonly status: number,
  ) {
    super(message);
  }
}

async function request(path: string, body?: BodyInit): Promise<Response> {
  const response = await fetch(path, {
    method: body === undefined ? "GET" : "POST",
    headers: { "X-Spanshot-Token": token },
    body,
  });
  if (!response.ok) {
    const text = await response.text();
    let message = text || response.statusText;
    try {
      message = JSON.parse(text).error ?? message;
    } catch {
      // plain text
    }
    throw new RequestError(message, response.status);
  }
  return response;
}

async function json<T>(path: string, body?: object): Promise<T> {
  const response = await request(path, body === undefined ? undefined : JSON.stringify(body));
  return (await response.json()) as T;
}

/** Add texts: those in the body, or what the parameters name. */
async function add(body: BodyInit, parameters: Record<string, string> = {}): Promise<{ added: number }> {
  const response = await request(`/api/texts?${new URLSearchParams(parameters)}`, body);
  return (await response.json()) as { added: number };
}

/** Convert the offsets of a row from code points. */
function converted(row: Row): Row {
  const { units } = offsetsOf(row.text);
  const inUnits = <S extends Bounds>(span: S): S => ({ ...span, start: units(span.start), end: units(span.end) });
  return {
    ...row,
    words: row.words.map(units),
    marks: row.marks.map(inUnits),
    rejected: row.rejected.map(inUnits),
    suggested: row.suggested.map(inUnits),
  };
}

export interface Done {
  message: string;
  summary: Summary;
  rows: Row[];
}

export const api = {
  summary: () => json<Summary>("/api/summary"),
  changes: (since: number) => json<Summary>(`/api/changes?since=${since}`),
  list: (filter: object) =>
    json<{ ids: number[] }>(`/api/list?${new URLSearchParams(filter as Record<string, string>)}`),
  rows: async (ids: number[], visible: number[]) =>
    (await json<{ rows: Row[] }>("/api/rows", { ids, visible })).rows.map(converted),
  act: async (action: object, visible: number[]): Promise<Done> => {
    const done = await json<Done>("/api/do", { ...action, visible });
    return { ...done, rows: done.rows.map(converted) };
  },
  preview: (label: string, threshold: number | null) => json<object>("/api/preview", { label, threshold }),
  addText: (text: string) => add(text),
  addFile: (file: File) => add(file, { name: file.name }),
  addExample: () => add("", { example: "1" }),
  next: (current: number) => json<{ id: number | null }>(`/api/next?current=${current}`),
  why: (row: Row, span: Span) => {
    const { points } = offsetsOf(row.text);
    const query = new URLSearchParams({
      text: String(row.id),
      start: String(points(span.start)),
      end: String(points(span.end)),
      label: span.label,
    });
    return json<{ reasons: Reason[] }>(`/api/why?${query}`);
  },
  export: async (kind: string, whole: boolean) => {
    const response = await request(`/api/export?${new URLSearchParams({ kind, whole: String(whole) })}`);
    return {
      blob: await response.blob(),
      name: decodeURIComponent(response.headers.get("X-Spanshot-Name") ?? "export"),
      note: decodeURIComponent(response.headers.get("X-Spanshot-Note") ?? ""),
    };
  },
  saveTagger: (folder: string) => json<{ folder: string }>("/api/tagger", { folder }),
  commands: () => json<{ shell: string; python: string }>("/api/commands"),
  finetune: () => json<object>("/api/finetune", {}),
};
