// Which bytes of a file are there: a sorted list of half-open ranges that neither touch nor overlap.

/** `[start, end)` in bytes. */
export type Range = readonly [start: number, end: number];

/** Adds a range and joins what it touches. */
export function addRange(ranges: readonly Range[], [start, end]: Range): Range[] {
  if (start >= end) return [...ranges];
  const before = ranges.filter((range) => range[1] < start);
  const after = ranges.filter((range) => range[0] > end);
  const touched = ranges.slice(before.length, ranges.length - after.length);
  const joined: Range = [
    Math.min(start, ...touched.map((range) => range[0])),
    Math.max(end, ...touched.map((range) => range[1])),
  ];
  return [...before, joined, ...after];
}

/** What is missing of `[0, size)`. */
export function gaps(ranges: readonly Range[], size: number): Range[] {
  const found: Range[] = [];
  let position = 0;
  for (const [start, end] of ranges) {
    if (start > position) found.push([position, start]);
    position = end;
  }
  if (position < size) found.push([position, size]);
  return found;
}

/** Bytes in all ranges. */
export function coveredBytes(ranges: readonly Range[]): number {
  return ranges.reduce((sum, [start, end]) => sum + end - start, 0);
}

/** True if the list is one that `addRange` could have made for a file of `size` bytes. */
export function isSound(ranges: unknown, size: number): ranges is Range[] {
  let position = -1;
  return Array.isArray(ranges) && ranges.every((range) => {
    if (!Array.isArray(range) || range.length !== 2 || !range.every(Number.isSafeInteger)) {
      return false;
    }
    const [start, end] = range as [number, number];
    const sound = start > position && end > start && end <= size;
    position = end;
    return sound;
  });
}
