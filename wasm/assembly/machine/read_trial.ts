// How a GEMV reads its weights (gen/gemv.ts), which no property of a processor tells that WebAssembly can see. Whether it fetches
// ahead of itself: on Intel's with VNNI that gains up to a third, on a Zen 4 it takes half as long again, on a Zen 5 a tenth. Whether it
// takes one tile after the other or two in turns: two gain a tenth to a third on a Zen 3 and on Intel's, and on a Zen 4 a fifth
// where rows are long, so that activations would leave the nearest cache from tile to tile, but lose a sixth where they are short.
// So each thread finds out, and goes on doing so, because neighbours on a host change what is faster: now and then it takes
// three equal runs of tiles one after the other. The first one, which comes to memory that nothing has asked for, is slower whatever it
// does, and is not measured; of the others one does what is in question. The third may still be faster for being the third,
// so two trials, in both orders, make a vote. Whatever is found changes nothing in the results.
import { CONTROL_THREADS } from "../generated/opcodes";
import { thread } from "./runtime";

@external("env", "now") declare function now(): f64;

/** What is in question: fetching with one row, with a few, which do more on a line; one short tile after the other, long ones; and nothing. */
const FETCH: u32 = 0, FETCH_FEW: u32 = 1, ONE_SHORT: u32 = 2, ONE_LONG: u32 = 3, NOTHING: u32 = 4;
/** Bytes of tiles that are long. */
const LONG: usize = 20 * 1024;

/** Bytes of each of the runs: some microseconds. */
const RUN_BYTES: usize = 64 * 1024;
/** Least tiles of a run: the last of its tiles fetch nothing, so with few of them there is nothing to measure. */
const RUN_TILES: u32 = 8;
/** Chunks from one trial to the next, until votes agree and then. */
const FIRST_INTERVAL: u32 = 8, INTERVAL: u32 = 64;
/** Votes that are remembered. */
const MOST: i32 = 8;
/** Where a thread's line has, for each question, votes for less those against, and what the first of two trials found. */
const VOTES: usize = 16, GAIN: usize = 20;

let chunksSeen: u32 = 0;
let last: u32 = FETCH;
/** What this thread tries just now, and whether this run does it. */
let tried: u32 = NOTHING;
let does: bool = false;
let start: f64 = 0;
let secondTime: f64 = 0;

@inline function stateOf(question: u32): usize { return CONTROL_THREADS + 64 * <usize>thread + 8 * <usize>question; }
function votesOn(question: u32): i32 { return load<i32>(stateOf(question), VOTES); }
function holds(question: u32): bool { return question == tried ? does : votesOn(question) > 0; }

/** Whether this thread fetches with so many rows; as long as votes on a few are even, as with one. */
export function fetchesAhead(rows: u32): bool {
  return holds(rows > 1 && (tried == FETCH_FEW || votesOn(FETCH_FEW)) ? FETCH_FEW : FETCH);
}

@inline function oneTile(tileBytes: usize): u32 { return tileBytes < LONG ? ONE_SHORT : ONE_LONG; }

/** Whether this thread takes two tiles in turns for one row. */
export function takesTurns(tileBytes: usize): bool { return !holds(oneTile(tileBytes)); }

/** Tiles of a run if this chunk is for a trial, which has room for three of them; 0 if it is not. */
export function trialTiles(tiles: u32, tileBytes: usize, rows: u32, canFetch: bool): u32 {
  const run = max(<u32>((RUN_BYTES + tileBytes - 1) / tileBytes), RUN_TILES);
  if (tiles < 3 * run || (rows > 1 && !canFetch)) return 0;
  const question = rows > 1 ? FETCH_FEW : canFetch && last != FETCH ? FETCH : oneTile(tileBytes);
  if (++chunksSeen % (abs(votesOn(question)) < MOST ? FIRST_INTERVAL : INTERVAL)) return 0;
  last = question;
  return run;
}

/** Before the second run. */
export function beginTrial(): void {
  tried = last;
  does = load<f32>(stateOf(tried), GAIN) == 0;
  start = now();
}

/** Between the second run and the third. */
export function turnTrial(): void {
  const middle = now();
  does = !does;
  secondTime = middle - start;
  start = middle;
}

/** After the third run. */
export function endTrial(): void {
  const thirdTime = now() - start, state = stateOf(tried), before = load<f32>(state, GAIN);
  const more = <f32>((thirdTime - secondTime) / (thirdTime + secondTime)), both = before - more;
  tried = NOTHING;
  store<f32>(state, before == 0 ? more : 0, GAIN);
  if (before == 0 || both == 0) return;
  store<i32>(state, max(-MOST, min(MOST, load<i32>(state, VOTES) + (both > 0 ? 1 : -1))), VOTES);
}
