import { assert, assertEquals, assertThrows } from "@std/assert";
import { ResourceError } from "../errors.ts";
import {
  type Item,
  naiveBytes,
  overlapInTime,
  peak,
  placeGreedyBySize,
  placeNaively,
  placeSharedObjects,
  totalBytes,
} from "./memory.ts";

type Triple = readonly [bytes: number, first: number, last: number];

function items(triples: readonly Triple[]): Item[] {
  return triples.map(([bytes, first, last]) => ({ bytes, first, last }));
}

// Spec §9.5, made with an independent implementation of Pisarchyk & Lee 2020.
const A: readonly Triple[] = [[16, 0, 1], [8, 1, 2], [64, 2, 3], [32, 3, 4], [8, 4, 5]];
const B: readonly Triple[] = [
  ...[[16, 0, 1], [32, 1, 4], [8, 2, 5], [32, 3, 6]] as const,
  ...[[8, 4, 5], [64, 5, 7], [10, 6, 8], [40, 7, 8]] as const,
];
const C: readonly Triple[] = [
  ...[[36, 0, 3], [28, 0, 1], [14, 1, 2], [24, 2, 4]] as const,
  ...[[30, 3, 5], [20, 4, 6], [64, 5, 6]] as const,
];

const vectors = [
  { name: "A", triples: A, align: 1, offsets: [0, 64, 0, 64, 0], total: 96, bound: 96, naive: 128 },
  {
    ...{ name: "B", triples: B, align: 1, offsets: [32, 0, 96, 64, 104, 0, 104, 64] },
    ...{ total: 114, bound: 114, naive: 210 },
  },
  {
    ...{ name: "B", triples: B, align: 16, offsets: [32, 0, 96, 64, 112, 0, 112, 64] },
    ...{ total: 122, bound: 114, naive: undefined },
  },
  {
    ...{ name: "C", triples: C, align: 1, offsets: [0, 36, 64, 36, 64, 94, 0] },
    ...{ total: 114, bound: 114, naive: 216 },
  },
  {
    ...{ name: "C", triples: C, align: 16, offsets: [0, 48, 80, 96, 64, 128, 0] },
    ...{ total: 148, bound: 114, naive: undefined },
  },
];

for (const { name, triples, align, offsets, total, bound, naive } of vectors) {
  Deno.test(`greedy by size gives the offsets of vector ${name} aligned to ${align}`, () => {
    const list = items(triples);
    const placed = placeGreedyBySize(list, align);
    assertEquals(placed, offsets);
    assertEquals(totalBytes(list, placed), total);
    assertEquals(peak(list).bytes, bound);
    if (naive !== undefined) assertEquals(naiveBytes(list, align), naive);
  });
}

Deno.test("greedy by size places the Stable Diffusion VAE decoder in 320 MiB", () => {
  // Spec §9.5: 512², fp16, GroupNorm + SiLU one op, residual add fused into the convolution before it.
  const list = vaeDecoder();
  const mebibytes = (bytes: number) => Math.round(bytes / 2 ** 20 * 10) / 10;
  assertEquals(list.length, 77);
  assertEquals(mebibytes(naiveBytes(list, 1)), 2189.6);
  assertEquals(mebibytes(peak(list).bytes), 320);
  assertEquals(mebibytes(totalBytes(list, placeGreedyBySize(list, 256))), 320);
});

/** Tensors of the decoder in order; each op is one moment. */
function vaeDecoder(): Item[] {
  const made: { bytes: number; first: number; last: number }[] = [];
  const run = (channels: number, side: number, ...inputs: number[]): number => {
    const moment = made.length;
    for (const input of inputs) made[input]!.last = moment;
    made.push({ bytes: channels * side * side * 2, first: moment, last: moment });
    return moment;
  };
  const resNet = (x: number, from: number, to: number, side: number): number => {
    const inner = run(to, side, run(from, side, x));
    const norm = run(to, side, inner);
    const shortcut = from === to ? x : run(to, side, x);
    return run(to, side, norm, shortcut);
  };
  const attend = (x: number): number => {
    const norm = run(512, 64, x);
    const [q, k, v] = [run(512, 64, norm), run(512, 64, norm), run(512, 64, norm)];
    const scores = run(4096, 64, q, k);
    const weights = run(4096, 64, scores);
    return run(512, 64, run(512, 64, weights, v), x);
  };
  // Latents, the convolution after quantisation, the first convolution.
  let x = run(512, 64, run(4, 64, run(4, 64)));
  x = resNet(attend(resNet(x, 512, 512, 64)), 512, 512, 64);
  let from = 512;
  for (const [level, channels] of [512, 512, 256, 128].entries()) {
    const side = 64 << level;
    for (let i = 0; i < 3; i++) {
      x = resNet(x, from, channels, side);
      from = channels;
    }
    if (level < 3) x = run(channels, side * 2, run(channels, side * 2, x));
  }
  run(3, 512, run(128, 512, x));
  return made;
}

Deno.test("ties go by index and the smallest gap that fits is taken", () => {
  assertEquals(placeGreedyBySize(items([[8, 0, 0], [8, 0, 0], [8, 0, 0]]), 1), [0, 8, 16]);
  // Gaps of 12 at 20 and of 8 at 52: the item of 6 bytes goes into the smaller.
  const gaps = items([[20, 0, 9], [12, 0, 1], [20, 0, 9], [8, 0, 1], [20, 0, 9], [6, 2, 3]]);
  const placed = placeGreedyBySize(gaps, 1);
  assertEquals(placed.slice(0, 5), [0, 60, 20, 72, 40]);
  assertEquals(placed[5], 60);
});

Deno.test("shared objects are as large as their first tensor and never shared while live", () => {
  const list = items(B);
  const placed = placeSharedObjects(list, 1);
  for (const [i, a] of list.entries()) {
    for (const [j, b] of list.entries()) {
      if (i < j && overlapInTime(a, b)) assert(placed[i] !== placed[j], `${i} and ${j}`);
    }
  }
  assertEquals(placed, [104, 64, 136, 104, 146, 0, 136, 64]);
  assertEquals(totalBytes(list, placed), 64 + 40 + 32 + 10 + 8);
});

Deno.test("naive placement gives each tensor its own place", () => {
  assertEquals(placeNaively(items(A), 16), [0, 16, 32, 96, 128]);
});

Deno.test("nothing to place takes nothing, and empty tensors take no room", () => {
  assertEquals(placeGreedyBySize([], 16), []);
  assertEquals(peak([]), { moment: 0, bytes: 0 });
  const list = items([[0, 0, 3], [8, 1, 2]]);
  assertEquals(totalBytes(list, placeGreedyBySize(list, 16)), 8);
});

Deno.test("sums beyond 2^53 are refused", () => {
  const list = items([[2 ** 53 - 1, 0, 1], [2 ** 53 - 1, 0, 1]]);
  assertThrows(() => placeGreedyBySize(list, 1), ResourceError, "beyond 2^53");
  assertThrows(() => naiveBytes(list, 1), ResourceError, "beyond 2^53");
  assertThrows(() => peak(list), ResourceError, "beyond 2^53");
});
