// Offsets of the server count code points; those of browser strings count UTF-16 units. Emoji differ.

const PAIR = /[\ud800-\udbff][\udc00-\udfff]/;

/** Converts offsets of one text in both directions. */
export interface Offsets {
  /** Code points to UTF-16 units. */
  units(points: number): number;
  /** UTF-16 units to code points. */
  points(units: number): number;
}

const SAME: Offsets = { units: (at) => at, points: (at) => at };

export function offsetsOf(text: string): Offsets {
  if (!PAIR.test(text)) return SAME;
  const starts: number[] = [];
  const pointAt: number[] = [];
  let units = 0;
  for (const character of text) {
    for (let i = 0; i < character.length; i++) pointAt.push(starts.length);
    starts.push(units);
    units += character.length;
  }
  pointAt.push(starts.length);
  starts.push(units);
  return {
    units: (at) => starts[Math.min(at, starts.length - 1)]!,
    points: (at) => pointAt[Math.min(at, pointAt.length - 1)]!,
  };
}
