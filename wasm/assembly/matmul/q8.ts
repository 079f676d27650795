// Matrix products on 8-bit activations.
//   one row:  for each two tiles of eight weight rows: a GEMV (generated/gemv_*, gemv_unpacked.ts)
//   a few:    of formats that are met most often, the same for four rows at a time, or for eight (generated/gemv_eights);
//             2 to 8, and by sums of two 2 to 16 of 4 bit and 2 to 24 of 8 bit
//   more:     for blocks of rows, interleaved by four in this thread's scratch memory: for each two tiles: unpack them
//             there, then register tiles over all rows (fours.ts, generated/tiles_*)
//   two and more where V8 joins vectors, of the formats that are met most often: all out of the packed weights
//             (generated/gemv_joined_*)
// Outliers of rows are added behind that, before the bias (outliers.ts).
// All do the same float operations in the same order, so a row's result does not depend on how many rows
// there are, nor on threads: every output is computed by one thread.
//
// Not kept for many rows: reading a twelfth of the next panel after every twelve rows, since unpacking waits for memory;
// steps of 256 rows gain more (bench/results/kernels.md).
//
// How to multiply is asked of the processor, not configured (gen/dots.ts describes the styles). The
// relaxed dot of 127 and 255 tells: 4 · 127 · 255 means that the second operand is unsigned and nothing
// saturates; 4 · 127 · -1 that it is signed; anything else that the dot is made of pair sums, which this
// code then does better itself.
import { joins } from "../machine/joining";
import { addressAt, chunksOf, min, nextChunk, thread, u32At } from "../machine/runtime";
import { beginTrial, endTrial, fetchesAhead, takesTurns, trialTiles, turnTrial } from "../machine/read_trial";
import { firstTile, halfOf, lastTile, nextTiles } from "./tile_ranges";
import {
  MATMUL_Q8_BIAS, MATMUL_Q8_CHUNK, MATMUL_Q8_COLUMNS, MATMUL_Q8_LARGE, MATMUL_Q8_LAYOUT, MATMUL_Q8_OUTPUTS,
  MATMUL_Q8_ROWS, MATMUL_Q8_ROW_BYTES, MATMUL_Q8_SCRATCH, MATMUL_Q8_SCRATCH_BYTES, MATMUL_Q8_STYLE,
  MATMUL_Q8_THREADS, MATMUL_Q8_TILE_BYTES, MATMUL_Q8_W, MATMUL_Q8_X, MATMUL_Q8_Y,
} from "../generated/opcodes";
import { gemv_dot, gemv_few_dot, takesFew_dot } from "../generated/gemv_dot";
import { gemv_eights, takesEights } from "../generated/gemv_eights";
import { gemv_joined_dot, hasJoined_dot } from "../generated/gemv_joined_dot";
import { gemv_joined_one_dot, hasJoinedOne_dot } from "../generated/gemv_joined_one_dot";
import { gemv_joined_one_pair, gemv_joined_two_pair, gemv_joined_wide_one, gemv_joined_wide_two, hasJoinedOne_pair, hasJoinedWide } from "../generated/gemv_joined_one_pair";
import { gemv_joined_pair, hasJoined_pair, leftOver } from "../generated/gemv_joined_pair";
import { gemv_few_pair, gemv_pair, takesFew_pair } from "../generated/gemv_pair";
import { gemv_plain } from "../generated/gemv_plain";
import { gemvUnpacked } from "./gemv_unpacked";
import { PANEL_G32_8BIT, PANEL_G32_8BIT_MIN, PANEL_SIGNS, centerOf, codeBits, groupColumns, hasPoints, hasSpareBytes, panelOf, startBits } from "../generated/layouts";
import { tiles_joined_dot } from "../generated/tiles_joined_dot";
import { tiles_joined_pair } from "../generated/tiles_joined_pair";
import { tiles_dot } from "../generated/tiles_dot";
import { tiles_pair } from "../generated/tiles_pair";
import { tiles_plain } from "../generated/tiles_plain";
import { unpack } from "../generated/unpack";
import { foursBytes, interleave, interleaveCellStarts, interleaveGroupStarts, interleaveStarts, widenPanel, widenRow } from "./fours";
import { addRows, addShared, blockListsBytes, decodeShared, listRows, shareColumns } from "./outliers";
import { hasNibbles, planePanel } from "./planes";
import { BYTES_127_AT, BYTES_255_AT } from "./shared";

