// What outliers of 8-bit rows (quant/q8_activation.ts) add to products: each times its column of the weights, in the order in
// which they stand in their row, with one rounding a product where the processor has that, so that a row has the same bits
// alone and among others. Lists of them say where columns are in a tile (gen/columns.ts).
//   few rows:  columns are decoded while a tile is in a cache, row by row
//   many rows: those that are met in a block of rows are decoded once for each panel, up to SLOTS of them
import { addColumns } from "../generated/columns";
import { blockColumns, cellBytes, formOf, groupColumns, hasPoints, headerBytes } from "../generated/layouts";
import { unpack } from "../generated/unpack";
import { madd } from "../simd";
import { DECODE_BYTES, fromCodes } from "./decode_tile";

/** Columns of a run, outliers of one at most and their bytes, and bytes of an entry of a list. */
export const RUN_COLUMNS: usize = 512;
const OUTLIERS: usize = 2;
export const RUN_BYTES: usize = 8 * OUTLIERS;
const ENTRY: usize = 16;
/** Rows of a block at most. */
const ROWS: usize = 128;
/** Columns that are decoded once for a panel. */
const SLOTS: u32 = 1024;
/** Unpacked codes and scales, 32 columns of floats, and a column. */
export const UNPACKED_BYTES: usize = DECODE_BYTES + 32 * 32 + 64;

/** Runs of a row. */
@inline export function runsOf(columns: usize): usize { return max<usize>(1, columns / RUN_COLUMNS); }

/** Where the outliers of a row stand. */
@inline export function outliersAt(columns: usize): usize { return (columns + 12 * (columns >> 5) + 15) & ~15; }

/** Bytes of a row's list at most. */
@inline export function listBytes(columns: usize): usize { return runsOf(columns) * OUTLIERS * ENTRY; }

/** Lists the outliers of the row at `x`; returns where the list ends. */
export function listOutliers(layout: u32, x: usize, columns: usize, list: usize): usize {
  const block = <usize>blockColumns(layout), bytes = <usize>cellBytes(layout), first = <usize>headerBytes(layout);
  const blockBytes = first + (block >> 5) * bytes;
  let from = x + outliersAt(columns);
  for (const end = from + RUN_BYTES * runsOf(columns); from < end; from += RUN_BYTES) {
    for (let at = from; at < from + RUN_BYTES; at += 8, list += ENTRY) {
      const value = load<f32>(at);
      if (value == 0) break;
      const column = <usize>load<u32>(at, 4), index = block ? column / block : 0;
      const header = index * blockBytes, cell = (column - index * block) >> 5;
      store<u32>(list, <u32>header);
      store<u32>(list, <u32>(header + first + cell * bytes), 4);
      store<u32>(list, <u32>(column & 31), 8);
      store<f32>(list, value, 12);
    }
  }
  return list;
}

/**
 * Adds a list to the outputs of some tiles, eight each; those of an entry are `apart` bytes behind those of the one before.
 * `scratch` has UNPACKED_BYTES.
 */
export function addOutliers(layout: u32, tile: usize, tileBytes: usize, tiles: usize, list: usize, end: usize, out: usize, apart: usize, columns: usize, scratch: usize): void {
  if (addColumns(layout, tile, tileBytes, tiles, list, end, out, apart, columns)) return;
  for (; list < end; list += ENTRY, out += apart) {
    for (let t: usize = 0; t < tiles; t++) addUnpacked(layout, tile + t * tileBytes, list, out + 32 * t, scratch);
  }
}

/** One of a layout that is unpacked, a cell or, where cells share bytes, a block. */
function addUnpacked(layout: u32, tile: usize, entry: usize, out: usize, scratch: usize): void {
  const scales = scratch + 2048, floats = scratch + DECODE_BYTES, group = groupColumns(layout), isCell = hasPoints(layout);
  const header = tile + load<u32>(entry), cell = tile + load<u32>(entry, 4);
  const index: usize = isCell ? 0 : (cell - header - headerBytes(layout)) / cellBytes(layout);
  unpack(layout, header, isCell ? cell : header, isCell ? 32 : 256, scratch, 32, scales, 64, 0x80, true, false);
  fromCodes(formOf(layout), scratch + 256 * index, scales + 64 * (32 / group) * index, 32, group, floats);
  const at = floats + 32 * <usize>(load<u32>(entry, 8) & 31), x = v128.load32_splat(entry, 12);
  v128.store(out, madd(v128.load(at), x, v128.load(out)));
  v128.store(out, madd(v128.load(at, 16), x, v128.load(out, 16)), 16);
}

/** Bytes for the lists of a block of rows, columns that they share, and what decoding takes (wasm/matmul_scratch.ts). */
export function blockListsBytes(columns: usize): usize {
  return UNPACKED_BYTES + SLOTS * (ENTRY + 64) + 2 * columns + ROWS * (4 + listBytes(columns));
}

