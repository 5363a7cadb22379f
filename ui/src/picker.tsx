// The popover at a selection or a focused span: labels to choose from, and what can be done.
import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import * as actions from "./actions";
import { emit, state } from "./store";
import type { Row } from "./types";

function place(popover: HTMLElement, text: HTMLElement): void {
  const target = state.selection ?? state.focus;
  if (!target) return;
  const inside = [...text.querySelectorAll<HTMLElement>("[data-start]")].filter(
    (segment) => Number(segment.dataset["start"]) < target.end && target.start < Number(segment.dataset["end"]),
  );
  const last = inside.at(-1)?.getClientRects();
  const first = inside[0]?.getClientRects()[0];
  const rect = last?.[last.length - 1];
  if (!rect || !first) return;
  const box = text.getBoundingClientRect();
  const start = rect.top === first.top ? first.left : rect.left;
  const left = Math.max(0, Math.min(start - box.left, box.width - popover.offsetWidth));
  popover.style.left = `${left}px`;
  const list = text.closest(".list")?.getBoundingClientRect();
  const fits = !list || rect.bottom + popover.offsetHeight + 8 < list.bottom;
  popover.style.top = fits ? `${rect.bottom - box.top + 5}px` : `${first.top - box.top - popover.offsetHeight - 5}px`;
}

const focusList = (): void => document.querySelector<HTMLElement>(".list")?.focus();

export function Picker({ row, text }: { row: Row; text: RefObject<HTMLElement> }) {
  const { selection, focus, typed, summary } = state;
  const popover = useRef<HTMLDivElement>(null);
  const input = useRef<HTMLInputElement>(null);
  const [active, setActive] = useState(0);
  useLayoutEffect(() => {
    if (popover.current && text.current) place(popover.current, text.current);
  });
  useLayoutEffect(() => {
    // At once, so that the next key is typed into the field.
    setActive(0);
    if (typed !== null && document.activeElement !== input.current) {
      input.current?.focus();
      const end = input.current?.value.length ?? 0;
      input.current?.setSelectionRange(end, end);
    }
  }, [typed]);
  if (typed === null && (selection ? selection.isCursor : !state.popover)) return null;

  const labels = summary?.labels ?? [];
  const wanted = (typed ?? "").trim().toLowerCase();
  const names = labels.map((label) => label.label);
  const fitting = names.filter((name) => name.toLowerCase().includes(wanted));
  const rank = (name: string): number => (name.toLowerCase().startsWith(wanted) ? 0 : 1);
  fitting.sort((a, b) => rank(a) - rank(b));
  const isNew = wanted !== "" && !names.some((name) => name.toLowerCase() === wanted);
  const choices = isNew ? [...fitting, typed!.trim()] : fitting;
  const words = row.text.slice((selection ?? focus)!.start, (selection ?? focus)!.end);

  const keyDown = (event: KeyboardEvent): void => {
    event.stopPropagation();
    if (event.key === "Escape") {
      emit({ typed: null });
      focusList();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setActive((active + (event.key === "ArrowDown" ? 1 : choices.length - 1)) % Math.max(1, choices.length));
    } else if (event.key === "Enter" && choices[active]) {
      event.preventDefault();
      focusList();
      void actions.mark(choices[active], event.shiftKey);
    }
  };

  return (
    <div class="popover" ref={popover} role="dialog" aria-label={`Label for ${words}`} onMouseUp={(e) => e.stopPropagation()}>
      {focus && !selection && (
        <div class="decide">
          {focus.kind === "suggestion" ? (
            <>
              <button class="yes" onClick={() => void actions.accept()}>
                Accept <kbd>A</kbd>
              </button>
              <button onClick={() => void actions.reject()}>
                Reject <kbd>R</kbd>
              </button>
            </>
          ) : (
            <>
              <button onClick={() => emit({ typed: "" })}>
                Label <kbd>↵</kbd>
              </button>
              <button onClick={() => void actions.reject()}>
                Delete <kbd>⌫</kbd>
              </button>
            </>
          )}
          <button onClick={() => void actions.markAll()} title="Mark all occurrences of these words">
            All <kbd>M</kbd>
          </button>
          {focus.score !== undefined && <small class="score">{Math.round(focus.score * 100)} %</small>}
        </div>
      )}
      {(selection || typed !== null) && (
        <>
          <div class="chips" role="listbox" aria-label="Labels">
            {choices.map((label, at) => {
              const number = names.indexOf(label);
              return (
                <button
                  key={label}
                  role="option"
                  aria-selected={typed !== null && at === active}
                  class={`chip c${number >= 0 ? labels[number]!.color : labels.length % 10}`}
                  onClick={(event) => void actions.mark(label, event.shiftKey)}
                >
                  {number < 0 ? (
                    <>
                      New: <bdi>{label}</bdi>
                    </>
                  ) : (
                    <>
                      {number < 9 && <kbd>{number + 1}</kbd>}
                      <bdi>{label}</bdi>
                    </>
                  )}
                </button>
              );
            })}
          </div>
          <input
            ref={input}
            value={typed ?? ""}
            placeholder={labels.length ? "Type a label…" : "Name it, such as city"}
            aria-label="Label"
            maxLength={200}
            onInput={(event) => emit({ typed: event.currentTarget.value })}
            onKeyDown={keyDown}
            onFocus={() => state.typed === null && emit({ typed: "" })}
          />
        </>
      )}
    </div>
  );
}
