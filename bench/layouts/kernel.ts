// Attention over a float16 cache in any layout, for one thread: the loops of wasm/assembly/attention/f16.ts with the
// places of heads and rows as arguments, and values that may lie turned (a channel's positions side by side). It is
// compiled when the bench runs, with the product's own inner loops, and is no part of the product.

import asc from "assemblyscript/asc";
import { GENERATED } from "../../wasm/gen/mod.ts";

const TEXT = `
import { scoresHalf, valuesHalf } from "./generated/attention_half";
import { LOWEST, softmaxStep, touch, TWO_112 } from "./attention/parts";

const RUN: u32 = 64, LINE: usize = 256, MOST: u32 = 4;

@inline function step(s: usize, count: u32, i: u32, state: usize, factors: usize): void {
  softmaxStep(s + i * LINE, 0, count, count, 0, TWO_112, state, state + 4, factors + (<usize>i << 2));
}

/** acc = acc · factor + p · V for values that lie turned: products of p with rows of V, 64 channels at a time. */
function turned(
  n: u32, s: usize, factors: usize, v: usize, vStep: usize, count: u32, size: u32, acc: usize, work: usize,
): void {
  for (let i: u32 = 0; i < n; i++) {
    const line = s + i * LINE;
    for (let j: u32 = (count + 3) & ~3; j < RUN; j++) store<f32>(line + (<usize>j << 2), 0);
    for (let c: u32 = 0; c < 16; c++) v128.store(work + (<usize>(c * n + i) << 4), v128.load(line + (<usize>c << 4)));
  }
  const out = work + 4096, unfinished = out + 4096, bytes = <usize>size << 2;
  for (let d: u32 = 0; d < size; d += RUN) {
    scoresHalf(n, work, RUN, v + d * vStep, vStep, RUN, out, unfinished);
    for (let i: u32 = 0; i < n; i++) {
      const f = v128.load32_splat(factors + (<usize>i << 2)), to = acc + i * bytes + (<usize>d << 2);
      for (let at: usize = 0; at < LINE; at += 16) {
        const sum = f32x4.mul(v128.load(out + i * LINE + at), f32x4.splat(1.0 / 4096));
        v128.store(to + at, f32x4.add(f32x4.mul(v128.load(to + at), f), sum));
      }
    }
  }
}

export function attend(
  table: usize, length: u32, kvHeads: u32, queries: u32, size: u32, q: usize, scratch: usize, y: usize,
  k: usize, kPage: usize, kHead: usize, kStep: usize, v: usize, vPage: usize, vHead: usize, vStep: usize,
  isTurned: bool, isAlone: bool,
): void {
  const bytes = <usize>size << 1, line = <usize>size << 2, all = kvHeads * queries;
  const s = scratch, unfinished = s + MOST * LINE, factors = unfinished + 4 * MOST * LINE, work = factors + 64;
  const states = work + 16384, acc = states + (<usize>all << 3);
  for (let t: u32 = 0; t < all; t++) {
    store<f32>(states + (<usize>t << 3), LOWEST);
    store<f32>(states + (<usize>t << 3), 0, 4);
  }
  memory.fill(acc, 0, all * line);
  for (let from: u32 = 0; from < length; from += RUN) {
    const count = min(RUN, length - from), page = <usize>load<u32>(table + (<usize>(from / RUN) << 2));
    const kRun = k + page * kPage, vRun = v + page * vPage;
    if (isAlone && kHead == bytes) { // all heads of a row side by side
      touch(kRun, bytes * kvHeads, kStep, count);
      touch(vRun, bytes * kvHeads, vStep, count);
    }
    for (let h: u32 = 0; h < kvHeads; h++) {
      const kRows = kRun + h * kHead, vRows = vRun + h * vHead;
      if (isAlone && kHead != bytes) {
        touch(kRows, bytes, kStep, count);
        if (isTurned) touch(vRows, <usize>count << 1, vStep, size);
        else touch(vRows, bytes, vStep, count);
      }
      for (let first: u32 = 0; first < queries; first += MOST) {
        const n = min(MOST, queries - first), t = h * queries + first, sums = acc + t * line;
        scoresHalf(n, q + t * line, size, kRows, kStep, count, s, unfinished);
        if (isTurned) {
          for (let i: u32 = 0; i < n; i++) step(s, count, i, states + (<usize>(t + i) << 3), factors);
          turned(n, s, factors, vRows, vStep, count, size, sums, work);
          continue;
        }
        for (let at: u32 = 0; at < count; at += 32) {
          const some = min(32, count - at), here = s + (<usize>at << 2);
          for (let i: u32 = 0; i < n; i++) step(here, some, i, states + (<usize>(t + i) << 3), factors);
          valuesHalf(n, here, factors, vRows + at * vStep, vStep, some, size, sums);
        }
      }
    }
  }
  for (let t: u32 = 0; t < all; t++) {
    const f = f32x4.splat((<f32>1) / load<f32>(states + (<usize>t << 3), 4));
    for (let d: usize = 0; d < line; d += 16) {
      v128.store(y + t * line + d, f32x4.mul(v128.load(acc + t * line + d), f));
    }
  }
}

@inline function min(a: u32, b: u32): u32 { return a < b ? a : b; }
`;

/** See \`TEXT\`; addresses and sizes in bytes. */
export type Attend = (...operands: number[]) => void;

const ASSEMBLY = new URL("../../wasm/assembly/", import.meta.url);

/** Compiles the kernel for a memory; what it calls is read as the compiler asks for it. */
export async function compileAttend(memory: WebAssembly.Memory): Promise<Attend> {
  let wasm: Uint8Array | undefined;
  const { error, stderr } = await asc.main([
    ...["bench.ts", "-o", "bench.wasm", "-O1", "--runtime", "stub", "--noAssert"],
    ...["--importMemory", "--sharedMemory", "--maximumMemory", "65536", "--use", "abort="],
    ...["--enable", "simd", "--enable", "threads", "--enable", "relaxed-simd"],
  ], {
    readFile(name: string) {
      if (name === "bench.ts") return TEXT;
      const generated = /^generated\/(\w+)\.ts$/.exec(name)?.[1];
      if (generated) return GENERATED[generated]?.() ?? null;
      try {
        return Deno.readTextFileSync(new URL(name, ASSEMBLY));
      } catch {
        return null;
      }
    },
    writeFile: (_: string, contents: Uint8Array | string) => void (wasm = contents as Uint8Array),
    listFiles: () => [],
  });
  if (error !== null || !wasm) throw new Error(`Cannot compile the bench: ${error}\n${stderr}`);
  const { instance } = await WebAssembly.instantiate(wasm as Uint8Array<ArrayBuffer>, {
    env: { memory },
  });
  return instance.exports.attend as Attend;
}
