// Attention over the KV cache with an online softmax.
//
//   for each unit: rows of one slot, KV heads of theirs:
//     for blocks of 32 positions from the first to the last that any of the rows sees, for each KV head:
//       s = q · K; softcap; mask; m' = max(m, max s); p = exp(s - m'); l = l · exp(m - m') + Σ p
//       acc = acc · exp(m - m') + p · V
//     y = acc / l
//
// 1. The heads of a group and the rows of a tile share each read of K and V: of a float16 cache up to four
//    queries at a time, which are read where they lie (f16.ts); of float32, all of a tile; of Q8_0, up to four of a
//    row (rows.ts).
// 2. Blocks of positions outside the window of all rows of the tile are skipped, not masked. They begin at multiples
//    of their length, so that a row's sums do not hang on the tile that it is in, whose size hangs on the threads.
// 3. With few rows (decoding) what a row sees is cut into segments; the segments' (m, l, acc) are merged by
//    attention_combine; the sums of a row that is not shared out are cut alike, and merged by its unit. The cut depends on
//    the row's length only, never on threads or on other rows, so results are the same on any number of threads and in
//    any company. How many KV heads of a segment, or of a row that shares its slot with
//    none beside it, are a unit changes no result: as many as leave each thread two units, because
// 4. memory is the limit of a long context, and what lies in a row is one stretch for all heads, but short pieces
//    with gaps for one. Before it works on a run of positions, a unit reads a byte of every line of it, K and
//    then V, upwards (touch): the processor's own prefetch follows that, and did not follow the heads' pieces.
// 5. A float16 moved to float32's place is its value times 2^-112. Mending that by a multiplication for
//    each value would cost a quarter of the loop, so q carries 2^100, the scores 2^12, and the
//    probabilities 2^112 (they are at most 1). kv_append reports what is not finite in float16. The scales of
//    a cache of Q8_0 are float16 and moved alike (cache_blocks.ts).
// 6. A sink starts a query's maximum and sum; a slope is added to the scores of a block (never together
//    with a soft cap, which would come before it).
// 7. Rows of a slot lie in pages of 64; blocks and runs never cross one, so its place is looked up once for each.
// 8. What a decoder sees of its source ends where the source does: then the list of positions has the ends. A row may
//    see nothing; its result is zeros.
// 9. Rows past the end of a block are read again from its last row: nothing outside the cache is touched.
//
// What 1, 3 and 4 gain, and what was tried and not kept (touching while computing, touching downwards, units of a
// part of a row), is in bench/results/kernels.md.
import { addressAt, chunksOf, min, nextChunk, u32At } from "../machine/runtime";
import { attendHalf } from "./f16";
import { lastSeen, mergeSegments, NOTHING, segmentCount } from "./parts";
import { attendRows } from "./rows";
import {
  ATTENTION_CACHE, ATTENTION_HEADS, ATTENTION_KV_HEADS, ATTENTION_ROWS,
  ATTENTION_SEGMENTS, ATTENTION_SLOTS, ATTENTION_SPLIT_ROWS, ATTENTION_THREADS, ATTENTION_TILE, ATTENTION_VALUE_SIZE,
  ATTENTION_WINDOW, ATTENTION_Y,
  ATTENTION_COMBINE_BEHIND, ATTENTION_COMBINE_HEADS, ATTENTION_COMBINE_PARTIALS, ATTENTION_COMBINE_POSITIONS, ATTENTION_COMBINE_ROWS,
  ATTENTION_COMBINE_SEGMENTS, ATTENTION_COMBINE_SPLIT_ROWS,
  ATTENTION_COMBINE_VALUE_SIZE, ATTENTION_COMBINE_WINDOW, ATTENTION_COMBINE_Y,
} from "../generated/opcodes";

/** Parts that the KV heads of a row are cut into, all alike: as few as give every thread `UNITS` units. */
@inline function partsOf(kvHeads: u32, segments: u32, threads: u32): u32 {
  let parts: u32 = 1;
  while (parts < kvHeads && (parts * segments < UNITS * threads || kvHeads % parts)) parts++;
  return parts;
}

/** Units that a thread has at least, so that threads come out even, if there are so many KV heads. */
const UNITS: u32 = 2;

/** Whether no row follows one of the same slot. */
function standAlone(slots: usize, rows: u32): bool {
  for (const end = slots + (<usize>(rows - 1) << 2); slots < end; slots += 4) {
    if (load<u32>(slots) == load<u32>(slots, 4)) return false;
  }
  return true;
}

/** Rows of a unit: fewer than would go together where threads would have nothing to do. */
function tileOf(ip: usize, rows: u32, kvHeads: u32): u32 {
  const threads = u32At(ip, ATTENTION_THREADS);
  let tile = u32At(ip, ATTENTION_TILE);
  while (tile > 1 && chunksOf(rows, tile) * kvHeads < threads) tile = (tile + 1) >> 1;
  return tile;
}

