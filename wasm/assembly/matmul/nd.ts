// Product of float32 matrices that are both computed: batches broadcast over two merged dims, each side
// may be transposed. Weights that are constants go through `matmul`.
//
// 1. A chunk is 96 rows times 32 columns of one product. Columns of b are packed by eight, column after
//    column, in runs of 256, so that a panel stays in the first cache while all rows of the chunk pass
//    over it.
// 2. A row of a is read as it lies; a transposed one is packed too.
// 3. At a ragged right edge the tile writes into scratch memory, from which the valid columns are
//    copied.
import { addressAt, chunksOf, f32At, min, nextChunk, thread, u32At } from "../machine/runtime";
import { floatTiles } from "../generated/float_tiles";
import {
  MATMUL_ND_A, MATMUL_ND_ALPHA, MATMUL_ND_A_BATCH, MATMUL_ND_A_OUTER, MATMUL_ND_B, MATMUL_ND_BATCH,
  MATMUL_ND_B_BATCH, MATMUL_ND_B_OUTER, MATMUL_ND_COLUMNS, MATMUL_ND_INNER, MATMUL_ND_OUTER, MATMUL_ND_ROWS,
  MATMUL_ND_SCRATCH, MATMUL_ND_SCRATCH_BYTES, MATMUL_ND_TRANSPOSE_A, MATMUL_ND_TRANSPOSE_B, MATMUL_ND_Y,
} from "../generated/opcodes";

const RUN: u32 = 256;
const TILE_ROWS: u32 = 96;
const TILE_COLUMNS: u32 = 32;
const PANEL_BYTES: usize = 256 * 32;
/** Panels, rows of a, a ragged edge: see the lowering for the sum. */
const A_AT: usize = 4 * 256 * 32;
const EDGE_AT: usize = A_AT + 96 * 256 * 4;

export function matmul_nd(ip: usize): void {
  const rows = u32At(ip, MATMUL_ND_ROWS), columns = u32At(ip, MATMUL_ND_COLUMNS), inner = u32At(ip, MATMUL_ND_INNER);
  const outer = u32At(ip, MATMUL_ND_OUTER), batch = u32At(ip, MATMUL_ND_BATCH);
  const rowTiles = chunksOf(rows, TILE_ROWS), columnTiles = chunksOf(columns, TILE_COLUMNS);
  const total = outer * batch * rowTiles * columnTiles;
  const scratch = addressAt(ip, MATMUL_ND_SCRATCH) + <usize>thread * u32At(ip, MATMUL_ND_SCRATCH_BYTES);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    let rest = <u32>c;
    const column = (rest % columnTiles) * TILE_COLUMNS; rest /= columnTiles;
    const row = (rest % rowTiles) * TILE_ROWS; rest /= rowTiles;
    const item = rest % batch, group = rest / batch;
    const a = addressAt(ip, MATMUL_ND_A) +
      ((<usize>group * u32At(ip, MATMUL_ND_A_OUTER) + <usize>item * u32At(ip, MATMUL_ND_A_BATCH)) << 2);
    const b = addressAt(ip, MATMUL_ND_B) +
      ((<usize>group * u32At(ip, MATMUL_ND_B_OUTER) + <usize>item * u32At(ip, MATMUL_ND_B_BATCH)) << 2);
    const y = addressAt(ip, MATMUL_ND_Y) +
      (((<usize>group * batch + item) * rows + row) * columns + column) * 4;
    tile(ip, a, b, y, row, column, min(TILE_ROWS, rows - row), min(TILE_COLUMNS, columns - column), scratch);
  }
}

