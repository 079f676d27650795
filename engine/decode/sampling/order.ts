// Putting candidates in order without sorting a vocabulary. The order is by logit, best first, equals by
// lower id, and only a prefix of it is ever made: by a bounded heap in one scan while the prefix is
// short, else by the native sort of 64-bit keys (order-inverted float bits above, id below), which needs
// no comparison function. All works in place on the arrays of one `Ordered`.

/** Longest prefix that the heap makes; beyond it the native sort is faster. */
const HEAP_LIMIT = 1024;

/** Parallel arrays of ids and logits with a prefix in order. */
export interface Ordered {
  /** Token ids, `size` of them. */
  readonly ids: Int32Array;
  /** Logits, parallel to `ids`. */
  readonly logits: Float32Array;
  /** Scratch of the native sort, as long as `ids`. */
  readonly keys: BigUint64Array;
  /** How many entries of the arrays count. */
  size: number;
  /** The first `sorted` entries are the best ones, in order. */
  sorted: number;
}

/** Extends the ordered prefix to at least `count` entries (or all). */
export function sortTop(list: Ordered, count: number): void {
  const wanted = Math.min(count, list.size) - list.sorted;
  if (wanted <= 0) return;
  if (wanted <= HEAP_LIMIT && wanted * 4 <= list.size) selectByHeap(list, list.sorted, wanted);
  else sortRest(list);
}

// Keeps the best `count` of the entries from `start` on in a heap with the worst of them on top, at the
// front of that range; then takes the heap apart into order.
function selectByHeap(list: Ordered, start: number, count: number): void {
  const { ids, logits, size } = list;
  for (let i = (count >> 1) - 1; i >= 0; i--) siftDown(list, start, i, count);
  let worst = logits[start]!;
  for (let i = start + count; i < size; i++) {
    const logit = logits[i]!;
    if (logit < worst || (logit === worst && ids[i]! > ids[start]!)) continue;
    swap(list, start, i);
    siftDown(list, start, 0, count);
    worst = logits[start]!;
  }
  for (let end = count - 1; end > 0; end--) {
    swap(list, start, start + end);
    siftDown(list, start, 0, end);
  }
  list.sorted = start + count;
}

function siftDown(list: Ordered, start: number, index: number, count: number): void {
  for (let parent = index, child = 2 * parent + 1; child < count; child = 2 * parent + 1) {
    if (child + 1 < count && isWorse(list, start + child + 1, start + child)) child++;
    if (!isWorse(list, start + child, start + parent)) return;
    swap(list, start + child, start + parent);
    parent = child;
  }
}

function isWorse({ ids, logits }: Ordered, a: number, b: number): boolean {
  return logits[a]! < logits[b]! || (logits[a] === logits[b] && ids[a]! > ids[b]!);
}

function swap({ ids, logits }: Ordered, a: number, b: number): void {
  const id = ids[a]!;
  ids[a] = ids[b]!;
  ids[b] = id;
  const logit = logits[a]!;
  logits[a] = logits[b]!;
  logits[b] = logit;
}

function sortRest(list: Ordered): void {
  const { ids, logits, keys, size, sorted } = list;
  const words = new Uint32Array(keys.buffer);
  const bits = new Uint32Array(logits.buffer);
  for (let i = sorted; i < size; i++) {
    words[2 * i] = ids[i]!;
    words[2 * i + 1] = descendingKey(bits[i]!);
  }
  keys.subarray(sorted, size).sort();
  for (let i = sorted; i < size; i++) {
    ids[i] = words[2 * i]!;
    bits[i] = descendingKey(words[2 * i + 1]!); // its own inverse
  }
  list.sorted = size;
}

// Float bits to an unsigned number that grows as the float falls. Negative floats already do; of the
// others all bits but the sign are turned over. Both zeros become +0 first, since they compare equal.
function descendingKey(bits: number): number {
  if (bits === 0x80000000) return 0x7fffffff;
  return bits & 0x80000000 ? bits : 0x7fffffff - bits;
}
