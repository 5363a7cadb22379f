import { useEffect, useState } from "preact/hooks";
import { api } from "./api";
import { AddDialog, HelpDialog } from "./dialogs";
import { ExportDialog } from "./export";
import { FilterBar } from "./filters";
import { List } from "./list";
import { Panel } from "./panel";
import { emit, projectName, useStore } from "./store";
import { attempt, tellAdded } from "./sync";
import { TopBar } from "./topbar";
import { Welcome } from "./welcome";

export async function addFiles(files: Iterable<File>): Promise<void> {
  let added = 0;
  for (const file of files) added += (await attempt(api.addFile(file)))?.added ?? 0;
  if (added) tellAdded(added);
  emit({ dialog: null });
}

function Lost({ refused }: { refused: boolean }) {
  return (
    <div class="banner" role="alert">
      {refused
        ? "This address is out of date. Open the one that spanshot ui has printed."
        : "The server does not answer. Nothing is lost: run spanshot ui again and open the new address."}
    </div>
  );
}

export function App() {
  const state = useStore();
  const [isOver, setOver] = useState(false);
  useEffect(() => {
    document.documentElement.dataset["theme"] = state.theme;
  }, [state.theme]);
  const { summary } = state;
  useEffect(() => {
    document.title = summary ? `${projectName(summary)} · spanshot` : "spanshot";
  }, [summary?.name]);

  return (
    <div
      class={`app ${isOver ? "over" : ""}`}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={(event) => {
        if (event.currentTarget === event.target || !event.relatedTarget) setOver(false);
      }}
      onDrop={(event) => {
        event.preventDefault();
        setOver(false);
        const text = event.dataTransfer?.getData("text/plain");
        if (event.dataTransfer?.files.length) void addFiles(event.dataTransfer.files);
        else if (text) void attempt(api.addText(text));
      }}
    >
      {state.connection !== "ok" && <Lost refused={state.connection === "refused"} />}
      <TopBar />
      {summary && summary.texts === 0 && <Welcome />}
      {summary && summary.texts > 0 && (
        <div class="columns">
          <main>
            <FilterBar />
            <List />
          </main>
          <Panel />
        </div>
      )}
      {state.dialog === "help" && <HelpDialog />}
      {state.dialog === "export" && <ExportDialog />}
      {state.dialog === "add" && <AddDialog />}
      {state.toast && (
        <div class={`toast ${state.toast.error ? "error" : ""}`} role={state.toast.error ? "alert" : undefined}>
          {state.toast.text}
        </div>
      )}
      <div class="said" aria-live="polite">
        {state.said}
      </div>
    </div>
  );
}
