// Places for tensors in one arena, on plain numbers: sizes and lifetimes in, offsets out.
//   greedy by size   Pisarchyk & Lee 2020 (arXiv:2001.03288), as ML Drift uses it (spec MD-8): largest
//                    first, ties by index, into the smallest gap that fits between tensors that are live
//                    at the same time, else behind the last of them; ends are rounded up
//   shared objects   the same order, whole buffers instead of gaps: for memory that cannot be cut
//   naive            one place each
// The policy of Transformer-Lite, which compares symbolic sizes, is in transformer_lite.ts.

import { ResourceError } from "../errors.ts";

/** A tensor to be placed. */
export interface Item {
  readonly bytes: number;
  /** First and last moment in which it is live, inclusive. */
  readonly first: number;
  readonly last: number;
}

/** True if both are live at some moment. */
export function overlapInTime(a: Item, b: Item): boolean {
  return a.first <= b.last && b.first <= a.last;
}

/**
 * Rounds up to a multiple of `alignment`.
 *
 * @throws {ResourceError} Beyond 2^53.
 */
function alignUp(bytes: number, alignment: number): number {
  return checkedBytes(Math.ceil(bytes / alignment) * alignment);
}

function checkedBytes(bytes: number): number {
  if (Number.isSafeInteger(bytes)) return bytes;
  throw new ResourceError(`Cannot plan memory: ${bytes} bytes are beyond 2^53`);
}

function bySizeDescending(items: readonly Item[]): number[] {
  return [...items.keys()].sort((a, b) => items[b]!.bytes - items[a]!.bytes || a - b);
}

/** Greedy by size, one block with offsets. */
export function placeGreedyBySize(items: readonly Item[], alignment: number): number[] {
  const offsets = new Array<number>(items.length).fill(0);
  const ends = new Array<number>(items.length).fill(0);
  // Indices of placed items by moment: few of a long plan live at the same time.
  const placed = new Map<number, number[]>();
  for (const index of bySizeDescending(items)) {
    const item = items[index]!;
    let end = 0, best = -1, bestGap = Infinity;
    for (const other of liveWith(item, placed).sort((a, b) => offsets[a]! - offsets[b]!)) {
      const gap = offsets[other]! - end;
      if (gap >= item.bytes && gap < bestGap) [best, bestGap] = [end, gap];
      end = Math.max(end, ends[other]!);
    }
    const offset = best < 0 ? end : best;
    offsets[index] = offset;
    ends[index] = alignUp(offset + item.bytes, alignment);
    for (let moment = item.first; moment <= item.last; moment++) {
      const there = placed.get(moment);
      if (there) there.push(index);
      else placed.set(moment, [index]);
    }
  }
  return offsets;
}

/** What lives in a moment of an item. */
function liveWith({ first, last }: Item, placed: ReadonlyMap<number, readonly number[]>): number[] {
  const found = placed.get(first) ?? [];
  if (first === last) return found.slice();
  const all = new Set(found);
  for (let moment = first + 1; moment <= last; moment++) {
    for (const index of placed.get(moment) ?? []) all.add(index);
  }
  return [...all];
}

/** Greedy by size into shared objects that lie one behind the other. */
export function placeSharedObjects(items: readonly Item[], alignment: number): number[] {
  const objects: Item[][] = [];
  const objectOf = new Map<number, number>();
  for (const index of bySizeDescending(items)) {
    const item = items[index]!;
    // Items come in falling size, so an object's size is that of its first, and the last object that
    // is free is the smallest.
    let chosen = objects.findLastIndex((object) =>
      !object.some((other) => overlapInTime(item, other))
    );
    if (chosen < 0) chosen = objects.push([]) - 1;
    objects[chosen]!.push(item);
    objectOf.set(index, chosen);
  }
  const starts = stack(objects.map((object) => object[0]!.bytes), alignment);
  return items.map((_, index) => starts[objectOf.get(index)!]!);
}

/** One place for each item. */
export function placeNaively(items: readonly Item[], alignment: number): number[] {
  return stack(items.map(({ bytes }) => bytes), alignment);
}

/** Offsets of buffers that lie one behind the other. */
export function stack(sizes: readonly number[], alignment: number): number[] {
  let end = 0;
  return sizes.map((bytes) => {
    const start = end;
    end = alignUp(checkedBytes(start + bytes), alignment);
    return start;
  });
}

/** Bytes that a placement takes. */
export function totalBytes(items: readonly Item[], offsets: readonly number[]): number {
  return items.reduce((most, { bytes }, i) => Math.max(most, checkedBytes(offsets[i]! + bytes)), 0);
}

/** Sum of all sizes, each rounded up. */
export function naiveBytes(items: readonly Item[], alignment: number): number {
  return items.reduce((sum, { bytes }) => checkedBytes(sum + alignUp(bytes, alignment)), 0);
}

/** Where the most bytes are live, and how many: no placement can take less. */
export function peak(items: readonly Item[]): { readonly moment: number; readonly bytes: number } {
  const change = new Map<number, number>();
  for (const { bytes, first, last } of items) {
    change.set(first, (change.get(first) ?? 0) + bytes);
    change.set(last + 1, (change.get(last + 1) ?? 0) - bytes);
  }
  let live = 0, best = { moment: 0, bytes: 0 };
  for (const moment of [...change.keys()].sort((a, b) => a - b)) {
    live = checkedBytes(live + change.get(moment)!);
    if (live > best.bytes) best = { moment, bytes: live };
  }
  return best;
}
