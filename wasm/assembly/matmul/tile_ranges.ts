// Shares out the tiles of a weight. Few rows: each thread's first chunk is large, the others small
// (wasm/weight_chunks.ts). Many rows: a chunk is a block of rows, which stays in a cache, and some tiles.
//
//   while (nextTiles(ip, count, large, threads, chunk)) for (let t = firstTile; t < lastTile; t++) { … }
//   while (nextBlock(ip, rows, block, count, height)) …rows [firstRow, lastRow) times tiles [firstTile, lastTile)…
import { chunksOf, min, nextChunk, nextSmallChunk } from "../machine/runtime";

/** The range that nextTiles gave this thread. */
export let firstTile: u32 = 0;
export let lastTile: u32 = 0;
/** The block that nextBlock gave it. */
export let firstRow: u32 = 0;
export let lastRow: u32 = 0;

/** Tiles of a chunk of a block: some 50 µs of work, and enough chunks for many threads. */
const BLOCK_TILES: u32 = 6;

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

/** Tiles of each of two halves of tiles [first, end), which take turns; one may be left over. */
export function halfOf(first: u32, end: u32): u32 { return end > first ? (end - first) >> 1 : 0; }

/** Takes the next tiles of a block of at most `most` rows, a multiple of `height`, all blocks alike; false when none is left. */
export function nextBlock(ip: usize, rows: u32, most: u32, count: u32, height: u32): bool {
  const parts = chunksOf(count, BLOCK_TILES), blocks = most ? chunksOf(rows, most) : 0;
  const c = nextSmallChunk(ip, blocks * parts);
  if (c < 0) return false;
  const block = chunksOf(chunksOf(rows, blocks), height) * height;
  firstRow = min(<u32>c / parts * block, rows);
  lastRow = min(firstRow + block, rows);
  firstTile = <u32>c % parts * BLOCK_TILES;
  lastTile = min(firstTile + BLOCK_TILES, count);
  return true;
}
