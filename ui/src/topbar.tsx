import * as actions from "./actions";
import { emit, projectName, useStore } from "./store";

const THEMES = { auto: "light", light: "dark", dark: "auto" } as const;
const THEME_SIGNS = { auto: "◐", light: "☀", dark: "☾" } as const;

export function TopBar() {
  const { summary, theme, panel, connection } = useStore();
  const hasTexts = Boolean(summary?.texts);
  return (
    <header class="top">
      <span class="brand" aria-label="spanshot">
        <i class="logo" aria-hidden="true" />
        spanshot
      </span>
      {summary && hasTexts && (
        <span class="project" title={`Every action is saved at once in ${summary.path}`}>
          <b>{projectName(summary)}</b>
          <small class={connection === "ok" ? "saved" : "unsaved"}>{connection === "ok" ? "Saved" : "Offline"}</small>
        </span>
      )}
      <span class="space" />
      {hasTexts && (
        <>
          <button
            class="plain"
            disabled={!summary?.undo}
            onClick={() => void actions.undo()}
            title={summary?.undo ? `Undo: ${summary.undo} (U)` : "Nothing to undo"}
            aria-label="Undo"
          >
            ↶
          </button>
          <button
            class="plain"
            disabled={!summary?.redo}
            onClick={() => void actions.redo()}
            title={summary?.redo ? `Redo: ${summary.redo} (Shift+U)` : "Nothing to redo"}
            aria-label="Redo"
          >
            ↷
          </button>
          <button class="plain wide" data-sign="+" onClick={() => emit({ dialog: "add" })} title="Add texts (I)">
            Add text
          </button>
          <button class="plain wide" data-sign="⤓" onClick={() => emit({ dialog: "export" })} title="Export (E)">
            Export
          </button>
        </>
      )}
      <button
        class="plain"
        onClick={() => actions.setTheme(THEMES[theme])}
        title={`Colours: ${theme}`}
        aria-label={`Colours: ${theme}`}
      >
        {THEME_SIGNS[theme]}
      </button>
      <button class="plain" onClick={() => emit({ dialog: "help" })} title="Keys (?)" aria-label="Keys">
        ?
      </button>
      {hasTexts && (
        <button
          class="plain menu"
          aria-expanded={panel}
          onClick={() => emit({ panel: !panel })}
          title="Labels"
          aria-label="Labels"
        >
          ☰
        </button>
      )}
    </header>
  );
}
