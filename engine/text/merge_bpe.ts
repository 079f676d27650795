// Byte-pair merging of one stretch of symbols: the best pair is merged first, the leftmost among
// equals, until no pair is left. Symbols are a doubly linked list over typed arrays; the places of
// pairs lie in a bucket for each rank, in order, and a heap holds the ranks. A bucket is walked from
// left to right, so megabytes of one word cost memory and time in proportion, where a heap of all
// places would jump about. Places are not removed when a neighbour changes; one is dropped when the
// pair that is there by then has another rank.
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

/** Places whose pairs have one rank. */
interface Bucket {
  readonly rank: number;
  /** In order once it is walked. */
  readonly places: number[];
  /** Index of the next one; -1 before the walk. */
  at: number;
  /** A heap of places that came during the walk. */
  readonly late: number[];
}

/** Adds to a binary heap whose least number is at 0. */
function push(heap: number[], value: number): void {
  let i = heap.length;
  heap.push(value);
  while (i > 0) {
    const parent = (i - 1) >> 1;
    if (heap[parent] <= value) break;
    heap[i] = heap[parent];
    i = parent;
  }
  heap[i] = value;
}

/** Takes the least number from a heap that has one. */
function pop(heap: number[]): number {
  const top = heap[0];
  const value = heap.pop() as number;
  const size = heap.length;
  if (size === 0) return top;
  let i = 0;
  for (let child = 1; child < size; child = 2 * i + 1) {
    if (child + 1 < size && heap[child + 1] < heap[child]) child++;
    if (value <= heap[child]) break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = value;
  return top;
}

/** Takes the leftmost place, or -1 when none is left. */
function takeLeftmost(bucket: Bucket): number {
  const { places, late } = bucket;
  if (bucket.at < 0) {
    bucket.at = 0;
    if (places.some((place, i) => i > 0 && place < places[i - 1])) places.sort((a, b) => a - b);
  }
  if (late.length > 0 && (bucket.at === places.length || late[0] < places[bucket.at])) {
    return pop(late);
  }
  return bucket.at < places.length ? places[bucket.at++] : -1;
}

/**
 * Makes a merger from a function that says what a pair gives.
 *
 * @param lookup Rank and symbol of a pair, or undefined where the pair does not merge.
 */
export function createMerger(lookup: (left: number, right: number) => Merge | undefined): Merger {
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
    const buckets = new Map<number, Bucket>();
    const ranks: number[] = [];

    function offer(at: number): void {
      const slot = slotOf(symbols[at], symbols[next[at]]);
      if (cache.id[slot] < 0) return;
      const rank = cache.rank[slot];
      let bucket = buckets.get(rank);
      if (bucket === undefined) {
        buckets.set(rank, bucket = { rank, places: [], at: -1, late: [] });
        push(ranks, rank);
      }
      if (bucket.at < 0) bucket.places.push(at);
      else push(bucket.late, at);
    }

    for (let i = 0; i < count; i++) {
      previous[i] = i - 1;
      next[i] = i + 1 < count ? i + 1 : -1;
    }
    for (let i = 0; i + 1 < count; i++) offer(i);
    while (ranks.length > 0) {
      const bucket = buckets.get(ranks[0]) as Bucket;
      // Until a better rank comes up: what was merged may make one.
      while (bucket.rank === ranks[0]) {
        const at = takeLeftmost(bucket);
        if (at < 0) {
          buckets.delete(pop(ranks));
          break;
        }
        const second = next[at];
        if (second < 0) continue;
        const slot = slotOf(symbols[at], symbols[second]);
        if (cache.id[slot] < 0 || cache.rank[slot] !== bucket.rank) continue;
        symbols[at] = cache.id[slot];
        const third = next[second];
        next[at] = third;
        next[second] = GONE;
        if (third >= 0) {
          previous[third] = at;
          offer(at);
        }
        if (previous[at] >= 0) offer(previous[at]);
      }
    }
    let left = 0;
    for (let i = 0; i >= 0; i = next[i]) symbols[left++] = symbols[i];
    return left;
  }

  return (symbols, count) => count <= 24 ? mergeShort(symbols, count) : mergeLong(symbols, count);
}
