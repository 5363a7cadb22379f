// Why a suggestion was made, shown while the pointer rests on it.
import { render } from "preact";
import * as actions from "./actions";
import { api } from "./api";
import { state } from "./store";
import type { Reason, Row, Span } from "./types";

let timer = 0;
let box: HTMLElement | null = null;

const NAMES: Record<string, string> = {
  name: "The name of the label",
  text: "The same words are marked elsewhere",
  rest: "Everything else",
};

function Why({ row, span, reasons }: { row: Row; span: Span & { score?: number }; reasons: Reason[] }) {
  const most = Math.max(...reasons.map((reason) => Math.abs(reason.weight)), 1e-6);
  const named = reasons.filter((reason) => reason.kind !== "rest");
  return (
    <>
      <p class="why-title">
        Why <b>{row.text.slice(span.start, span.end)}</b> may be <b>{span.label}</b>
        {span.score !== undefined && <small> {Math.round(span.score * 100)} %</small>}
      </p>
      {named.length === 0 && <p>It came with the file.</p>}
      <ul>
        {named.map((reason, at) => (
          <li key={at} class={reason.weight < 0 ? "against" : "for"}>
            <span class="weight" aria-hidden="true">
              <i style={{ width: `${Math.max(4, (100 * Math.abs(reason.weight)) / most)}%` }} />
            </span>
            {reason.text !== undefined ? (
              <button
                onClick={() => {
                  hide();
                  void actions.jumpTo(reason.text!);
                }}
                title={reason.example}
              >
                {reason.kind === "rejected" ? "unlike the rejected" : reason.weight < 0 ? "unlike" : "like"}{" "}
                <b>{reason.words}</b> {reason.kind === "example" && `(${reason.label})`} in text {reason.text}
              </button>
            ) : (
              <span>{NAMES[reason.kind] ?? reason.kind}</span>
            )}
          </li>
        ))}
      </ul>
    </>
  );
}

function hide(): void {
  clearTimeout(timer);
  box?.remove();
  box = null;
}

/** Show the reasons for a suggestion soon, or hide them soon if there is no span. */
export function hover(row: Row, span: (Span & { score?: number }) | null, target: HTMLElement | null): void {
  clearTimeout(timer);
  if (!span || !target) {
    timer = window.setTimeout(hide, 250);
    return;
  }
  timer = window.setTimeout(async () => {
    if (state.resizing || !target.isConnected) return;
    const { reasons } = await api.why(row, span).catch(() => ({ reasons: [] as Reason[] }));
    if (!target.isConnected) return;
    hide();
    box = document.createElement("div");
    box.className = "why";
    box.setAttribute("role", "tooltip");
    document.body.append(box);
    render(<Why row={row} span={span} reasons={reasons} />, box);
    box.addEventListener("pointerenter", () => clearTimeout(timer));
    box.addEventListener("pointerleave", () => hover(row, null, null));
    const rect = target.getClientRects()[0]!;
    box.style.left = `${Math.max(8, Math.min(rect.left, innerWidth - box.offsetWidth - 8))}px`;
    const above = rect.top - box.offsetHeight - 6;
    box.style.top = `${above > 8 ? above : rect.bottom + 10}px`;
  }, 450);
}

window.addEventListener("keydown", hide);
window.addEventListener("scroll", hide, true);
