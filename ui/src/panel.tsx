// The labels with their counts and settings, and what the model does.
import { useRef, useState } from "preact/hooks";
import * as actions from "./actions";
import { api } from "./api";
import { Progress } from "./filters";
import { emit, useStore } from "./store";
import { act, attempt } from "./sync";
import type { Label, Status } from "./types";

const percent = (share: number | null): string => (share === null ? "–" : `${Math.round(share * 100)} %`);

function Threshold({ label }: { label: Label }) {
  const [tried, setTried] = useState<number | null>(null);
  const timer = useRef(0);
  const threshold = tried ?? label.threshold ?? label.default ?? 0.5;
  return (
    <label class="slider">
      <span>
        Suggest from a score of <b>{Math.round(threshold * 100)} %</b>
      </span>
      <input
        type="range"
        min="0.02"
        max="0.98"
        step="0.02"
        value={threshold}
        onInput={(event) => {
          const wanted = Number(event.currentTarget.value);
          setTried(wanted);
          clearTimeout(timer.current);
          timer.current = window.setTimeout(() => void api.preview(label.label, wanted), 60);
        }}
        onChange={async (event) => {
          clearTimeout(timer.current);
          await act({ do: "label", label: label.label, threshold: Number(event.currentTarget.value) });
          await attempt(api.preview(label.label, null));
          setTried(null);
        }}
      />
      <small>
        {label.suggested} {label.suggested === 1 ? "suggestion" : "suggestions"}
        {label.threshold !== null && (
          <button class="link" onClick={() => void act({ do: "label", label: label.label, threshold: null })}>
            Use the default
          </button>
        )}
      </small>
    </label>
  );
}

function Details({ label }: { label: Label }) {
  const { filter } = useStore();
  return (
    <div class="details">
      <dl>
        <div>
          <dt>Precision</dt>
          <dd>{percent(label.precision)}</dd>
        </div>
        <div>
          <dt>Recall</dt>
          <dd>{percent(label.recall)}</dd>
        </div>
        <div>
          <dt>Rejected</dt>
          <dd>{label.rejected}</dd>
        </div>
      </dl>
      <p class="hint">
        {label.precision === null && label.recall === null
          ? "Measured by leave-one-out as soon as two texts have this label."
          : `Leave-one-out on ${label.tested} ${label.tested === 1 ? "span" : "spans"} of your texts.`}
        {label.confusions.map((other) => (
          <span key={other.label}>
            {" "}
            Found as <b>{other.label}</b>: {other.count}.
          </span>
        ))}
      </p>
      <Threshold label={label} />
      <label class="field">
        <span>Description for the model</span>
        <input
          value={label.name}
          placeholder={label.label}
          maxLength={300}
          onChange={(event) => void act({ do: "label", label: label.label, name: event.currentTarget.value })}
        />
      </label>
      <div class="swatches" role="group" aria-label="Colour">
        {Array.from({ length: 10 }, (_, color) => (
          <button
            key={color}
            class={`swatch c${color}`}
            aria-label={`Colour ${color + 1}`}
            aria-pressed={label.color === color}
            onClick={() => void act({ do: "label", label: label.label, color })}
          />
        ))}
      </div>
      <div class="row-buttons">
        <button onClick={() => void actions.setFilter({ label: filter.label === label.label ? "" : label.label })}>
          {filter.label === label.label ? "Show all texts" : "Show its texts"}
        </button>
        {label.marks === 0 && (
          <button onClick={() => void act({ do: "drop-label", label: label.label })}>Remove</button>
        )}
      </div>
    </div>
  );
}

function LabelView({ label, number }: { label: Label; number: number }) {
  const { openLabel, selection, focus } = useStore();
  const isOpen = openLabel === label.label;
  const canMark = Boolean(selection || focus);
  return (
    <li class={`label c${label.color} ${isOpen ? "open" : ""}`}>
      <div class="head">
        <button
          class="name"
          onClick={() => (canMark ? void actions.mark(label.label) : emit({ openLabel: isOpen ? "" : label.label }))}
          title={canMark ? `Mark as ${label.label}` : undefined}
        >
          <kbd>{number < 9 ? number + 1 : ""}</kbd>
          <bdi>{label.label}</bdi>
        </button>
        <span class="counts" title={`${label.marks} marked, ${label.suggested} suggested`}>
          <b>{label.marks}</b>
          {label.suggested > 0 && <i>+{label.suggested}</i>}
        </span>
        <button
          class="more"
          aria-expanded={isOpen}
          aria-label={`Settings of ${label.label}`}
          onClick={() => emit({ openLabel: isOpen ? "" : label.label })}
        >
          {isOpen ? "▴" : "▾"}
        </button>
      </div>
      {isOpen && <Details label={label} />}
    </li>
  );
}

function describe(status: Status): string {
  if (status.error) return status.error;
  if (status.state === "loading") return "Loading the model…";
  if (status.state === "waiting") return "Mark a span to get suggestions.";
  if (status.state === "reading" && status.total > 60)
    return `Reading texts: ${status.done.toLocaleString("en")} of ${status.total.toLocaleString("en")}`;
  if (!status.current) return "Updating suggestions…";
  return "Suggestions are up to date.";
}

function describeTuning({ done, total }: { done: number; total: number }): string {
  if (!total) return "Preparing to fine-tune…";
  return done < total ? `Fine-tuning: ${percent(done / total)}` : "Saving the fine-tuned model…";
}

export function Panel() {
  const { summary, panel } = useStore();
  const [name, setName] = useState("");
  if (!summary) return null;
  const { status, labels } = summary;
  const tuning = status.finetuning;
  const isTuning = tuning !== null && !tuning.message;
  return (
    <aside class={panel ? "panel shown" : "panel"} aria-label="Labels">
      <h2>Labels</h2>
      {labels.length === 0 && <p class="hint">Select words in a text and type a name for them.</p>}
      <ol class="labels">
        {labels.map((label, number) => (
          <LabelView key={label.label} label={label} number={number} />
        ))}
      </ol>
      <form
        class="new-label"
        onSubmit={(event) => {
          event.preventDefault();
          const label = name.trim();
          setName("");
          if (label) void act({ do: "label", label });
        }}
      >
        <input
          value={name}
          placeholder="New label"
          aria-label="New label"
          maxLength={200}
          onInput={(event) => setName(event.currentTarget.value)}
        />
        <button disabled={!name.trim()}>Add</button>
      </form>
      <label class="check">
        <input
          type="checkbox"
          checked={summary.nested}
          onChange={(event) => void act({ do: "nested", value: event.currentTarget.checked })}
        />
        Spans inside spans
      </label>
      <div class="model">
        <p class={`status ${status.error ? "error" : ""}`} role="status" data-current={status.current}>
          <i class={status.current && status.state !== "loading" ? "dot" : "dot busy"} aria-hidden="true" />
          {describe(status)}
        </p>
        {status.state === "reading" && status.total > 60 && (
          <div class="bar">
            <Progress part={status.done} whole={status.total} />
          </div>
        )}
        <button
          class="finetune"
          disabled={isTuning || labels.every((label) => label.marks === 0)}
          onClick={() => void attempt(api.finetune())}
          title="Takes about a minute. Useful with five or more examples of each label."
        >
          {isTuning ? describeTuning(tuning) : status.finetuned ? "Fine-tune again" : "Fine-tune"}
        </button>
        {isTuning && (
          <div class="bar">
            <Progress part={tuning.done} whole={tuning.total} />
          </div>
        )}
        {tuning?.message && <p class="hint">{tuning.message}</p>}
      </div>
    </aside>
  );
}
