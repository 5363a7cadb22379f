// A list that draws only the rows near the view, whatever the number of texts.
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { RowView } from "./row";
import { useStore } from "./store";
import { want } from "./sync";

const GUESS = 74;
const MARGIN = 700;

export function List() {
  const { ids, rows, current } = useStore();
  const box = useRef<HTMLDivElement>(null);
  const heights = useRef(new Map<number, number>());
  const target = useRef(0); // the text that stays in view until users scroll
  const [view, setView] = useState({ top: 0, height: 800 });
  const [measured, setMeasured] = useState(0);

  const tops = useMemo(() => {
    const all = new Float64Array(ids.length + 1);
    for (let i = 0; i < ids.length; i++) all[i + 1] = all[i]! + (heights.current.get(ids[i]!) ?? GUESS);
    return all;
  }, [ids, measured]);

  const indexAt = (place: number): number => {
    let low = 0;
    let high = ids.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (tops[middle + 1]! <= place) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  const first = indexAt(view.top - MARGIN);
  const last = Math.min(ids.length, indexAt(view.top + view.height + MARGIN) + 1);
  const drawn = ids.slice(first, last);

  const observer = useMemo(
    () =>
      new ResizeObserver((entries) => {
        let changed = false;
        for (const entry of entries) {
          const id = Number((entry.target as HTMLElement).dataset["row"]);
          const height = (entry.target as HTMLElement).offsetHeight;
          if (height && heights.current.get(id) !== height) {
            heights.current.set(id, height);
            changed = true;
          }
        }
        if (changed) setMeasured((count) => count + 1);
      }),
    [],
  );

  useEffect(() => {
    const element = box.current!;
    const look = (): void => setView({ top: element.scrollTop, height: element.clientHeight });
    const resized = new ResizeObserver(() => {
      heights.current.clear();
      setMeasured((count) => count + 1);
      look();
    });
    element.addEventListener("scroll", look, { passive: true });
    resized.observe(element);
    look();
    return () => {
      element.removeEventListener("scroll", look);
      resized.disconnect();
    };
  }, []);

  useEffect(() => {
    const low = indexAt(view.top);
    const high = indexAt(view.top + view.height);
    want(drawn, ids.slice(low, high + 1));
  }, [drawn.join(), rows.size, view.top]);

  const keepInView = (): void => {
    const element = box.current!;
    const at = ids.indexOf(target.current);
    if (at < 0) return;
    const [top, bottom] = [tops[at]!, tops[at + 1]!];
    const space = element.clientWidth < 760 ? 190 : Math.min(120, element.clientHeight / 4);
    if (top - space < element.scrollTop) element.scrollTop = Math.max(0, top - space);
    else if (bottom + space > element.scrollTop + element.clientHeight)
      element.scrollTop = bottom + space - element.clientHeight;
  };
  // Rows on the way get their true heights when they are drawn, which moves those behind them.
  useLayoutEffect(keepInView, [tops]);
  useEffect(() => {
    const scroll = (event: Event): void => {
      target.current = (event as CustomEvent<number>).detail;
      keepInView();
    };
    window.addEventListener("spanshot-scroll", scroll);
    return () => window.removeEventListener("spanshot-scroll", scroll);
  }, [ids, tops]);
  const letGo = (): void => void (target.current = 0);

  useLayoutEffect(() => () => observer.disconnect(), []);

  return (
    <div
      class="list"
      ref={box}
      role="list"
      aria-label="Texts"
      tabIndex={0}
      onWheel={letGo}
      onTouchMove={letGo}
      onPointerDown={letGo}
      onKeyDown={(event) => (event.key === "Home" || event.key === "End") && letGo()}
    >
      {ids.length === 0 && <p class="empty">No text matches. Change the filter or the search.</p>}
      <div style={{ height: `${tops[first]}px` }} />
      {drawn.map((id) => (
        <RowView key={id} id={id} row={rows.get(id)} isCurrent={id === current} observer={observer} />
      ))}
      <div style={{ height: `${tops[ids.length]! - tops[last]!}px` }} />
    </div>
  );
}
