import { useEffect, useState } from "preact/hooks";
import { api } from "./api";
import { DialogBox } from "./dialogs";
import { projectName, state } from "./store";
import { attempt, notify } from "./sync";

const KINDS: [string, string][] = [
  ["jsonl", "JSON lines"],
  ["inline", "Inline markup"],
  ["conll", "CoNLL columns"],
  ["label-studio", "Label Studio"],
  ["doccano", "doccano"],
  ["prodigy", "Prodigy"],
  ["brat", "brat (zip)"],
  ["spacy", "spaCy DocBin"],
  ["csv", "CSV table"],
  ["parquet", "Parquet table"],
];

async function download(kind: string, whole: boolean): Promise<void> {
  const file = await attempt(api.export(kind, whole));
  if (!file) return;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file.blob);
  link.download = file.name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  notify(file.note ? `${file.name}: ${file.note}` : `${file.name} is ready`);
}

function Code({ title, code }: { title: string; code: string }) {
  const copy = async (): Promise<void> => {
    await navigator.clipboard.writeText(code);
    notify("Copied");
  };
  return (
    <div class="code">
      <button onClick={() => void copy()} aria-label={`Copy the ${title} command`}>
        Copy
      </button>
      <pre aria-label={title}>{code}</pre>
    </div>
  );
}

export function ExportDialog() {
  const [whole, setWhole] = useState(false);
  const [commands, setCommands] = useState<{ shell: string; python: string } | null>(null);
  const stem = state.summary ? projectName(state.summary) : "project";
  const [folder, setFolder] = useState(`${stem}-tagger`);
  const [saved, setSaved] = useState("");
  useEffect(() => {
    void attempt(api.commands()).then(setCommands);
  }, []);
  const save = async (): Promise<void> => {
    const answer = await attempt(api.saveTagger(folder));
    if (answer) setSaved(answer.folder);
  };
  return (
    <DialogBox title="Export">
      <section>
        <h3>Annotations</h3>
        <div class="kinds">
          {KINDS.map(([kind, name]) => (
            <button key={kind} onClick={() => void download(kind, whole)}>
              {name}
            </button>
          ))}
        </div>
        <label class="check">
          <input type="checkbox" checked={whole} onChange={(event) => setWhole(event.currentTarget.checked)} />
          Include texts without annotations
        </label>
      </section>
      <section>
        <h3>Tagger</h3>
        <form
          class="save"
          onSubmit={(event) => {
            event.preventDefault();
            void save();
          }}
        >
          <input value={folder} aria-label="Folder" onInput={(event) => setFolder(event.currentTarget.value)} />
          <button disabled={!folder.trim()}>Save tagger</button>
        </form>
        {saved && (
          <p class="hint" role="status">
            Saved in {saved}
          </p>
        )}
      </section>
      {commands && (
        <section>
          <h3>The same in a terminal or in Python</h3>
          <Code title="shell" code={commands.shell} />
          <Code title="Python" code={commands.python} />
        </section>
      )}
    </DialogBox>
  );
}