function tile(
  ip: usize, a: usize, b: usize, y: usize, row: u32, column: u32, height: u32, width: u32, scratch: usize,
): void {
  const rows = u32At(ip, MATMUL_ND_ROWS), columns = u32At(ip, MATMUL_ND_COLUMNS), inner = u32At(ip, MATMUL_ND_INNER);
  const transposeA = u32At(ip, MATMUL_ND_TRANSPOSE_A), transposeB = u32At(ip, MATMUL_ND_TRANSPOSE_B);
  const alpha = f32At(ip, MATMUL_ND_ALPHA);
  const outStride = <usize>columns << 2, full = width & ~7, edge = scratch + EDGE_AT;
  for (let r: u32 = 0; r < height; r++) memory.fill(y + <usize>r * outStride, 0, <usize>width << 2);
  if (width > full) memory.fill(edge, 0, <usize>height << 5);
  for (let k: u32 = 0; k < inner; k += RUN) {
    const count = min(RUN, inner - k);
    let x = a + ((<usize>row * inner + k) << 2), stride = <usize>inner << 2;
    if (transposeA) {
      packRows(a + ((<usize>k * rows + row) << 2), <usize>rows << 2, height, count, scratch + A_AT);
      x = scratch + A_AT;
      stride = <usize>count << 2;
    }
    for (let first: u32 = 0; first < width; first += 8) {
      const panel = scratch + <usize>(first >> 3) * PANEL_BYTES, lanes = min(8, width - first);
      if (transposeB) {
        packTransposed(b + ((<usize>(column + first) * inner + k) << 2), <usize>inner << 2, count, lanes, alpha, panel);
      } else {
        packColumns(b + ((<usize>k * columns + column + first) << 2), outStride, count, lanes, alpha, panel);
      }
      if (lanes == 8) floatTiles(height, x, stride, count, panel, y + (<usize>first << 2), outStride);
      else floatTiles(height, x, stride, count, panel, edge, 32);
    }
  }
  for (let r: u32 = 0; r < height && width > full; r++) {
    memory.copy(y + <usize>r * outStride + (<usize>full << 2), edge + (<usize>r << 5), <usize>(width - full) << 2);
  }
}

/** `lanes` columns of `count` rows, eight a row of the panel, times alpha. */
export function packColumns(b: usize, stride: usize, count: u32, lanes: u32, alpha: f32, panel: usize): void {
  const factor = f32x4.splat(alpha);
  if (lanes == 8) {
    for (let k: u32 = 0; k < count; k++, b += stride, panel += 32) {
      v128.store(panel, f32x4.mul(v128.load(b), factor));
      v128.store(panel, f32x4.mul(v128.load(b, 16), factor), 16);
    }
    return;
  }
  for (let k: u32 = 0; k < count; k++, b += stride, panel += 32) {
    for (let i: u32 = 0; i < 8; i++) {
      store<f32>(panel + (<usize>i << 2), i < lanes ? load<f32>(b + (<usize>i << 2)) * alpha : 0);
    }
  }
}

/** The same of a matrix whose rows are the columns: four by four. */
export function packTransposed(b: usize, stride: usize, count: u32, lanes: u32, alpha: f32, panel: usize): void {
  const factor = f32x4.splat(alpha);
  for (let half: u32 = 0; half < 8; half += 4) {
    const from = b + <usize>half * stride, to = panel + (<usize>half << 2);
    let k: u32 = 0;
    if (half + 4 <= lanes) {
      for (; k + 4 <= count; k += 4) {
        const at = from + (<usize>k << 2), out = to + (<usize>k << 5);
        const r0 = v128.load(at), r1 = v128.load(at + stride);
        const r2 = v128.load(at + 2 * stride), r3 = v128.load(at + 3 * stride);
        const a0 = i8x16.shuffle(r0, r1, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
        const a1 = i8x16.shuffle(r0, r1, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
        const b0 = i8x16.shuffle(r2, r3, 0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
        const b1 = i8x16.shuffle(r2, r3, 8, 9, 10, 11, 24, 25, 26, 27, 12, 13, 14, 15, 28, 29, 30, 31);
        v128.store(out, f32x4.mul(factor, i64x2Low(a0, b0)));
        v128.store(out, f32x4.mul(factor, i64x2High(a0, b0)), 32);
        v128.store(out, f32x4.mul(factor, i64x2Low(a1, b1)), 64);
        v128.store(out, f32x4.mul(factor, i64x2High(a1, b1)), 96);
      }
    }
    for (; k < count; k++) {
      for (let i: u32 = 0; i < 4; i++) {
        const value = half + i < lanes ? load<f32>(from + <usize>i * stride + (<usize>k << 2)) * alpha : 0;
        store<f32>(to + (<usize>k << 5) + (<usize>i << 2), value);
      }
    }
  }
}

@inline function i64x2Low(a: v128, b: v128): v128 {
  return i8x16.shuffle(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23);
}
@inline function i64x2High(a: v128, b: v128): v128 {
  return i8x16.shuffle(a, b, 8, 9, 10, 11, 12, 13, 14, 15, 24, 25, 26, 27, 28, 29, 30, 31);
}

/** Rows of a transposed matrix, one after the other. */
function packRows(a: usize, stride: usize, height: u32, count: u32, out: usize): void {
  for (let k: u32 = 0; k < count; k++, a += stride) {
    for (let r: u32 = 0; r < height; r++) {
      store<f32>(out + ((<usize>r * count + k) << 2), load<f32>(a + (<usize>r << 2)));
    }
  }
}