const PLAIN: u32 = 0;
const PAIR: u32 = 1;
const DOT: u32 = 2;

/** Rows of activations whose outputs fit into scratch memory at a ragged edge, and whose bytes do. */
const EDGE_ROWS: u32 = 128;
const EDGE_BYTES: usize = 8192;
/** Rows that a thread takes at once where panels are few for the threads. */
const BLOCK_ROWS: u32 = 64;

let style: u32 = PLAIN;
/** What 8-bit codes are xored with: 0x80 makes them unsigned. */
let flip: i32 = 0x80;

/** Decides how to multiply; every kernel that does asks first. */
export function chooseStyle(forced: u32): void {
  if (ASC_FEATURE_RELAXED_SIMD) {
    const zero = i32x4.splat(0);
    const dot = i32x4.relaxed_dot_i8x16_i7x16_add_s(v128.load(BYTES_127_AT), v128.load(BYTES_255_AT), zero);
    const answer = i32x4.extract_lane(dot, 0);
    const unsigned = answer == 4 * 127 * 255;
    style = forced ? forced : unsigned || answer == -4 * 127 ? DOT : PAIR;
    flip = style == DOT && unsigned ? 0x80 : 0;
  } else {
    style = PLAIN;
    flip = 0x80;
  }
}

/** Whether the relaxed dot is the way to multiply. */
export function usesDot(): bool { return style == DOT; }

/** Whether the GEMV of a layout can fetch ahead: on x86, which is where nothing, or an unsigned operand, makes the dot. */
export function canFetchAhead(layout: u32): bool {
  return (style == PAIR || (style == DOT && flip != 0)) && hasSpareBytes(layout);
}

/** How far ahead of the cells in hand a GEMV fetches others, in bytes. */
const AHEAD: usize = 4096;

/** Tiles that lie between the one in hand and the one to fetch. */
@inline export function tilesAhead(tileBytes: usize): u32 { return <u32>((AHEAD + tileBytes - 1) / tileBytes); }

/**
 * One 8-bit row times one tile, eight outputs, or, where `apart` says where another lies, times two, whose outputs lie
 * `outApart` apart. `ahead` bytes behind a tile is one that will be wanted soon, and is this thread's alone; 0: none is.
 * `scratch` as gemvUnpacked has it.
 */
export function gemv(layout: u32, w: usize, apart: usize, x: usize, columns: usize, out: usize, outApart: usize, scratch: usize, ahead: usize): void {
  if (hasPoints(layout)) {
    gemvUnpacked(layout, w, x, columns, out, scratch, style == DOT, flip);
    if (apart) gemvUnpacked(layout, w + apart, x, columns, out + outApart, scratch, style == DOT, flip);
    return;
  }
  if (ASC_FEATURE_RELAXED_SIMD) {
    if (style == DOT) {
      if (joins() && hasJoinedOne_dot(layout)) gemv_joined_one_dot(layout, w, apart, x, columns, out, outApart, ahead);
      else gemv_dot(layout, w, apart, x, columns, out, outApart, flip, ahead);
    } else if (joins() && hasJoinedOne_pair(layout)) gemv_joined_one_pair(layout, w, apart, x, columns, out, outApart, ahead);
    else gemv_pair(layout, w, apart, x, columns, out, outApart, flip, ahead);
  } else gemv_plain(layout, w, apart, x, columns, out, outApart, flip);
}

/** Copies the first `width` columns of `rows` rows of `fromStride` bytes, adding the bias. */
export function copyEdge(rows: u32, width: u32, from: usize, fromStride: usize, to: usize, toStride: usize, bias: usize): void {
  for (let r: u32 = 0; r < rows; r++, from += fromStride, to += toStride) {
    for (let c: u32 = 0; c < width; c++) {
      const value = load<f32>(from + 4 * c);
      store<f32>(to + 4 * c, bias ? value + load<f32>(bias + 4 * c) : value);
    }
  }
}