@inline function attend(
  ip: usize, row: u32, end: u32, kvFirst: u32, kvEnd: u32, segment: u32, partial: bool,
): void {
  if (lastSeen(ip, row) == NOTHING) clear(ip, row, kvFirst, kvEnd);
  else if (u32At(ip, ATTENTION_CACHE) == 1) attendHalf(ip, row, end, kvFirst, kvEnd, segment, partial);
  else attendRows(ip, row, end, kvFirst, kvEnd, segment, partial);
}

/** The result of a row that sees nothing. */
function clear(ip: usize, row: u32, kvFirst: u32, kvEnd: u32): void {
  const heads = u32At(ip, ATTENTION_HEADS), group = heads / u32At(ip, ATTENTION_KV_HEADS);
  const bytes = <usize>u32At(ip, ATTENTION_VALUE_SIZE) << 2;
  const first = addressAt(ip, ATTENTION_Y) + (<usize>row * heads + kvFirst * group) * bytes;
  memory.fill(first, 0, <usize>((kvEnd - kvFirst) * group) * bytes);
}

/** Whether a row reads the cache of the one before it, and both see something. */
@inline function goesOn(ip: usize, slots: usize, row: u32): bool {
  const at = slots + (<usize>row << 2);
  return load<u32>(at) == load<u32>(at - 4) && lastSeen(ip, row) != NOTHING && lastSeen(ip, row - 1) != NOTHING;
}

export function attention(ip: usize): void {
  const rows = u32At(ip, ATTENTION_ROWS), kvHeads = u32At(ip, ATTENTION_KV_HEADS);
  const slots = addressAt(ip, ATTENTION_SLOTS);
  if (rows <= u32At(ip, ATTENTION_SPLIT_ROWS)) {
    const window = u32At(ip, ATTENTION_WINDOW);
    const most = u32At(ip, ATTENTION_SEGMENTS);
    let all: u32 = 0;
    for (let row: u32 = 0; row < rows; row++) {
      all += segmentCount(lastSeen(ip, row), window, most);
    }
    const parts = partsOf(kvHeads, all, u32At(ip, ATTENTION_THREADS)), together = kvHeads / parts, total = parts * all;
    for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
      let row: u32 = 0, unit = <u32>c;
      let segments = segmentCount(lastSeen(ip, 0), window, most);
      while (unit >= parts * segments) {
        unit -= parts * segments;
        row++;
        segments = segmentCount(lastSeen(ip, row), window, most);
      }
      const first = unit % parts * together;
      attend(ip, row, row + 1, first, first + together, unit / parts, segments > 1);
    }
    return;
  }
  if (standAlone(slots, rows)) { // they share no read of K and V
    const parts = partsOf(kvHeads, rows, u32At(ip, ATTENTION_THREADS)), together = kvHeads / parts;
    for (let c = nextChunk(ip, rows * parts); c >= 0; c = nextChunk(ip, rows * parts)) {
      const row = <u32>c / parts, first = <u32>c % parts * together;
      attend(ip, row, row + 1, first, first + together, 0, false);
    }
    return;
  }
  const tile = tileOf(ip, rows, kvHeads);
  const total = chunksOf(rows, tile) * kvHeads;
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    // the last rows see the most positions: begin with them
    const unit = total - 1 - <u32>c;
    let row = unit / kvHeads * tile;
    const end = min(rows, row + tile);
    while (row < end) { // runs of rows of one slot
      let next = row + 1;
      while (next < end && goesOn(ip, slots, next)) next++;
      attend(ip, row, next, unit % kvHeads, unit % kvHeads + 1, 0, false);
      row = next;
    }
  }
}

/** `lastSeen` of this instruction. */
@inline function lastMerged(ip: usize, row: u32): u32 {
  return load<u32>(addressAt(ip, ATTENTION_COMBINE_POSITIONS) + (<usize>row << 2)) - u32At(ip, ATTENTION_COMBINE_BEHIND);
}

/** Merges the segments of each head. A chunk is four heads. */
export function attention_combine(ip: usize): void {
  const rows = u32At(ip, ATTENTION_COMBINE_ROWS), heads = u32At(ip, ATTENTION_COMBINE_HEADS);
  const window = u32At(ip, ATTENTION_COMBINE_WINDOW);
  const most = u32At(ip, ATTENTION_COMBINE_SEGMENTS);
  const parts = chunksOf(heads, 4), bytes = <usize>u32At(ip, ATTENTION_COMBINE_VALUE_SIZE) << 2;
  const partials = addressAt(ip, ATTENTION_COMBINE_PARTIALS);
  let total: u32 = 0; // none if no row was cut
  if (rows <= u32At(ip, ATTENTION_COMBINE_SPLIT_ROWS)) {
    for (let row: u32 = 0; row < rows; row++) {
      if (segmentCount(lastMerged(ip, row), window, most) > 1) total = rows * parts;
    }
  }
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const row = <u32>c / parts, first = <u32>c % parts * 4;
    const segments = segmentCount(lastMerged(ip, row), window, most);
    if (segments == 1) continue;
    for (let head = first; head < min(heads, first + 4); head++) {
      const index = <usize>row * heads + head;
      mergeSegments(
        partials + index * most * (bytes + 16), segments, bytes, addressAt(ip, ATTENTION_COMBINE_Y) + index * bytes);
    }
  }
}
