import { useRef } from "preact/hooks";
import * as actions from "./actions";
import { colorOf, useStore } from "./store";
import type { StatusFilter } from "./types";

export function FilterBar() {
  const { summary, filter, ids } = useStore();
  const timer = useRef(0);
  if (!summary) return null;
  const counts: [StatusFilter, string, number][] = [
    ["all", "All", summary.texts],
    ["suggestions", "Suggestions", summary.with_suggestions],
    ["unreviewed", "To do", summary.texts - summary.reviewed],
    ["reviewed", "Done", summary.reviewed],
  ];
  return (
    <div class="filters">
      <div class="segments" role="group" aria-label="Texts to show">
        {counts.map(([status, name, count]) => (
          <button
            key={status}
            aria-pressed={filter.status === status}
            onClick={() => void actions.setFilter({ status })}
          >
            {name} <small>{count.toLocaleString("en")}</small>
          </button>
        ))}
      </div>
      {filter.label && (
        <button class={`chip c${colorOf(filter.label)}`} onClick={() => void actions.setFilter({ label: "" })}>
          {filter.label} <span aria-hidden="true">×</span>
          <span class="said">Remove filter</span>
        </button>
      )}
      <span class="space" />
      <input
        id="search"
        type="search"
        placeholder="Search  /"
        aria-label="Search texts"
        value={filter.search}
        onInput={(event) => {
          const search = event.currentTarget.value;
          clearTimeout(timer.current);
          timer.current = window.setTimeout(() => void actions.setFilter({ search }), 180);
        }}
        onKeyDown={(event) => {
          if (event.key === "Escape" || event.key === "Enter") event.currentTarget.blur();
        }}
      />
      <button class="next" onClick={() => void actions.goToNext()} title="Next text worth annotating (N)">
        Next <kbd>N</kbd>
      </button>
      <div class="progress" aria-hidden="true">
        <Progress part={summary.reviewed} whole={summary.texts} />
      </div>
      {(filter.search || filter.label || filter.status !== "all") && (
        <p class="found" role="status">
          {ids.length.toLocaleString("en")} {ids.length === 1 ? "text" : "texts"} found
        </p>
      )}
    </div>
  );
}

export function Progress({ part, whole }: { part: number; whole: number }) {
  return <i style={{ width: `${whole ? (100 * part) / whole : 0}%` }} />;
}