/** Adds `vectors` vectors of bias to each row. */
export function addBias(rows: u32, vectors: u32, out: usize, stride: usize, bias: usize): void {
  for (let r: u32 = 0; r < rows; r++, out += stride) {
    for (let v: u32 = 0; v < vectors; v++) {
      v128.store(out + 16 * v, f32x4.add(v128.load(out + 16 * v), v128.load(bias + 16 * v)));
    }
  }
}

/** Most rows that are multiplied by codes as they lie, where nothing else is known (bench/results/kernels.md). */
const FEW_ROWS: u32 = 8;

/** Whether interleaved rows, and panels, are 16 bits, for products that are made of pairs of those. */
function isWide(layout: u32): bool {
  const kind = panelOf(layout);
  return style == PLAIN || (style == PAIR && (kind == PANEL_G32_8BIT || kind == PANEL_G32_8BIT_MIN));
}

/** Whether two rows and more are multiplied by codes as they lie, however many there are. */
function takesJoined(layout: u32): bool {
  return ASC_FEATURE_RELAXED_SIMD && joins() && (style == DOT ? hasJoined_dot(layout) : hasJoined_pair(layout));
}

/** Whether, of those, one row or two that are left over are multiplied as 16 bits. */
function takesWide(layout: u32): bool { return ASC_FEATURE_RELAXED_SIMD && style == PAIR && takesJoined(layout) && hasJoinedWide(layout); }

/** What codes of a layout are too large by, that sums of 32 columns take away. */
function offsetOf(layout: u32): i32 {
  const center = centerOf(layout);
  return center == 128 ? flip : <i32>center;
}

/** Where this thread interleaves rows, behind codes of a panel as 16 bits and their scales. */
function foursOf(ip: usize): usize {
  const scratch = addressAt(ip, MATMUL_Q8_SCRATCH) + <usize>thread * u32At(ip, MATMUL_Q8_SCRATCH_BYTES);
  return scratch + EDGE_BYTES + 40 * <usize>u32At(ip, MATMUL_Q8_COLUMNS) + blockListsBytes(u32At(ip, MATMUL_Q8_COLUMNS));
}

/** Where it lists outliers, before those. */
function listsOf(ip: usize): usize { return foursOf(ip) - blockListsBytes(u32At(ip, MATMUL_Q8_COLUMNS)); }

/** Whether listed rows have outliers. */
let hasOutliers: bool = false;

/** Lists the outliers of `count` rows from row `first`. */
function listBlock(ip: usize, first: u32, count: u32): void {
  const stride = <usize>u32At(ip, MATMUL_Q8_ROW_BYTES), x = addressAt(ip, MATMUL_Q8_X) + stride * first;
  hasOutliers = listRows(u32At(ip, MATMUL_Q8_LAYOUT), count, x, stride, u32At(ip, MATMUL_Q8_COLUMNS), listsOf(ip));
}

/** Adds what outliers of few rows add to the outputs of some tiles. */
function addFew(ip: usize, rows: u32, at: usize, count: u32, out: usize, outStride: usize): void {
  if (!hasOutliers) return;
  const tileBytes = <usize>u32At(ip, MATMUL_Q8_TILE_BYTES), columns = <usize>u32At(ip, MATMUL_Q8_COLUMNS);
  addRows(u32At(ip, MATMUL_Q8_LAYOUT), rows, at, tileBytes, count, columns, listsOf(ip), out, outStride);
}

/** Has sums of 32 bits of interleaved rows start where an offset takes them. */
function startSums(layout: u32, count: u32, to: usize, stride: usize, columns: usize): void {
  if (groupColumns(layout) == 16) interleaveGroupStarts(count, to, stride, columns, startBits(layout));
  else if (centerOf(layout)) interleaveCellStarts(count, to, stride, columns, offsetOf(layout));
}

