import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "./api";
import { addFiles } from "./app";
import { emit } from "./store";
import { attempt, tellAdded } from "./sync";

export function DialogBox({ title, children }: { title: string; children: ComponentChildren }) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    box.current?.showModal();
  }, []);
  const close = (): void => emit({ dialog: null });
  return (
    <dialog
      ref={box}
      aria-label={title}
      onClose={close}
      onClick={(event) => event.target === box.current && close()}
      onKeyDown={(event) => event.stopPropagation()}
    >
      <div class="dialog">
        <header>
          <h2>{title}</h2>
          <button class="plain" onClick={close} aria-label="Close">
            ×
          </button>
        </header>
        {children}
      </div>
    </dialog>
  );
}

const KEYS: [string, [string, string][]][] = [
  [
    "Mark",
    [
      ["← →", "Move the word cursor"],
      ["Shift ← →", "Select words, or move the end of a span"],
      ["Shift Alt ← →", "Move the start of a span"],
      ["1 – 9", "Label the selection, or change the label"],
      ["Shift 1 – 9", "Label all occurrences"],
      ["type", "Choose or create a label by name"],
      ["M", "Mark all occurrences of a span"],
      ["⌫", "Delete a mark, reject a suggestion"],
    ],
  ],
  [
    "Decide",
    [
      ["A or Enter", "Accept the suggestion"],
      ["R", "Reject the suggestion"],
      ["Space", "Accept the whole text and go on"],
      ["X", "Reject all suggestions of the text and go on"],
      ["D", "Text is done, or not"],
      ["Tab", "Next span of the text"],
    ],
  ],
  [
    "Move",
    [
      ["↑ ↓ or K J", "Previous or next text"],
      ["N", "Next text worth annotating"],
      ["/", "Search"],
      ["Esc", "Clear the selection"],
    ],
  ],
  [
    "Project",
    [
      ["U or Ctrl Z", "Undo"],
      ["Shift U or Ctrl Y", "Redo"],
      ["I", "Add texts"],
      ["E", "Export"],
      ["?", "This help"],
    ],
  ],
];

export function HelpDialog() {
  return (
    <DialogBox title="Keys">
      <div class="keys">
        {KEYS.map(([title, keys]) => (
          <section key={title}>
            <h3>{title}</h3>
            <dl>
              {keys.map(([key, meaning]) => (
                <div key={key}>
                  <dt>
                    {key.split(" ").map((part) => (/^(or|–)$/.test(part) ? ` ${part} ` : <kbd>{part}</kbd>))}
                  </dt>
                  <dd>{meaning}</dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
      <p class="hint">
        With the mouse: click or drag to select, click a span to decide, drag its edges to resize it. Hold Alt to select
        part of a word. Rest on a suggestion to see why it was made.
      </p>
    </DialogBox>
  );
}

export function AddForm({ autofocus = false }: { autofocus?: boolean }) {
  const [text, setText] = useState("");
  const files = useRef<HTMLInputElement>(null);
  const area = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    if (autofocus) area.current?.focus();
  }, []);
  const add = async (): Promise<void> => {
    const answer = await attempt(api.addText(text));
    if (!answer) return;
    tellAdded(answer.added);
    setText("");
    emit({ dialog: null });
  };
  return (
    <div class="add">
      <textarea
        ref={area}
        value={text}
        rows={7}
        placeholder={"Paste text here, one sentence or paragraph per line.\nAnnotated text works, too: [Oslo](city) is cold."}
        aria-label="Text to add"
        dir="auto"
        onInput={(event) => setText(event.currentTarget.value)}
      />
      <div class="row-buttons">
        <button class="main" disabled={!text.trim()} onClick={() => void add()}>
          Add text
        </button>
        <button onClick={() => files.current?.click()}>Choose files…</button>
        <input
          ref={files}
          type="file"
          multiple
          hidden
          onChange={(event) => void addFiles(event.currentTarget.files ?? [])}
        />
      </div>
      <p class="hint">
        Or drop files anywhere: plain text, JSON lines, CoNLL, CSV, Parquet, spaCy, or exports of Label Studio, doccano,
        Prodigy and brat. Annotations are kept.
      </p>
    </div>
  );
}

export function AddDialog() {
  return (
    <DialogBox title="Add texts">
      <AddForm autofocus />
    </DialogBox>
  );
}
