// Sums of split columns that are added up within the dispatch that makes them: a dispatch of its own for that costs as
// much as a product of few rows (bench/results/gpu-h200.md). Every workgroup puts its sums into memory that all share and
// counts itself; the last of a tile adds up what the others left, in the order of the splits, so that results do not
// depend on who was last.
//
// WGSL orders no memory between workgroups, only single atomic words are coherent. So a word says by itself whether it has
// been written: memory is zeros before and after, and a sum that is 0 is written as -0. The last workgroup reads again what
// it still finds to be 0; the one that wrote it has done so before it counted itself, so nobody waits for a workgroup
// that has not begun.

import { wgsl } from "../../wgsl.ts";
import { list } from "./rows.ts";

/** Splits whose sums are read before the first of them is used. */
const AT_ONCE = 4;
/** Readings after which a sum is given up: a driver that loses words shall compute wrong, and not hang. */
const MOST_READINGS = 1 << 16;

/** What is gathered. */
export interface Gathered {
  /** Tiles, and tiles times splits, up to which there is memory. */
  readonly most: number;
  /** Variables of an invocation: vectors of four floats, and floats. */
  readonly quads: readonly string[];
  readonly floats: readonly string[];
  readonly threads: number;
}

/** Words of memory, which are zeros before and after: a count of each tile, then sums. */
export function gatheredWords(
  { most, quads, floats, threads }: Omit<Gathered, "quads" | "floats"> & {
    readonly quads: number;
    readonly floats: number;
  },
): number {
  return most * (1 + (4 * quads + floats) * threads);
}

/** Module scope; there is a binding `gathered`, atomic words. */
export const GATHERED_DECLARATIONS = wgsl`
  var<workgroup> arrived: u32;

  fn put(at: u32, sum: f32) {
    let bits = bitcast<u32>(sum);
    atomicStore(&gathered[at], select(bits, 0x80000000u, bits == 0u));
  }
`;

/**
 * Statements in uniform control flow, with `tile`, `split_here` and `thread`: workgroups return but for the last one of a tile,
 * whose variables are sums over `params.splits` splits.
 */
export function gather({ most, quads, floats, threads }: Gathered): string {
  const own = 4 * quads.length + floats.length, words = own * threads;
  const place = (n: number) => `${n * threads}u + thread`;
  const float = (n: number) =>
    n < 4 * quads.length ? `${quads[n >> 2]}.${"xyzw"[n & 3]}` : floats[n - 4 * quads.length];
  const all = [...quads, ...floats];
  const word = (from: string, n: number) => `atomicLoad(&gathered[${from} + ${place(n)}])`;
  /** What is read of a split: words by variable. */
  const read = (k: number) => {
    const from = `part${k}`;
    return [
      `let ${from} = start + min(split + ${k}u, params.splits - 1u) * ${words}u;`,
      ...quads.map((_, q) =>
        `let bits${k}_${q} = vec4<u32>(${list(4, (c) => word(from, 4 * q + c)).join(", ")});`
      ),
      ...floats.map((_, f) =>
        `let bits${k}_${quads.length + f} = ${word(from, 4 * quads.length + f)};`
      ),
    ];
  };
  const isQuad = (v: number) => v < quads.length;
  const seen = (k: number) =>
    all.map((_, v) => `least = min(least, ${isQuad(v) ? "" : "vec4<u32>"}(bits${k}_${v}));`);
  const add = (k: number) => {
    const sums = all.map((name, v) =>
      `${name} += bitcast<${isQuad(v) ? "vec4<f32>" : "f32"}>(bits${k}_${v});`
    );
    return k === 0
      ? sums
      : [`if (split + ${k}u < params.splits) {`, ...sums.map((text) => `  ${text}`), "}"];
  };
  return wgsl`
    if (params.splits > 1u) {
      let start = ${most}u + tile * params.splits * ${words}u;
      let own = start + split_here * ${words}u;
      ${list(own, (n) => `put(own + ${place(n)}, ${float(n)});`)}
      workgroupBarrier();
      if (thread == 0u) { arrived = atomicAdd(&gathered[tile], 1u) + 1u; }
      if (workgroupUniformLoad(&arrived) < params.splits) { return; }
      for (var readings = 0u; readings < ${MOST_READINGS}u; readings++) {
        var least = vec4<u32>(1u);
        ${all.map((name, v) => `${name} = ${isQuad(v) ? "vec4<f32>()" : "0.0"};`)}
        for (var split = 0u; split < params.splits; split += ${AT_ONCE}u) {
          ${list(AT_ONCE, (k) => read(k).join("\n"))}
          // Behind the last split its words are there again.
          ${list(AT_ONCE, (k) => seen(k).join("\n"))}
          ${list(AT_ONCE, (k) => add(k).join("\n"))}
        }
        if (all(least != vec4<u32>())) { break; }
      }
      // Words are those that the invocation has read.
      for (var word = thread; word < params.splits * ${words}u; word += ${threads}u) {
        atomicStore(&gathered[start + word], 0u);
      }
      if (thread == 0u) { atomicStore(&gathered[tile], 0u); }
    }
  `;
}
