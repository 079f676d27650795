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
interface Gathered {
  /** Tiles, and tiles times splits, up to which there is memory. */
  readonly most: number;
  /** Variables of an invocation: vectors of four floats, of whose block rows there may be none, and floats. */
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
 * Statements in uniform control flow, with `tile`, `split_here`, `thread`, and `has_rows` of an invocation: workgroups return
 * but for the last one of a tile, whose variables are sums over `params.splits` splits.
 */
export function gather({ most, quads, floats, threads }: Gathered): string {
  const own = 4 * quads.length + floats.length, words = own * threads;
  const place = (n: number) => `${n * threads}u + thread`;
  const float = (n: number) =>
    n < 4 * quads.length ? `${quads[n >> 2]}.${"xyzw"[n & 3]}` : floats[n - 4 * quads.length];
  const of = (name: string, n: number) => `atomicLoad(&gathered[${name} + ${place(n)}])`;
  const parts = list(AT_ONCE, (k) => `part${k}`);
  const starts = parts.map((part, k) =>
    `let ${part} = start + min(split + ${k}u, params.splits - 1u) * ${words}u;`
  );
  /** Reads words of some splits, and adds them up; behind the last split its words are there again. */
  const added = (names: readonly string[], { first, type, wide }: {
    readonly first: number;
    readonly type: string;
    readonly wide: number;
  }) => {
    const read = parts.flatMap((part, k) =>
      names.map((_, v) => {
        const loads = list(wide, (c) => of(part, first + wide * v + c)).join(", ");
        return `let bits${k}_${first + v} = ${wide === 4 ? `vec4<u32>(${loads})` : loads};`;
      })
    );
    const seen = parts.flatMap((_, k) =>
      names.map((_, v) =>
        `least = min(least, ${wide === 4 ? "" : "vec4<u32>"}(bits${k}_${first + v}));`
      )
    );
    const sums = parts.flatMap((_, k) => {
      const own = names.map((name, v) => `${name} += bitcast<${type}>(bits${k}_${first + v});`);
      return k === 0 ? own : [`if (split + ${k}u < params.splits) {`, ...own, "}"];
    });
    return { read, sums: [...seen, ...sums] };
  };
  const ofQuads = added(quads, { first: 0, type: "vec4<f32>", wide: 4 });
  const ofFloats = added(floats, { first: 4 * quads.length, type: "f32", wide: 1 });
  return wgsl`
    if (params.splits > 1u) {
      let start = ${most}u + tile * params.splits * ${words}u;
      let own = start + split_here * ${words}u;
      if (has_rows) {
        ${list(4 * quads.length, (n) => `put(own + ${place(n)}, ${float(n)});`)}
      }
      ${floats.map((name, f) => `put(own + ${place(4 * quads.length + f)}, ${name});`)}
      workgroupBarrier();
      if (thread == 0u) { arrived = atomicAdd(&gathered[tile], 1u) + 1u; }
      if (workgroupUniformLoad(&arrived) < params.splits) { return; }
      for (var readings = 0u; readings < ${MOST_READINGS}u; readings++) {
        var least = vec4<u32>(1u);
        ${quads.map((name) => `${name} = vec4<f32>();`)}
        ${floats.map((name) => `${name} = 0.0;`)}
        for (var split = 0u; split < params.splits; split += ${AT_ONCE}u) {
          ${starts}
          ${ofFloats.read}
          if (has_rows) {
            ${ofQuads.read}
            ${ofQuads.sums}
          }
          ${ofFloats.sums}
        }
        if (all(least != vec4<u32>())) { break; }
      }
      // Words that the invocation has read.
      for (var split = 0u; split < params.splits; split++) {
        for (var word = select(${4 * quads.length}u, 0u, has_rows); word < ${own}u; word++) {
          atomicStore(&gathered[start + split * ${words}u + word * ${threads}u + thread], 0u);
        }
      }
      if (thread == 0u) { atomicStore(&gathered[tile], 0u); }
    }
  `;
}
