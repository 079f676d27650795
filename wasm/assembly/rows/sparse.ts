// sparse_add: y = base + x · Sᵀ, where S is a sparse matrix in rows: entries starts[n] … starts[n + 1] of
// `columns` and `values` are those of row n, which is column n of the result. Few entries, gathered from rows
// of x: there is nothing to vectorise. A chunk is 64 rows of S, for all rows of x.
import { addressAt, chunksOf, min, nextChunk, u32At } from "../machine/runtime";
import {
  SPARSE_ADD_BASE, SPARSE_ADD_COLUMNS, SPARSE_ADD_INNER, SPARSE_ADD_OUTPUTS, SPARSE_ADD_ROWS,
  SPARSE_ADD_STARTS, SPARSE_ADD_VALUES, SPARSE_ADD_X, SPARSE_ADD_Y,
} from "../generated/opcodes";

export function sparse_add(ip: usize): void {
  const rows = u32At(ip, SPARSE_ADD_ROWS), outputs = u32At(ip, SPARSE_ADD_OUTPUTS);
  const xBytes = <usize>u32At(ip, SPARSE_ADD_INNER) << 2, yBytes = <usize>outputs << 2, total = chunksOf(outputs, 64);
  const starts = addressAt(ip, SPARSE_ADD_STARTS), columns = addressAt(ip, SPARSE_ADD_COLUMNS);
  const values = addressAt(ip, SPARSE_ADD_VALUES);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const last = min(outputs, <u32>c * 64 + 64);
    for (let n = <u32>c * 64; n < last; n++) {
      const begin = <usize>load<u32>(starts + (<usize>n << 2)) << 2;
      const end = <usize>load<u32>(starts + (<usize>n << 2), 4) << 2;
      let x = addressAt(ip, SPARSE_ADD_X);
      let at = <usize>n << 2;
      for (let row: u32 = 0; row < rows; row++, x += xBytes, at += yBytes) {
        let sum = load<f32>(addressAt(ip, SPARSE_ADD_BASE) + at);
        for (let e = begin; e < end; e += 4) {
          sum += load<f32>(x + (<usize>load<u32>(columns + e) << 2)) * load<f32>(values + e);
        }
        store<f32>(addressAt(ip, SPARSE_ADD_Y) + at, sum);
      }
    }
  }
}
