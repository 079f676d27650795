// The inner loops of attention on a cache of Q8_0 for 1 to 4 queries (decoding), the siblings of
// half.ts:
//
//   scoresN: s[i][j] = factor[i] · Σ over blocks scale[j] · Σ q[i] · codes[j]    q in 16 bit, integer products
//   valuesN: acc[i] = acc[i] · factor[i] + Σ (p[i][j] · scale[j]) · codes[j]      products in float32
//
// A vector of 8 codes costs one load, one product and one sum in scores, a third of what 8 halves cost. In
// values, p · scale is made once a block of 32 channels for all its vectors, and codes are converted once
// for all queries. Values as integer products too (p in 16 bit, two positions a product) were reckoned and
// not built: interleaving two positions costs what the conversion does, and p would be rounded.

import { each, pick, QUERIES, range } from "./half.ts";

function scores(n: number): string {
  const lanes = n === 1 ? 4 : 2;
  const all = (line: (i: number, r: number) => string) =>
    each(n, (i) => each(lanes, (r) => line(i, r), " "));
  const products = (v: number) => `
      ${each(lanes, (r) => `x${r} = v128.load8x8_s(k${r}, ${2 + 8 * v});`, " ")}
      ${
    each(n, (i) =>
      `u = v128.load(p, ${16 * (n * v + i)}); ` +
      each(lanes, (r) => {
        const product = `i32x4.dot_i16x8_s(u, x${r})`;
        return `c${i}${r} = ${v === 0 ? product : `i32x4.add(c${i}${r}, ${product})`};`;
      }, " "))
  }`;
  const store = (i: number) =>
    lanes === 4
      ? `v128.store(line, f32x4.mul(u, sums4(a${i}0, a${i}1, a${i}2, a${i}3)), ${128 * i});`
      : `v128.store64_lane(line, f32x4.mul(u, sums2(a${i}0, a${i}1)), 0, ${128 * i});`;
  return `
function scores${n}(q: usize, factors: usize, size: u32, k: usize, step: usize, count: u32, s: usize): void {
  const mask = halfMask(), end = q + <usize>size * ${2 * n};
  const last = k + <usize>(count - 1) * step, padded = (count + 3) & ~3;
  for (let j: u32 = 0; j < padded; j += ${lanes}, k += ${lanes} * step) {
    ${each(lanes, (r) => `let k${r} = within(k + ${r} * step, last);`, " ")}
    const zero = f32x4.splat(0);
    let u = zero;
    ${each(lanes, (r) => `let x${r} = zero;`, " ")}
    ${all((i, r) => `let a${i}${r} = zero, c${i}${r} = zero;`)}
    for (let p = q; p < end; p += ${64 * n}) {
      ${each(4, products, "")}
      ${each(lanes, (r) => `x${r} = movedScale(k${r}, mask); k${r} += 34;`, " ")}
      ${all((i, r) => `a${i}${r} = madd(f32x4.convert_i32x4_s(c${i}${r}), x${r}, a${i}${r});`)}
    }
    const line = s + (<usize>j << 2);
    ${each(n, (i) => `u = v128.load32_splat(factors, ${4 * i}); ${store(i)}`)}
  }
}`;
}

function values(n: number): string {
  // Vectors of eight codes at a time: two accumulators each a query.
  const wide = n <= 2 ? 2 : 1;
  const accumulators = range(2 * wide);
  const halves = ["low", "high"] as const;
  return `
function values${n}(
  s: usize, factors: usize, v: usize, step: usize, count: u32, size: u32, acc: usize, weights: usize,
): void {
  const mask = halfMask(), bytes = <usize>size << 2, end = weights + <usize>count * ${4 * n};
  let u = mask;
  for (const stop = acc + bytes; acc < stop; v += 34) {
    let block = v, p = s;
    for (let w = weights; w < end; w += ${4 * n}, p += 4, block += step) {
      const scale = movedScale(block, mask);
      ${
    each(n, (i) =>
      `v128.store32_lane(w, f32x4.mul(v128.load32_splat(p, ${128 * i}), scale), 0, ${4 * i});`)
  }
    }
    for (let d: usize = 0; d < 32; d += ${8 * wide}, acc += ${32 * wide}) {
      ${
    each(n, (i) =>
      `u = v128.load32_splat(factors, ${4 * i});\n` +
      accumulators.map((r) =>
        `let a${i}${r} = f32x4.mul(v128.load(acc + ${i} * bytes, ${16 * r}), u);`
      ).join("\n"))
  }
      let x = v + d;
      for (let w = weights; w < end; w += ${4 * n}, x += step) {
        ${each(wide, (h) => `const codes${h} = v128.load8x8_s(x, ${2 + 8 * h});`, " ")}
        ${
    accumulators.map((r) =>
      `const x${r} = f32x4.convert_i32x4_s(i32x4.extend_${halves[r % 2]}_i16x8_s(codes${r >> 1}));`
    ).join("\n")
  }
        ${
    each(n, (i) =>
      `u = v128.load32_splat(w, ${4 * i}); ` +
      accumulators.map((r) => `a${i}${r} = madd(u, x${r}, a${i}${r});`).join(" "))
  }
      }
      ${
    each(n, (i) =>
      accumulators.map((r) =>
        `v128.store(acc + ${i} * bytes, a${i}${r}, ${16 * r});`
      ).join(" "))
  }
    }
  }
}`;
}

/** Module `generated/attention_blocks`: `scoresBlocks` and `valuesBlocks` for 1 to 4 queries. */
export function attentionBlocks(): string {
  return `
import { movedScale } from "../attention/cache_blocks";
import { halfMask } from "../half";
import { madd, sums2, sums4 } from "../simd";

@inline function within(address: usize, last: usize): usize { return address > last ? last : address; }
${QUERIES.map(scores).join("\n")}
${QUERIES.map(values).join("\n")}

/** Queries in 16 bit, their vectors alternating; a factor each. */
export function scoresBlocks(
  queries: u32, q: usize, factors: usize, size: u32, k: usize, step: usize, count: u32, s: usize,
): void {
${pick("scores", "q, factors, size, k, step, count, s")}
}

/** \`weights\`: memory for a number a query and position. */
export function valuesBlocks(
  queries: u32, s: usize, factors: usize, v: usize, step: usize, count: u32, size: u32, acc: usize, weights: usize,
): void {
${pick("values", "s, factors, v, step, count, size, acc, weights")}
}
`;
}
