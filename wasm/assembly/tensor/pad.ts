// Margins that repeat what is there: mirrored, the border, or the tensor again. Elements of one, two, four
// or eight bytes, up to five dims; a chunk is some rows of the result along the last dim.
import { addressAt, chunksOf, i32At, min, nextSmallChunk, u32At } from "../machine/runtime";
import {
  CONTROL_STATUS, PAD_BEFORE0, PAD_BEFORE1, PAD_BEFORE2, PAD_BEFORE3, PAD_BEFORE4, PAD_BYTES, PAD_MODE, PAD_N0, PAD_N1,
  PAD_N2, PAD_N3, PAD_N4, PAD_OUT0, PAD_OUT1, PAD_OUT2, PAD_OUT3, PAD_OUT4, PAD_X, PAD_Y,
} from "../generated/opcodes";

const GROUP: u32 = 8192;
/** Modes, in the order of engine/run/wasm/lower/pad.ts. */
const REFLECT: u32 = 0, EDGE: u32 = 1;

/** Index in a dim of `size` elements that index `at`, which may be outside, is taken from. */
function sourceAt(at: i32, size: i32, mode: u32): i32 {
  if (at >= 0 && at < size) return at;
  if (size <= 0) { atomic.or<u32>(CONTROL_STATUS, 2); return 0; }
  if (mode == EDGE) return at < 0 ? 0 : size - 1;
  const period = mode == REFLECT ? 2 * size - 2 : size;
  if (period == 0) return 0;
  const rest = at % period, phase = rest < 0 ? rest + period : rest;
  return phase < size ? phase : period - phase;
}

export function pad(ip: usize): void {
  const out1 = u32At(ip, PAD_OUT1), out2 = u32At(ip, PAD_OUT2), out3 = u32At(ip, PAD_OUT3), width = u32At(ip, PAD_OUT4);
  const rows = u32At(ip, PAD_OUT0) * out1 * out2 * out3, bytes = u32At(ip, PAD_BYTES), mode = u32At(ip, PAD_MODE);
  const group: u32 = width == 0 || width > GROUP ? 1 : GROUP / width, total = width ? chunksOf(rows, group) : 0;
  const n0 = i32At(ip, PAD_N0), n1 = i32At(ip, PAD_N1), n2 = i32At(ip, PAD_N2), n3 = i32At(ip, PAD_N3);
  const n4 = i32At(ip, PAD_N4);
  for (let c = nextSmallChunk(ip, total); c >= 0; c = nextSmallChunk(ip, total)) {
    const last = min(rows, <u32>c * group + group);
    for (let row = <u32>c * group; row < last; row++) {
      let rest = row;
      const i3 = sourceAt(<i32>(rest % out3) - i32At(ip, PAD_BEFORE3), n3, mode); rest /= out3;
      const i2 = sourceAt(<i32>(rest % out2) - i32At(ip, PAD_BEFORE2), n2, mode); rest /= out2;
      const i1 = sourceAt(<i32>(rest % out1) - i32At(ip, PAD_BEFORE1), n1, mode); rest /= out1;
      const i0 = sourceAt(<i32>rest - i32At(ip, PAD_BEFORE0), n0, mode);
      const x = addressAt(ip, PAD_X) + <usize>(((i0 * n1 + i1) * n2 + i2) * n3 + i3) * n4 * bytes;
      padRow(x, n4, i32At(ip, PAD_BEFORE4), mode, addressAt(ip, PAD_Y) + <usize>row * width * bytes, width, bytes);
    }
  }
}

function padRow(x: usize, size: i32, before: i32, mode: u32, y: usize, width: u32, bytes: u32): void {
  for (let i: i32 = 0; i < <i32>width; i++, y += bytes) {
    const at = i - before;
    if (at >= 0 && at < size) {
      // All that is inside, at once.
      const count = min(<u32>(size - at), width - <u32>i);
      memory.copy(y, x + <usize>at * bytes, <usize>count * bytes);
      i += <i32>count - 1;
      y += <usize>(count - 1) * bytes;
      continue;
    }
    const from = x + <usize>sourceAt(at, size, mode) * bytes;
    if (bytes == 4) store<u32>(y, load<u32>(from));
    else if (bytes == 1) store<u8>(y, load<u8>(from));
    else if (bytes == 2) store<u16>(y, load<u16>(from));
    else store<u64>(y, load<u64>(from));
  }
}
