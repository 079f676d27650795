// Byte-pair merging of one stretch of symbols: the best pair is merged first, the leftmost among
// equals, until no pair is left. A doubly linked list over typed arrays and a binary heap make it
// O(n log n), so a megabyte of one letter is no trap. Heap entries are not removed when a neighbour
// changes; an entry is dropped when its two symbols are no longer the ones it was made for.
//
// Looking a pair up costs a joined string and a hash; a direct-mapped table of pairs in typed arrays
// answers the pairs met before. It is filled as texts come in, so building costs nothing.
//
// Symbols are ids of the vocabulary, or negative numbers for characters that have none; what a
// negative number means is between the caller and its lookup.

/** What merging two symbols gives. */
export interface Merge {
  /** Smaller is merged earlier. */
  readonly rank: number;
  /** Symbol that stands for the pair. */
  readonly id: number;
}

/** Merges `symbols` in place and returns how many are left. */
export type Merger = (symbols: Int32Array, count: number) => number;

const CACHE_SIZE = 1 << 14;
/** No symbol has this number; it marks the empty slots of the pair table. */
const NO_SYMBOL = -0x80000000;

/** Successor of a symbol that was merged into the one before it. */
const GONE = -2;

interface PairCache {
  readonly left: Int32Array;
  readonly right: Int32Array;
  readonly rank: Float64Array;
  readonly id: Int32Array;
}

interface Heap {
  rank: Float64Array;
  at: Int32Array;
  left: Int32Array;
  right: Int32Array;
  id: Int32Array;
  size: number;
}

function createHeap(capacity: number): Heap {
  return {
    rank: new Float64Array(capacity),
    at: new Int32Array(capacity),
    left: new Int32Array(capacity),
    right: new Int32Array(capacity),
    id: new Int32Array(capacity),
    size: 0,
  };
}

function copyEntry(heap: Heap, from: number, to: number): void {
  heap.rank[to] = heap.rank[from];
  heap.at[to] = heap.at[from];
  heap.left[to] = heap.left[from];
  heap.right[to] = heap.right[from];
  heap.id[to] = heap.id[from];
}

function push(heap: Heap, rank: number, at: number, left: number, right: number, id: number): void {
  let i = heap.size++;
  while (i > 0) {
    const parent = (i - 1) >> 1;
    if (heap.rank[parent] < rank || (heap.rank[parent] === rank && heap.at[parent] <= at)) break;
    copyEntry(heap, parent, i);
    i = parent;
  }
  heap.rank[i] = rank;
  heap.at[i] = at;
  heap.left[i] = left;
  heap.right[i] = right;
  heap.id[i] = id;
}

function dropTop(heap: Heap): void {
  const last = --heap.size;
  if (last === 0) return;
  const rank = heap.rank[last];
  const at = heap.at[last];
  let i = 0;
  for (let child = 1; child < last; child = 2 * i + 1) {
    const other = child + 1;
    if (
      other < last &&
      (heap.rank[other] < heap.rank[child] ||
        (heap.rank[other] === heap.rank[child] && heap.at[other] < heap.at[child]))
    ) child = other;
    if (rank < heap.rank[child] || (rank === heap.rank[child] && at <= heap.at[child])) break;
    copyEntry(heap, child, i);
    i = child;
  }
  copyEntry(heap, last, i);
}

/**
 * Makes a merger from a function that says what a pair gives.
 *
 * @param lookup Rank and symbol of a pair, or undefined where the pair does not merge.
 */
export function createMerger(
  lookup: (left: number, right: number) => Merge | undefined,
): Merger {
  const cache: PairCache = {
    left: new Int32Array(CACHE_SIZE).fill(NO_SYMBOL),
    right: new Int32Array(CACHE_SIZE),
    rank: new Float64Array(CACHE_SIZE),
    id: new Int32Array(CACHE_SIZE),
  };

  /** Slot of the cache that answers the pair; an id of -1 in it means that the pair does not merge. */
  function slotOf(left: number, right: number): number {
    const hash = Math.imul(left, 0x9e3779b1) ^ Math.imul(right, 0x85ebca6b);
    const slot = (hash ^ (hash >>> 15)) & (CACHE_SIZE - 1);
    if (cache.left[slot] !== left || cache.right[slot] !== right) {
      const merge = lookup(left, right);
      cache.left[slot] = left;
      cache.right[slot] = right;
      cache.rank[slot] = merge?.rank ?? 0;
      cache.id[slot] = merge?.id ?? -1;
    }
    return slot;
  }

  /** Words are short as a rule; scanning a few symbols again beats keeping a heap. */
  function mergeShort(symbols: Int32Array, count: number): number {
    while (count > 1) {
      let best = -1;
      let bestRank = Infinity;
      let bestId = -1;
      for (let i = 0; i + 1 < count; i++) {
        const slot = slotOf(symbols[i], symbols[i + 1]);
        if (cache.id[slot] >= 0 && cache.rank[slot] < bestRank) {
          best = i;
          bestRank = cache.rank[slot];
          bestId = cache.id[slot];
        }
      }
      if (best < 0) break;
      symbols[best] = bestId;
      symbols.copyWithin(best + 1, best + 2, count);
      count--;
    }
    return count;
  }

  function mergeLong(symbols: Int32Array, count: number): number {
    const next = new Int32Array(count);
    const previous = new Int32Array(count);
    // Each of the count - 1 pairs enters once, and each of at most count - 1 merges adds two.
    const heap = createHeap(3 * count);

    function offer(at: number, right: number): void {
      const slot = slotOf(symbols[at], symbols[right]);
      if (cache.id[slot] < 0) return;
      push(heap, cache.rank[slot], at, symbols[at], symbols[right], cache.id[slot]);
    }

    for (let i = 0; i < count; i++) {
      previous[i] = i - 1;
      next[i] = i + 1 < count ? i + 1 : -1;
    }
    for (let i = 0; i + 1 < count; i++) offer(i, i + 1);
    while (heap.size > 0) {
      const at = heap.at[0];
      const left = heap.left[0];
      const right = heap.right[0];
      const id = heap.id[0];
      dropTop(heap);
      const second = next[at];
      if (second < 0 || symbols[at] !== left || symbols[second] !== right) continue;
      symbols[at] = id;
      const third = next[second];
      next[at] = third;
      next[second] = GONE;
      if (third >= 0) {
        previous[third] = at;
        offer(at, third);
      }
      if (previous[at] >= 0) offer(previous[at], at);
    }
    let left = 0;
    for (let i = 0; i >= 0; i = next[i]) symbols[left++] = symbols[i];
    return left;
  }

  return (symbols, count) => count <= 24 ? mergeShort(symbols, count) : mergeLong(symbols, count);
}
