// Shares out the tiles of a weight: each thread's first chunk is large, the others small
// (wasm/weight_chunks.ts).
//
//   while (nextTiles(ip, count, large, threads, chunk)) for (let t = firstTile; t < lastTile; t++) { … }
import { chunksOf, min, nextChunk } from "./runtime";

/** The range that nextTiles gave this thread. */
export let firstTile: u32 = 0;
export let lastTile: u32 = 0;

/** Takes the next range; false when none is left. */
export function nextTiles(ip: usize, count: u32, large: u32, threads: u32, chunk: u32): bool {
  const shared = large * threads;
  const largeChunks = large ? threads : 0;
  const c = nextChunk(ip, largeChunks + chunksOf(count - shared, chunk));
  if (c < 0) return false;
  if (<u32>c < largeChunks) {
    firstTile = <u32>c * large;
    lastTile = firstTile + large;
  } else {
    firstTile = shared + (<u32>c - largeChunks) * chunk;
    lastTile = min(firstTile + chunk, count);
  }
  return true;
}
