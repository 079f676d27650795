// Appends rows to the KV cache, in place.
//
//   for each row m: cache of slots[m], position positions[m] := x[m], in its page, as float32, float16 or blocks of Q8_0
//
// What is not finite as float16 (65520 and more, or NaN; of a block its scale) is stored as such and reported in the status word,
// because attention takes the cache to be finite. A row outside the cache is a fault of the caller, which must not overwrite other memory: it is reported in the status word.
import { addressAt, chunksOf, min, nextChunk, u32At } from "../machine/runtime";
import { cacheBytes, PAGE, pagesOf, storeBlocks } from "./cache_blocks";
import { storeHalf4, toHalf4 } from "../half";
import {
  CONTROL_STATUS, KV_APPEND_CAPACITY, KV_APPEND_CACHE, KV_APPEND_GROUP, KV_APPEND_PAGE_TABLE,
  KV_APPEND_POSITIONS, KV_APPEND_ROWS, KV_APPEND_SLOT_COUNT, KV_APPEND_SLOTS, KV_APPEND_STATE, KV_APPEND_WIDTH, KV_APPEND_X,
} from "../generated/opcodes";

export function kv_append(ip: usize): void {
  const rows = u32At(ip, KV_APPEND_ROWS), width = u32At(ip, KV_APPEND_WIDTH);
  const group = u32At(ip, KV_APPEND_GROUP), total = chunksOf(rows, group);
  for (let c = nextChunk(ip, total); c >= 0; c = nextChunk(ip, total)) {
    const last = min(rows, <u32>c * group + group);
    for (let row = <u32>c * group; row < last; row++) {
      const position = load<u32>(addressAt(ip, KV_APPEND_POSITIONS) + (<usize>row << 2));
      const slot = load<u32>(addressAt(ip, KV_APPEND_SLOTS) + (<usize>row << 2));
      if (position >= u32At(ip, KV_APPEND_CAPACITY) || slot >= u32At(ip, KV_APPEND_SLOT_COUNT)) {
        atomic.or<u32>(CONTROL_STATUS, 2);
        continue;
      }
      const entry = slot * pagesOf(u32At(ip, KV_APPEND_CAPACITY)) + position / PAGE;
      const page = load<i32>(addressAt(ip, KV_APPEND_PAGE_TABLE) + (<usize>entry << 2));
      if (page < 0) {
        atomic.or<u32>(CONTROL_STATUS, 2);
        continue;
      }
      const x = addressAt(ip, KV_APPEND_X) + <usize>row * width * 4;
      const kind = u32At(ip, KV_APPEND_CACHE);
      const cell = <usize>page * PAGE + position % PAGE;
      const y = addressAt(ip, KV_APPEND_STATE) + cell * cacheBytes(kind, width);
      if (kind == 2) {
        if (!storeBlocks(x, y, width)) atomic.or<u32>(CONTROL_STATUS, 4);
      } else if (kind == 1) {
        let i: u32 = 0;
        let largest = f32x4.splat(0);
        for (; i + 4 <= width; i += 4) {
          const v = v128.load(x + (<usize>i << 2));
          largest = i32x4.max_u(largest, v128.and(v, i32x4.splat(0x7fffffff)));
          storeHalf4(y + (<usize>i << 1), toHalf4(v));
        }
        for (; i < width; i++) {
          const v = f32x4.splat(load<f32>(x + (<usize>i << 2)));
          largest = i32x4.max_u(largest, v128.and(v, i32x4.splat(0x7fffffff)));
          const half = toHalf4(v);
          store<u16>(y + (<usize>i << 1), <u16>i32x4.extract_lane(half, 0));
        }
        if (v128.any_true(i32x4.gt_u(largest, i32x4.splat(0x477fefff)))) atomic.or<u32>(CONTROL_STATUS, 1);
      } else memory.copy(y, x, <usize>width * 4);
    }
  }
}
