// Whether a GEMV should fetch ahead of itself (gen/gemv.ts), which no property of a processor tells that WebAssembly
// can see: on Intel's with VNNI it gains up to a third, on a Zen 4 it takes half as long again, on a Zen 5 a tenth. So each
// thread finds out, and goes on doing so, because neighbours on a host change what is faster: now and then it takes three
// equal runs of tiles one after the other. The first one, which comes to memory that nothing has asked for, is slower
// whatever it does, and is not measured; of the others one fetches. The third may still be faster than the second for being
// the third, so two trials, in both orders, make a vote. Which way is taken changes nothing in the results.

@external("env", "now") declare function now(): f64;

/** Bytes of each of the runs: some microseconds. */
const RUN_BYTES: usize = 64 * 1024;
/** Least tiles of a run: the last of its tiles fetch nothing, so with few of them there is nothing to measure. */
const RUN_TILES: u32 = 8;
/** Chunks from one trial to the next, until votes agree and then. */
const FIRST_INTERVAL: u32 = 8, INTERVAL: u32 = 64;
/** Votes that are remembered. */
const MOST: i32 = 8;

/** Votes for fetching less those against: of one row, and of a few, which do more on a line. */
let score: i32 = 0;
let fewScore: i32 = 0;
/** What the first of two trials found that fetching gains, in parts of the time of both runs; 0: there is none yet. */
let gain: f64 = 0;
let fewGain: f64 = 0;
let chunksSeen: u32 = 0;
let start: f64 = 0;
let secondTime: f64 = 0;

/** What this thread does at present with so many rows; as long as votes on a few are even, as with one. */
export function fetchesAhead(rows: u32): bool { return (rows == 1 || fewScore == 0 ? score : fewScore) > 0; }

/** Tiles of a run if this chunk is for a trial, which has room for three of them; 0 if it is not. */
export function trialTiles(tiles: u32, tileBytes: usize, rows: u32): u32 {
  const votes = abs(rows == 1 ? score : fewScore), wanted = <u32>((RUN_BYTES + tileBytes - 1) / tileBytes);
  const run = max(wanted, RUN_TILES), interval = votes < MOST ? FIRST_INTERVAL : INTERVAL;
  return tiles < 3 * run || ++chunksSeen % interval ? 0 : run;
}

/** Before the second run; says whether that one fetches: they take turns. */
export function beginTrial(rows: u32): bool {
  start = now();
  return (rows == 1 ? gain : fewGain) == 0;
}

/** Between the second run and the third. */
export function turnTrial(): void {
  const middle = now();
  secondTime = middle - start;
  start = middle;
}

/** After the third run. */
export function endTrial(rows: u32): void {
  const thirdTime = now() - start, before = rows == 1 ? gain : fewGain;
  const more = (thirdTime - secondTime) / (thirdTime + secondTime), both = before - more;
  if (rows == 1) gain = before == 0 ? more : 0;
  else fewGain = before == 0 ? more : 0;
  if (before == 0 || both == 0) return;
  const vote = both > 0 ? 1 : -1;
  if (rows == 1) score = max(-MOST, min(MOST, score + vote));
  else fewScore = max(-MOST, min(MOST, fewScore + vote));
}