/** Interleaves `count` rows from row `first`, or makes 16 bits of those that are left over. */
function interleaveRows(ip: usize, first: u32, count: u32): void {
  const stride = <usize>u32At(ip, MATMUL_Q8_ROW_BYTES), x = addressAt(ip, MATMUL_Q8_X) + stride * first;
  const columns = u32At(ip, MATMUL_Q8_COLUMNS), layout = u32At(ip, MATMUL_Q8_LAYOUT), bits = startBits(layout);
  const left: u32 = takesWide(layout) ? leftOver(count) : 0, taken = count - left;
  if (taken) interleave(taken, x, stride, columns, isWide(layout), foursOf(ip));
  const wide = foursOf(ip) + foursBytes(columns, stride, true) * (taken >> 2);
  for (let r: u32 = 0; r < left; r++) widenRow(x + stride * (taken + r), columns, wide + 2 * columns * r);
  if (style == DOT) {
    if (takesJoined(layout)) startSums(layout, count, foursOf(ip), stride, columns);
  } else if (bits && style == PAIR) interleaveStarts(count, foursOf(ip), stride, columns, bits, groupColumns(layout));
}

/**
 * Whether so many rows are multiplied by codes as they lie: by sums of two, up to where unpacking a panel costs no more than
 * taking codes apart for each four rows. Panels of signed bytes become 16 bits besides, and those of nibbles are bytes.
 */
function takesFew(layout: u32, rows: u32): bool {
  if (ASC_FEATURE_RELAXED_SIMD) {
    if (takesJoined(layout)) return rows <= 3 * FEW_ROWS;
    if (style == DOT) return rows <= FEW_ROWS && takesFew_dot(layout);
    const bits = codeBits(layout);
    if (takesPlanes(layout, rows)) return false;
    const most: u32 = bits == 8 ? 3 * FEW_ROWS : bits == 4 && !isWide(layout) ? 2 * FEW_ROWS : FEW_ROWS;
    return rows <= most && takesFew_pair(layout);
  }
  return false;
}

/** One row or a few times all tiles, trying now and then how to read them. */
function fewRows(ip: usize, rows: u32): void {
  const tileBytes = <usize>u32At(ip, MATMUL_Q8_TILE_BYTES), count = (u32At(ip, MATMUL_Q8_OUTPUTS) + 7) >> 3;
  const large = u32At(ip, MATMUL_Q8_LARGE), threads = u32At(ip, MATMUL_Q8_THREADS), chunk = u32At(ip, MATMUL_Q8_CHUNK);
  const layout = u32At(ip, MATMUL_Q8_LAYOUT), canFetch = canFetchAhead(layout);
  if (rows > 2 || takesWide(layout) || (rows > 1 && style == DOT && takesJoined(layout))) interleaveRows(ip, 0, rows);
  listBlock(ip, 0, rows);
  while (nextTiles(ip, count, large, threads, chunk)) {
    const run = hasPoints(layout) ? 0 : trialTiles(lastTile - firstTile, tileBytes, rows, canFetch);
    if (run) {
      fewRowsTiles(ip, rows, firstTile, firstTile + run, canFetch);
      beginTrial();
      fewRowsTiles(ip, rows, firstTile + run, firstTile + 2 * run, canFetch);
      turnTrial();
      fewRowsTiles(ip, rows, firstTile + 2 * run, firstTile + 3 * run, canFetch);
      endTrial();
    }
    fewRowsTiles(ip, rows, firstTile + 3 * run, lastTile, canFetch);
  }
}

/** Bytes of tiles that outliers are added for at once, while those are in a cache. */
const OUTLIER_BYTES: u32 = 1 << 14;

