import { useLayoutEffect, useRef } from "preact/hooks";
import * as actions from "./actions";
import { Picker } from "./picker";
import { dragEdge, release } from "./pointer";
import { isSpan, LONGEST, sameSpan, segmentsOf, type Layer, type Segment } from "./segments";
import { colorOf, emit, state } from "./store";
import type { Focus, Row } from "./types";
import { hover } from "./why";

interface Props {
  id: number;
  row: Row | undefined;
  isCurrent: boolean;
  observer: ResizeObserver;
}

function layersOf(row: Row, isCurrent: boolean): Layer[] {
  const { focus, selection, resizing } = state;
  const layers: Layer[] = [];
  for (const [kind, spans] of [
    ["mark", row.marks],
    ["suggestion", row.suggested],
  ] as const) {
    for (const span of spans) {
      const focused = isCurrent && focus !== null && sameSpan(span, focus);
      const moved = isCurrent && resizing && sameSpan(resizing.span, span) ? resizing : span;
      const score = "score" in span ? (span.score as number) : undefined;
      layers.push({
        kind,
        start: moved.start,
        end: moved.end,
        label: span.label,
        color: colorOf(span.label),
        score,
        focused,
        lane: 0,
      });
    }
  }
  if (isCurrent && selection) {
    const kind = selection.isCursor ? "cursor" : "selection";
    layers.push({ ...selection, kind, label: "", color: 0, focused: false, lane: 0 });
  }
  return layers;
}

function styleOf(layers: Layer[]): Record<string, string> {
  const spans = layers.filter(isSpan);
  if (!spans.length) return {};
  const line = (layer: Layer): string =>
    layer.kind === "mark"
      ? `linear-gradient(var(--line-${layer.color}), var(--line-${layer.color}))`
      : `repeating-linear-gradient(90deg, var(--line-${layer.color}) 0 4px, transparent 4px 7px)`;
  const lanes = Math.max(...spans.map((layer) => layer.lane)) + 1;
  return {
    backgroundImage: spans.map(line).join(", "),
    backgroundSize: spans.map(() => "100% 2px").join(", "),
    backgroundPosition: spans.map((layer) => `0 calc(100% - ${(lanes - 1 - layer.lane) * 4}px)`).join(", "),
    paddingBottom: `${1 + lanes * 4}px`,
  };
}

function Tag({ row, layer }: { row: Row; layer: Layer }) {
  const words = row.text.slice(layer.start, layer.end);
  const isMark = layer.kind === "mark";
  const focus = { start: layer.start, end: layer.end, label: layer.label, kind: layer.kind } as Focus;
  return (
    <span class={`tag ${layer.kind} c${layer.color} ${layer.focused ? "focused" : ""}`} data-label={layer.label}>
      <button
        tabIndex={-1}
        aria-label={`${words}: ${isMark ? "marked" : "suggested"} as ${layer.label}`}
        onClick={() => {
          emit({ current: row.id });
          actions.focusOn(focus, true);
        }}
      >
        <bdi>{layer.label}</bdi>
      </button>
      {isMark && (
        <button
          class="delete"
          tabIndex={-1}
          aria-label={`Delete ${layer.label}: ${words}`}
          title="Delete"
          onClick={() => void actions.remove(row, layer)}
        >
          ×
        </button>
      )}
    </span>
  );
}

function SegmentView({ row, segment }: { row: Row; segment: Segment }) {
  const { layers } = segment;
  const marks = layers.filter((layer) => layer.kind === "mark").sort((a, b) => a.lane - b.lane);
  const spans = layers.filter(isSpan);
  const inner = spans.sort((a, b) => a.end - a.start - (b.end - b.start))[0];
  const focused = layers.find((layer) => layer.focused);
  const classes = [
    "segment",
    marks[0] ? `marked tint-${marks[0].color}` : "",
    !marks.length && inner ? "suggested" : "",
    focused ? `focused tint-${focused.color}` : "",
    layers.some((layer) => layer.kind === "selection") ? "selected" : "",
    layers.some((layer) => layer.kind === "cursor") ? "cursor" : "",
  ];
  const edge = focused?.kind === "mark" ? focused : undefined;
  return (
    <span class={segment.ending.length && segment.end - segment.start <= LONGEST ? "together" : undefined}>
      {edge && edge.start === segment.start && (
        <i class="handle start" onPointerDown={(event) => dragEdge(event, row, edge, "start")} aria-hidden="true" />
      )}
      <span
        class={classes.filter(Boolean).join(" ")}
        data-start={segment.start}
        data-end={segment.end}
        style={styleOf(layers)}
        onPointerEnter={
          inner?.kind === "suggestion" ? (event) => hover(row, inner, event.currentTarget) : undefined
        }
        onPointerLeave={inner?.kind === "suggestion" ? () => hover(row, null, null) : undefined}
        data-span={inner ? `${inner.start}-${inner.end}-${inner.label}` : undefined}
      >
        {row.text.slice(segment.start, segment.end)}
      </span>
      {edge && edge.end === segment.end && (
        <i class="handle end" onPointerDown={(event) => dragEdge(event, row, edge, "end")} aria-hidden="true" />
      )}
      {segment.ending.map((layer) => (
        <Tag key={`${layer.kind}-${layer.start}-${layer.label}`} row={row} layer={layer} />
      ))}
    </span>
  );
}

export function RowView({ id, row, isCurrent, observer }: Props) {
  const element = useRef<HTMLDivElement>(null);
  const text = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const box = element.current!;
    observer.observe(box);
    return () => observer.unobserve(box);
  }, []);

  const click = (event: MouseEvent): void => {
    if (!row || !text.current || (event.target as HTMLElement).closest("button, .handle, .popover")) return;
    if (!isCurrent) emit({ current: id, focus: null, selection: null, typed: null });
    const native = getSelection();
    const segment = (event.target as HTMLElement).closest<HTMLElement>("[data-span]");
    if (segment && native?.isCollapsed !== false) {
      const [start, end] = segment.dataset["span"]!.split("-").map(Number);
      const clicked = actions.spansOf(row).find((span) => span.start === start && span.end === end);
      if (clicked) return actions.focusOn(clicked, true);
    }
    release(event, row, text.current);
  };

  const count = row?.suggested.length ?? 0;
  return (
    <div
      class={`row ${isCurrent ? "current" : ""} ${row?.reviewed ? "reviewed" : ""}`}
      data-row={id}
      role="listitem"
      aria-current={isCurrent}
      ref={element}
      onMouseUp={click}
    >
      <span class="number" aria-hidden="true">
        {id}
      </span>
      <div class="text" dir="auto" ref={text}>
        {row
          ? segmentsOf(row.text, layersOf(row, isCurrent)).map((segment) => (
              <SegmentView key={segment.start} row={row} segment={segment} />
            ))
          : "…"}
        {row && isCurrent && (state.selection || state.focus) && <Picker row={row} text={text} />}
      </div>
      {row && (
        <div class="state">
          {isCurrent && count > 0 && (
            <button
              class="accept"
              onClick={() => void actions.finish("accept")}
              title="Accept all suggestions of this text (Space)"
            >
              Accept {count}
            </button>
          )}
          <button
            class="done"
            aria-pressed={row.reviewed}
            aria-label={row.reviewed ? `Text ${id} is reviewed` : `Mark text ${id} as reviewed`}
            title={row.reviewed ? "Reviewed (D)" : "Mark as reviewed (D)"}
            onClick={() => void actions.toggleReviewed(row)}
          >
            ✓
          </button>
        </div>
      )}
    </div>
  );
}