/** Where parts of that are. */
@inline function slotsAt(lists: usize): usize { return lists + UNPACKED_BYTES; }
@inline function decodedAt(lists: usize): usize { return slotsAt(lists) + SLOTS * ENTRY; }
@inline function numbersAt(lists: usize): usize { return decodedAt(lists) + SLOTS * 64; }
@inline function endsAt(lists: usize, columns: usize): usize { return numbersAt(lists) + 2 * columns; }
@inline function rowAt(lists: usize, columns: usize, r: u32): usize { return endsAt(lists, columns) + 4 * ROWS + listBytes(columns) * r; }
@inline function endOf(lists: usize, columns: usize, r: u32): usize { return rowAt(lists, columns, r) + load<u32>(endsAt(lists, columns) + 4 * <usize>r); }

/** Lists the outliers of `rows` rows at `lists`; false where there are none. */
export function listRows(layout: u32, rows: u32, x: usize, stride: usize, columns: usize, lists: usize): bool {
  let has = false;
  for (let r: u32 = 0; r < rows; r++, x += stride) {
    const list = rowAt(lists, columns, r), bytes = listOutliers(layout, x, columns, list) - list;
    store<u32>(endsAt(lists, columns) + 4 * <usize>r, <u32>bytes);
    if (bytes) has = true;
  }
  return has;
}

/** Adds to the outputs of some tiles what outliers of listed rows add. */
export function addRows(layout: u32, rows: u32, tile: usize, tileBytes: usize, tiles: usize, columns: usize, lists: usize, out: usize, outStride: usize): void {
  for (let r: u32 = 0; r < rows; r++, out += outStride) {
    const list = rowAt(lists, columns, r), end = endOf(lists, columns, r);
    if (end > list) addOutliers(layout, tile, tileBytes, tiles, list, end, out, 0, columns, lists);
  }
}

/** Gives columns of listed rows slots, from 1; returns how many. */
export function shareColumns(rows: u32, x: usize, stride: usize, columns: usize, lists: usize): u32 {
  const numbers = numbersAt(lists);
  memory.fill(numbers, 0, 2 * columns);
  let slots: u32 = 0;
  for (let r: u32 = 0; r < rows; r++, x += stride) {
    let list = rowAt(lists, columns, r), from = x + outliersAt(columns);
    for (const end = from + RUN_BYTES * runsOf(columns); from < end; from += RUN_BYTES) {
      for (let at = from; at < from + RUN_BYTES && load<f32>(at) != 0; at += 8, list += ENTRY) {
        const number = numbers + 2 * <usize>load<u32>(at, 4);
        let slot = <u32>load<u16>(number);
        if (slot == 0 && slots < SLOTS) {
          const to = slotsAt(lists) + ENTRY * slots;
          memory.copy(to, list, 12);
          store<f32>(to, 1, 12);
          slot = ++slots;
          store<u16>(number, <u16>slot);
        }
        store<u32>(list, load<u32>(list, 8) | (slot << 5), 8);
      }
    }
  }
  return slots;
}

/** Decodes columns of a list, of the two tiles of a panel. */
function decodePanel(layout: u32, w: usize, tileBytes: usize, list: usize, end: usize, to: usize, columns: usize, scratch: usize): void {
  memory.fill(to, 0, 4 * (end - list));
  addOutliers(layout, w, tileBytes, 2, list, end, to, 64, columns, scratch);
}

/** Decodes the columns that have slots, of the two tiles at `w`. */
export function decodeShared(layout: u32, slots: u32, w: usize, tileBytes: usize, columns: usize, lists: usize): void {
  const list = slotsAt(lists);
  decodePanel(layout, w, tileBytes, list, list + ENTRY * slots, decodedAt(lists), columns, lists);
}

/** Adds to sixteen outputs of listed rows, from row `first` on. */
export function addShared(layout: u32, first: u32, last: u32, w: usize, tileBytes: usize, columns: usize, lists: usize, out: usize, outStride: usize): void {
  const column = lists + DECODE_BYTES + 32 * 32, entry = column - ENTRY, decoded = decodedAt(lists) - 64, bytes = listBytes(columns);
  let size = endsAt(lists, columns) + 4 * <usize>first, from = rowAt(lists, columns, first);
  for (const done = size + 4 * <usize>(last - first); size < done; size += 4, from += bytes, out += outStride) {
    let list = from;
    const end = list + load<u32>(size);
    if (list == end) continue;
    let a = v128.load(out), b = v128.load(out, 16), c = v128.load(out, 32), d = v128.load(out, 48);
    for (; list < end; list += ENTRY) {
      const slot = <usize>(load<u32>(list, 8) & ~31), x = v128.load32_splat(list, 12);
      let at = decoded + 2 * slot;
      if (slot == 0) {
        at = column;
        memory.copy(entry, list, 12);
        store<f32>(entry, 1, 12);
        decodePanel(layout, w, tileBytes, entry, column, at, columns, lists);
      }
      a = madd(v128.load(at), x, a);
      b = madd(v128.load(at, 16), x, b);
      c = madd(v128.load(at, 32), x, c);
      d = madd(v128.load(at, 48), x, d);
    }
    v128.store(out, a);
    v128.store(out, b, 16);
    v128.store(out, c, 32);
    v128.store(out, d, 48);
  }
}