/** Few rows times tiles [first, last), of one row in order or two at a time from both halves. */
function fewRowsTiles(ip: usize, rows: u32, first: u32, last: u32, canFetch: bool): void {
  const w = addressAt(ip, MATMUL_Q8_W), y = addressAt(ip, MATMUL_Q8_Y), bias = addressAt(ip, MATMUL_Q8_BIAS);
  const tileBytes = <usize>u32At(ip, MATMUL_Q8_TILE_BYTES), outputs = u32At(ip, MATMUL_Q8_OUTPUTS), outStride = <usize>outputs << 2;
  const edge = addressAt(ip, MATMUL_Q8_SCRATCH) + <usize>thread * u32At(ip, MATMUL_Q8_SCRATCH_BYTES);
  const steps = tilesAhead(tileBytes), whole = min(last, outputs >> 3), half = rows == 1 && takesTurns(tileBytes) ? halfOf(first, whole) : 0, middle = first + half;
  const fetches = canFetch && fetchesAhead(rows), most = max<u32>(1, OUTLIER_BYTES / <u32>tileBytes);
  // Outliers of tiles from this one on are still to be added.
  let added = first;
  for (let t = first; t < middle; t++) {
    const ahead = fetches && t + steps < middle ? steps * tileBytes : 0;
    const at = w + <usize>t * tileBytes, apart = half * tileBytes;
    oneRow(ip, at, apart, y + 32 * t, 32 * half, ahead);
    if (t + 1 - added < most && t + 1 < middle) continue;
    addFew(ip, 1, w + <usize>added * tileBytes, t + 1 - added, y + 32 * added, 0);
    addFew(ip, 1, w + <usize>(added + half) * tileBytes, t + 1 - added, y + 32 * (added + half), 0);
    added = t + 1;
  }
  added = middle + half;
  for (let t = added; t < last; t++) {
    const isWhole = t < whole, at = w + <usize>t * tileBytes, out = isWhole ? y + 32 * t : edge;
    const ahead = fetches && t + steps < last ? steps * tileBytes : 0;
    if (rows == 1) oneRow(ip, at, 0, out, 0, ahead);
    else if (ASC_FEATURE_RELAXED_SIMD) someRows(ip, rows, at, out, isWhole ? outStride : 32, ahead, foursOf(ip));
    if (!isWhole) addFew(ip, rows, at, 1, out, 32);
    else if (t + 1 - added >= most || t + 1 == whole) {
      addFew(ip, rows, w + <usize>added * tileBytes, t + 1 - added, y + 32 * added, outStride);
      added = t + 1;
    }
    if (!isWhole) copyEdge(rows, outputs - 8 * t, edge, 32, y + 32 * t, outStride, bias ? bias + 32 * t : 0);
  }
  if (bias && whole > first) addBias(rows, 2 * (whole - first), y + 32 * first, outStride, bias + 32 * first);
}

/** One row times one tile or two, as gemv has them. */
function oneRow(ip: usize, at: usize, apart: usize, out: usize, outApart: usize, ahead: usize): void {
  const scratch = addressAt(ip, MATMUL_Q8_SCRATCH) + <usize>thread * u32At(ip, MATMUL_Q8_SCRATCH_BYTES) + EDGE_BYTES;
  const layout = u32At(ip, MATMUL_Q8_LAYOUT);
  if (ASC_FEATURE_RELAXED_SIMD && takesWide(layout)) {
    gemv_joined_wide_one(layout, at, apart, addressAt(ip, MATMUL_Q8_X), u32At(ip, MATMUL_Q8_COLUMNS), out, outApart, ahead, foursOf(ip));
    return;
  }
  gemv(u32At(ip, MATMUL_Q8_LAYOUT), at, apart, addressAt(ip, MATMUL_Q8_X), u32At(ip, MATMUL_Q8_COLUMNS), out, outApart, scratch, ahead);
}

/** Two rows or more times one tile, which stays in a cache for them; three and more out of `fours`. */
function someRows(ip: usize, rows: u32, at: usize, out: usize, outStride: usize, ahead: usize, fours: usize): void {
  const columns = <usize>u32At(ip, MATMUL_Q8_COLUMNS), stride = <usize>u32At(ip, MATMUL_Q8_ROW_BYTES);
  const layout = u32At(ip, MATMUL_Q8_LAYOUT), bytes = foursBytes(columns, stride, isWide(layout));
  let x = addressAt(ip, MATMUL_Q8_X);
  if (ASC_FEATURE_RELAXED_SIMD && takesJoined(layout)) {
    packedRows(layout, rows, at, x, stride, fours, bytes, columns, out, outStride, ahead);
    return;
  }
  if (style == PAIR && takesEights(layout)) {
    for (; rows > 6; rows -= min(rows, 8), fours += 2 * bytes, x += 8 * stride, out += 8 * outStride) {
      gemv_eights(layout, at, fours, bytes, rows, columns, out, outStride, ahead);
    }
  }
  if (style == DOT) gemv_few_dot(layout, rows, at, x, stride, fours, bytes, columns, out, outStride, flip, ahead);
  else gemv_few_pair(layout, rows, at, x, stride, fours, bytes, columns, out, outStride, flip, ahead);
}

