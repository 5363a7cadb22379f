// The keyboard. With a selection, letters are typed into the label picker; otherwise they are commands.
import * as actions from "./actions";
import { currentRow, emit, state } from "./store";

const LETTERS: Record<string, () => unknown> = {
  a: actions.accept,
  r: actions.reject,
  x: () => actions.finish("reject"),
  m: actions.markAll,
  n: actions.goToNext,
  u: actions.undo,
  j: () => actions.move(1),
  k: () => actions.move(-1),
  e: () => emit({ dialog: "export" }),
  i: () => emit({ dialog: "add" }),
};

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.matches("input:not([type=range]), textarea, select");
}

/** Whether a press belongs to a button or a slider that has the focus. */
function isControl(target: EventTarget | null, key: string): boolean {
  if (!(target instanceof HTMLElement)) return false;
  if (target.matches("input[type=range]")) return key.startsWith("Arrow");
  return target.matches("button, summary, a") && (key === "Enter" || key === " ");
}

function isRightToLeft(): boolean {
  const text = document.querySelector(`[data-row="${state.current}"] .text`);
  return text !== null && getComputedStyle(text).direction === "rtl";
}

function arrow(event: KeyboardEvent): void {
  let by = event.key === "ArrowRight" ? 1 : -1;
  if (isRightToLeft()) by = -by;
  if (event.shiftKey && state.focus) void actions.resizeBy(event.altKey ? "start" : "end", by);
  else actions.moveCursor(by, event.shiftKey);
}

/** Answer a key; return whether it was one of ours. */
function press(event: KeyboardEvent): boolean {
  const { key } = event;
  const command = event.ctrlKey || event.metaKey;
  if (command) {
    const letter = key.toLowerCase();
    if (letter === "z") void (event.shiftKey ? actions.redo() : actions.undo());
    else if (letter === "y") void actions.redo();
    else return false;
    return true;
  }
  const digit = /^(?:Digit|Numpad)([1-9])$/.exec(event.code)?.[1];
  if (digit && !event.altKey) {
    const label = state.summary?.labels[Number(digit) - 1]?.label;
    if (label && (state.selection || state.focus)) void actions.mark(label, event.shiftKey);
    return true;
  }
  if (key === "ArrowLeft" || key === "ArrowRight") arrow(event);
  else if (event.altKey) return false;
  else if (key === "ArrowDown") actions.move(1);
  else if (key === "ArrowUp") actions.move(-1);
  else if (key === "PageDown") actions.move(10);
  else if (key === "PageUp") actions.move(-10);
  else if (key === "Tab") return actions.step(event.shiftKey ? -1 : 1);
  else if (key === "Escape") emit({ selection: null, focus: null, vanished: null, typed: null, panel: false });
  else if (key === " ") void actions.finish("accept");
  else if (key === "Delete" || key === "Backspace") void actions.reject();
  else if (key === "?") emit({ dialog: "help" });
  else if (key === "/") document.querySelector<HTMLInputElement>("#search")?.focus();
  else if (key === "Enter") {
    if (state.focus?.kind === "suggestion") void actions.accept();
    else if (state.focus || state.selection) emit({ typed: "" });
    else return false;
  } else if (state.selection && !state.selection.isCursor && key.length === 1 && /\S/.test(key)) {
    emit({ typed: (state.typed ?? "") + key });
  } else if (key === "U") void actions.redo();
  else if (key === "d") {
    const row = currentRow();
    if (row) void actions.toggleReviewed(row);
  } else if (LETTERS[key]) void LETTERS[key]();
  else return false;
  return true;
}

export function listen(): void {
  window.addEventListener("keydown", (event) => {
    if (event.isComposing || state.dialog || isTyping(event.target) || isControl(event.target, event.key)) return;
    if (!state.summary?.texts && !["?", "i"].includes(event.key)) return;
    if (press(event)) event.preventDefault();
  });
}
