// The best logits of a row: best first, equals by lower id, NaN before all numbers.
//
//   best_logits:       every thread keeps a list of the best that it has met; it takes chunks in the order of their
//                      ids, so of equals those that it met first stay
//   best_logits_merge: the threads' lists become one, in an order that knows no threads
//
// 16 logits at a time are compared with the worst of the list, which all but a few hundred of a row are not better than.
// A list for each chunk would be as exact, but would be filled anew in each: for 64 of 262,144 some 12,000 logits find
// a place in their lists instead of 1,100. A list is of this run if it has the run's number.
import { addressAt, chunksOf, generation, min, nextChunk, thread, u32At } from "../machine/runtime";
import {
  BEST_LOGITS_COUNT, BEST_LOGITS_LIST_BYTES, BEST_LOGITS_LISTS, BEST_LOGITS_MERGE_IDS, BEST_LOGITS_MERGE_LIST_BYTES,
  BEST_LOGITS_MERGE_LISTS, BEST_LOGITS_MERGE_LOGITS, BEST_LOGITS_MERGE_THREADS, BEST_LOGITS_MERGE_WANTED,
  BEST_LOGITS_ROW, BEST_LOGITS_WANTED,
} from "../generated/opcodes";

const CHUNK: u32 = 8192;

// A list: number of the run, how many it has, how many of them the merge has taken; then logits and ids in turns.
const KEPT: usize = 4, TAKEN: usize = 8, ENTRIES: usize = 16, ID: usize = 4;

@inline function entryAt(list: usize, index: u32): usize { return list + ENTRIES + (<usize>index << 3); }

@inline function isBetter(a: f32, b: f32): bool { return a > b || (a != a && b == b); }

export function best_logits(ip: usize): void {
  const count = u32At(ip, BEST_LOGITS_COUNT), wanted = u32At(ip, BEST_LOGITS_WANTED), row = addressAt(ip, BEST_LOGITS_ROW);
  const list = addressAt(ip, BEST_LOGITS_LISTS) + <usize>thread * u32At(ip, BEST_LOGITS_LIST_BYTES);
  const total = chunksOf(count, CHUNK);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    if (load<u32>(list) != generation) {
      store<u32>(list, generation);
      store<u32>(list, 0, KEPT);
    }
    const from = <u32>c * CHUNK;
    scan(row, from, min(count, from + CHUNK), list, wanted);
  }
}

function scan(row: usize, from: u32, to: u32, list: usize, wanted: u32): void {
  let id = from;
  let kept = load<u32>(list, KEPT);
  for (; id < to && kept < wanted; id++) insert(list, kept++, load<f32>(row + (<usize>id << 2)), id);
  store<u32>(list, kept, KEPT);
  if (id == to) return;
  const last = entryAt(list, wanted - 1);
  let worst = v128.load32_splat(last);
  for (; id + 16 <= to; id += 16) {
    const at = row + (<usize>id << 2);
    // NaN is not less than or equal to anything.
    const low = v128.and(f32x4.le(v128.load(at), worst), f32x4.le(v128.load(at, 16), worst));
    const high = v128.and(f32x4.le(v128.load(at, 32), worst), f32x4.le(v128.load(at, 48), worst));
    if (i32x4.all_true(v128.and(low, high))) continue;
    for (let i: u32 = 0; i < 16; i++) offer(list, wanted, load<f32>(at + (<usize>i << 2)), id + i);
    worst = v128.load32_splat(last);
  }
  for (; id < to; id++) offer(list, wanted, load<f32>(row + (<usize>id << 2)), id);
}

@inline function offer(list: usize, wanted: u32, logit: f32, id: u32): void {
  if (isBetter(logit, load<f32>(entryAt(list, wanted - 1)))) insert(list, wanted - 1, logit, id);
}

/** Puts a logit behind those of `place` entries that are no worse; what follows moves by one, over entry `place`. */
function insert(list: usize, place: u32, logit: f32, id: u32): void {
  let at = entryAt(list, place);
  const first = entryAt(list, 0);
  for (; at > first && isBetter(logit, load<f32>(at - 8)); at -= 8) store<u64>(at, load<u64>(at - 8));
  store<f32>(at, logit);
  store<u32>(at, id, ID);
}

export function best_logits_merge(ip: usize): void {
  const threads = u32At(ip, BEST_LOGITS_MERGE_THREADS), wanted = u32At(ip, BEST_LOGITS_MERGE_WANTED);
  const lists = addressAt(ip, BEST_LOGITS_MERGE_LISTS), bytes = <usize>u32At(ip, BEST_LOGITS_MERGE_LIST_BYTES);
  const ids = addressAt(ip, BEST_LOGITS_MERGE_IDS), logits = addressAt(ip, BEST_LOGITS_MERGE_LOGITS);
  for (let c = nextChunk(ip, 1); c >= 0; c = nextChunk(ip, 1)) {
    const end = lists + <usize>threads * bytes;
    for (let list = lists; list < end; list += bytes) store<u32>(list, 0, TAKEN);
    for (let i: usize = 0; i < <usize>wanted; i++) {
      const list = nextList(lists, end, bytes);
      const taken = load<u32>(list, TAKEN);
      const entry = entryAt(list, taken);
      store<u32>(list, taken + 1, TAKEN);
      store<f32>(logits + (i << 2), load<f32>(entry));
      store<u32>(ids + (i << 2), load<u32>(entry, ID));
    }
  }
}

/** The list whose next entry is the best; there is one, because together they have as many as are wanted. */
function nextList(lists: usize, end: usize, bytes: usize): usize {
  let best = lists, logit: f32 = 0, id: u32 = 0xffffffff;
  for (let list = lists; list < end; list += bytes) {
    const taken = load<u32>(list, TAKEN);
    if (load<u32>(list) != generation || taken == load<u32>(list, KEPT)) continue;
    const entry = entryAt(list, taken);
    const other = load<f32>(entry), otherId = load<u32>(entry, ID);
    const isNext = id == 0xffffffff || isBetter(other, logit) || (!isBetter(logit, other) && otherId < id);
    if (!isNext) continue;
    best = list;
    logit = other;
    id = otherId;
  }
  return best;
}