/** Least rows that repay putting a panel in planes, and where codes and rows are 16 bits (bench/results/kernels.md). */
const PLANAR_ROWS: u32 = 12, PLANAR_WIDE_ROWS: u32 = 7;

/** Whether so many rows are multiplied by panels in planes, if by panels. */
function takesPlanes(layout: u32, rows: u32): bool { return joins() && rows >= (isWide(layout) ? PLANAR_WIDE_ROWS : PLANAR_ROWS); }

/** Whether panels are in planes, which joined tiles read. */
let isPlanar: bool = false;

/** Interleaved rows times an unpacked panel. */
function tiles(kind: u32, rows: u32, stride: usize, x: usize, columns: usize, codes: usize, scales: usize, out: usize, outStride: usize, offset: i32): void {
  if (!ASC_FEATURE_RELAXED_SIMD) tiles_plain(kind, rows, stride, x, columns, codes, scales, out, outStride, offset);
  else if (isPlanar) {
    if (style == DOT) tiles_joined_dot(kind, rows, stride, x, columns, codes, scales, out, outStride, offset);
    else tiles_joined_pair(kind, rows, stride, x, columns, codes, scales, out, outStride, offset);
  } else if (style == DOT) tiles_dot(kind, rows, stride, x, columns, codes, scales, out, outStride, offset);
  else tiles_pair(kind, rows, stride, x, columns, codes, scales, out, outStride, offset);
}

/** Two tiles of packed weights side by side. */
function unpackPanel(layout: u32, at: usize, tileBytes: usize, columns: usize, codes: usize, scales: usize): void {
  unpack(layout, at, at, columns, codes, 64, scales, 128, flip, false, style != PAIR);
  unpack(layout, at + tileBytes, at + tileBytes, columns, codes + 32, 64, scales + 64, 128, flip, false, style != PAIR);
}

/** Two rows or more from `x` times a packed tile of which `takesJoined` says so; three and more, or all by the dot, out of `fours`. */
function packedRows(layout: u32, rows: u32, at: usize, x: usize, stride: usize, fours: usize, bytes: usize, columns: usize, out: usize, outStride: usize, ahead: usize): void {
  if (!ASC_FEATURE_RELAXED_SIMD) return;
  if (style == DOT) {
    gemv_joined_dot(layout, at, fours, bytes, rows, columns, out, outStride, flip, ahead);
    return;
  }
  const left = leftOver(rows), taken = rows - left;
  gemv_joined_pair(layout, at, fours, bytes, taken, columns, out, outStride, flip, ahead);
  x += taken * stride; out += taken * outStride;
  const wide = fours + bytes * (taken >> 2);
  if (left == 2 && takesWide(layout)) gemv_joined_wide_two(layout, at, x, stride, columns, out, outStride, ahead, wide);
  else if (left == 2) gemv_joined_two_pair(layout, at, x, stride, columns, out, outStride, ahead);
  else if (left && takesWide(layout)) gemv_joined_wide_one(layout, at, 0, x, columns, out, 0, ahead, wide);
  else if (left) gemv_joined_one_pair(layout, at, 0, x, columns, out, 0, ahead);
}

/** The same times two tiles side by side. */
function bothTiles(layout: u32, rows: u32, at: usize, tileBytes: usize, x: usize, stride: usize, fours: usize, bytes: usize, columns: usize, out: usize, outStride: usize): void {
  packedRows(layout, rows, at, x, stride, fours, bytes, columns, out, outStride, 0);
  packedRows(layout, rows, at + tileBytes, x, stride, fours, bytes, columns, out + 32, outStride, 0);
}

/**
 * Blocks of rows that this thread has interleaved, each times all panels. Rows of a block that are no whole four, and
 * columns that are no whole panel, go by way of scratch memory.
 */
