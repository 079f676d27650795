// Whether a GEMV should fetch ahead of itself (gen/gemv.ts), which no property of a processor tells that WebAssembly
// can see: on Intel's with VNNI it gains up to a third, on a Zen 5, whose own prefetching keeps up, it costs up to a
// tenth. So each thread finds out, and goes on doing so, because neighbours on a host change what is faster: now and
// then it takes two equal runs of tiles one after the other, one of them fetching, and the clock votes. Which way is
// taken changes nothing in the results.

@external("env", "now") declare function now(): f64;

/** Bytes of each of the two runs: some microseconds. */
const RUN_BYTES: usize = 64 * 1024;
/** Chunks from one trial to the next. */
const INTERVAL: u32 = 64;
/** Votes that are remembered. */
const MOST: i32 = 8;

/** Of one row, and of a few, which do more on a line: on a Zen 4 they are 1.5 times as fast without. */
let score: i32 = 0;
let fewScore: i32 = 0;
let chunksSeen: u32 = 0;
let isSecond: bool = false;
let start: f64 = 0;
let firstTime: f64 = 0;

/** What this thread does at present with so many rows; as long as votes on a few are even, as with one. */
export function fetchesAhead(rows: u32): bool { return (rows == 1 || fewScore == 0 ? score : fewScore) >= 0; }

/** Tiles of a run if this chunk is for a trial, which has room for two of them; 0 if it is not. */
export function trialTiles(tiles: u32, tileBytes: usize): u32 {
  const run = <u32>((RUN_BYTES + tileBytes - 1) / tileBytes);
  if (tiles < 2 * run || ++chunksSeen % INTERVAL != 0) return 0;
  return run;
}

/** Before the first run; says whether that one fetches: they take turns. */
export function beginTrial(): bool {
  start = now();
  return (chunksSeen / INTERVAL & 1) == 0;
}

/** Between the runs. */
export function turnTrial(): void {
  const middle = now();
  firstTime = middle - start;
  start = middle;
}

/** After the second run. */
export function endTrial(fetchedFirst: bool, rows: u32): void {
  const secondTime = now() - start;
  if (secondTime == firstTime) return;
  const vote = fetchedFirst == (firstTime < secondTime) ? 1 : -1;
  if (rows == 1) score = max(-MOST, min(MOST, score + vote));
  else fewScore = max(-MOST, min(MOST, fewScore + vote));
}