function manyRows(ip: usize, rows: u32): void {
  const w = addressAt(ip, MATMUL_Q8_W), y = addressAt(ip, MATMUL_Q8_Y), bias = addressAt(ip, MATMUL_Q8_BIAS);
  const columns = <usize>u32At(ip, MATMUL_Q8_COLUMNS), tileBytes = <usize>u32At(ip, MATMUL_Q8_TILE_BYTES);
  const outputs = u32At(ip, MATMUL_Q8_OUTPUTS), layout = u32At(ip, MATMUL_Q8_LAYOUT), kind = panelOf(layout), wide = isWide(layout);
  const edge = addressAt(ip, MATMUL_Q8_SCRATCH) + <usize>thread * u32At(ip, MATMUL_Q8_SCRATCH_BYTES);
  const codes = edge + EDGE_BYTES, scales = codes + 32 * columns, fours = foursOf(ip);
  const bytes = foursBytes(columns, u32At(ip, MATMUL_Q8_ROW_BYTES), wide), outStride = <usize>outputs << 2;
  const room = <u32>((edge + u32At(ip, MATMUL_Q8_SCRATCH_BYTES) - fours) / bytes * 4), panels = (outputs + 15) >> 4;
  // Where panels are few for the threads, blocks are smaller: unpacking costs about one row, so one of 64 hides it.
  const most = min(min(panels < 8 * u32At(ip, MATMUL_Q8_THREADS) ? BLOCK_ROWS : EDGE_ROWS, room), rows);
  // Few rows take several panels at once, like a GEMV.
  const chunk = rows < 8 ? chunksOf(u32At(ip, MATMUL_Q8_CHUNK), 2) : 1, chunks = chunksOf(panels, chunk);
  const total = chunks * chunksOf(rows, most);
  const offset = offsetOf(layout);
  const x = addressAt(ip, MATMUL_Q8_X), stride = <usize>u32At(ip, MATMUL_Q8_ROW_BYTES), lists = listsOf(ip);
  const packed = takesJoined(layout);
  isPlanar = takesPlanes(layout, rows);
  let block = -1, shared: u32 = 0;
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const first = <u32>c % chunks * chunk, last = min(first + chunk, panels), own = c / chunks;
    const firstRow = <u32>own * most, count = min(rows - firstRow, most);
    if (own != block) {
      interleaveRows(ip, firstRow, count);
      listBlock(ip, firstRow, count);
      if (hasOutliers) shared = shareColumns(count, x + stride * firstRow, stride, columns, lists);
    }
    block = own;
    for (let p = first; p < last; p++) {
      const at = w + 2 * <usize>p * tileBytes;
      if (!packed) {
        unpackPanel(layout, at, tileBytes, columns, codes, scales);
        if (isPlanar) planePanel(layout, codes, scales, columns, hasNibbles(layout, style == PAIR));
        else if (wide) widenPanel(codes, columns, style == PAIR || kind == PANEL_SIGNS);
      }
      const out = y + 64 * p + outStride * firstRow, panelBias = bias ? bias + 64 * p : 0, width = min(outputs - 16 * p, 16);
      const done = width < 16 ? 0 : packed ? count : count & ~3;
      const rest = count - done, restFours = fours + bytes * (done >> 2);
      if (packed) {
        const rowsAt = x + stride * firstRow;
        if (done) bothTiles(layout, done, at, tileBytes, rowsAt, stride, fours, bytes, columns, out, outStride);
        else bothTiles(layout, rest, at, tileBytes, rowsAt, stride, fours, bytes, columns, edge, 64);
      } else {
        tiles(kind, done, bytes, fours, columns, codes, scales, out, outStride, offset);
        tiles(kind, rest, bytes, restFours, columns, codes, scales, edge, 64, offset);
      }
      if (hasOutliers) {
        decodeShared(layout, shared, at, tileBytes, columns, lists);
        addShared(layout, 0, done, at, tileBytes, columns, lists, out, outStride);
        addShared(layout, done, count, at, tileBytes, columns, lists, edge, 64);
      }
      if (bias) addBias(done, 4, out, outStride, panelBias);
      if (done == count) continue;
      copyEdge(count - done, width, edge, 64, out + outStride * done, outStride, panelBias);
    }
  }
}

export function matmul_q8(ip: usize): void {
  const rows = u32At(ip, MATMUL_Q8_ROWS);
  chooseStyle(u32At(ip, MATMUL_Q8_STYLE));
  if (rows == 1 || (rows && takesFew(u32At(ip, MATMUL_Q8_LAYOUT), rows))) fewRows(ip, rows);
  else if (rows) manyRows(ip, rows);
  else nextChunk(ip, 0);
}
