// The inner loops of attention on a cache of Q8_0 for 1 to 4 queries (decoding), the siblings of half.ts and joined.ts:
//
//   scoresN: s[i][j] = factor[i] · Σ over blocks scale[j] · Σ q[i] · codes[j]    q in 16 bit, integer products
//   valuesN: acc[i] = acc[i] · factor[i] + Σ (p[i][j] · scale[j]) · codes[j]      products in float32
//
// A vector of 8 codes costs one load, one product and one sum in scores, a third of what 8 halves cost. In
// values, p · scale is made once a block of 32 channels for all its vectors, and codes are converted once
// for all queries. Values as integer products too (p in 16 bit, two positions a product) were reckoned and
// not built: interleaving two positions costs what the conversion does, and p would be rounded.
//
// Where V8 joins vectors (assembly/machine/joining.ts) there are others, with the same bits.

import { behindLoop, everyOther, laneSplat, mixed, seed, spread } from "../planes.ts";
import { HALVES } from "../scales.ts";
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

/** The same for where V8 joins vectors: two positions side by side, whose codes are mixed by 64 bits before they are widened. */
function joinedScores(n: number): string {
  const pairs = [0, 1] as const, lanes = range(4);
  const all = (line: (i: number, r: number) => string) =>
    each(n, (i) => each(4, (r) => line(i, r), " "));
  const mix = (name: string, loaded: (r: number) => string, order: string) =>
    pairs.map((pair) =>
      `const ${name}${pair} = v128.shuffle<i64>(${loaded(2 * pair)}, ${
        loaded(2 * pair + 1)
      }, ${order});`
    ).join(" ");
  const products = (v: number) =>
    pairs.map((pair) =>
      HALVES.map((h) => `x${2 * pair + h} = ${spread(`h${v}${pair}`, h, "i16x8", "s")};`).join(" ")
    ).join(" ") + "\n" +
    each(n, (i) =>
      `u = v128.load(p, ${16 * (n * v + i)}); ` +
      each(4, (r) => {
        const product = `i32x4.dot_i16x8_s(u, x${r})`;
        return `c${i}${r} = ${v === 0 ? product : `i32x4.add(c${i}${r}, ${product})`};`;
      }, " "));
  return `
function joinedScores${n}(q: usize, factors: usize, size: u32, k: usize, step: usize, count: u32, s: usize): void {
  const mask = halfMask(), end = q + <usize>size * ${2 * n};
  const last = k + <usize>(count - 1) * step;
  for (const stop = s + (<usize>count << 2); s < stop; s += 16, k += 4 * step) {
    ${each(4, (r) => `let k${r} = within(k + ${r} * step, last);`, " ")}
    const zero = f32x4.splat(0);
    let u = zero, ${each(4, (r) => `x${r} = zero`, ", ")};
    ${all((i, r) => `let a${i}${r} = zero, c${i}${r} = zero;`)}
    for (let p = q; p < end; p += ${64 * n}) {
      ${
    each(2, (w) => `
      ${each(4, (r) => `const y${w}${r} = v128.load(k${r}, ${2 + 16 * w});`, " ")}
      ${mix(`h${2 * w}`, (r) => `y${w}${r}`, "0, 2")}
      ${products(2 * w)}
      ${mix(`h${2 * w + 1}`, (r) => `y${w}${r}`, "1, 3")}
      ${products(2 * w + 1)}`)
  }
      ${each(4, (r) => `const f${r} = v128.load16_splat(k${r}); k${r} += 34;`, " ")}
      ${mix("g", (r) => `f${r}`, "0, 2")}
      ${
    lanes.map((r) =>
      `x${r} = v128.and(i32x4.shl(${spread(`g${r >> 1}`, r & 1, "i32x4", "s")}, 13), mask);`
    ).join(" ")
  }
      ${all((i, r) => `a${i}${r} = madd(f32x4.convert_i32x4_s(c${i}${r}), x${r}, a${i}${r});`)}
    }
    ${all((i, r) => behindLoop(`a${i}${r}`))}
    ${
    seed(
      "s",
      range(n).flatMap((i) => pairs.map((p) => [`a${i}${2 * p}`, `a${i}${2 * p + 1}`] as const)),
    )
  }
    ${
    each(n, (i) =>
      `u = v128.load32_splat(factors, ${4 * i}); ` +
      `v128.store(s, f32x4.mul(u, sums4(a${i}0, a${i}1, a${i}2, a${i}3)), ${128 * i});`)
  }
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

/**
 * The same for where V8 joins vectors: 16 channels at a time, each eight of which are a pair, and the queries' weights of a position
 * one load.
 */
function joinedValues(n: number): string {
  const sums = (i: number, v: number) => [`a${i}${2 * v}`, `a${i}${2 * v + 1}`] as const;
  const all = (line: (i: number, v: number) => string) =>
    each(n, (i) => each(2, (v) => line(i, v)));
  const at = (i: number) => `acc + ${i} * bytes`;
  const load = (i: number, v: number) =>
    `x = v128.load(${at(i)}, ${32 * v}); y = v128.load(${at(i)}, ${32 * v + 16}); ` +
    `E = ${everyOther("x", "y", 0)}; O = ${everyOther("x", "y", 1)}; ` +
    sums(i, v).map((name, h) => `let ${name} = f32x4.mul(${mixed("E", "O", h)}, u);`).join(" ");
  const codes = (v: number) =>
    `x = v128.load8x8_s(b, ${2 + 8 * v}); ` +
    HALVES.map((h) =>
      `const x${2 * v + h} = f32x4.convert_i32x4_s(${spread("x", h, "i32x4", "s")});`
    ).join(" ");
  return `
function joinedValues${n}(
  s: usize, factors: usize, v: usize, step: usize, count: u32, size: u32, acc: usize, weights: usize,
): void {
  const mask = halfMask(), bytes = <usize>size << 2, end = weights + (<usize>count << 4);
  let u = mask, x = mask, y = mask, E = mask, O = mask;
  for (const stop = acc + bytes; acc < stop; v += 34) {
    let block = v, p = s;
    for (let w = weights; w < end; w += 16, p += 4, block += step) {
      const scale = movedScale(block, mask);
      ${
    each(n, (i) =>
      `v128.store32_lane(w, f32x4.mul(v128.load32_splat(p, ${128 * i}), scale), 0, ${4 * i});`)
  }
    }
    for (let d: usize = 0; d < 32; d += 16, acc += 64) {
      ${each(n, (i) => `u = v128.load32_splat(factors, ${4 * i});\n${each(2, (v) => load(i, v))}`)}
      let b = v + d;
      for (let w = weights; w < end; w += 16, b += step) {
        const all = v128.load(w);
        ${each(2, codes)}
        ${
    each(n, (i) =>
      `u = ${laneSplat("all", i)}; ` +
      each(4, (r) => `a${i}${r} = madd(u, x${r}, a${i}${r});`, " "))
  }
      }
      ${all((i, v) => sums(i, v).map(behindLoop).join(" "))}
      ${seed("acc", range(n).flatMap((i) => [sums(i, 0), sums(i, 1)]))}
      ${each(n, (i) => each(4, (r) => `v128.store(${at(i)}, a${i}${r}, ${16 * r});`, " "))}
    }
  }
}`;
}

/** Module `generated/attention_blocks`: `scoresBlocks` and `valuesBlocks` for 1 to 4 queries. */
export function attentionBlocks(): string {
  return `
import { movedScale } from "../attention/cache_blocks";
import { halfMask } from "../half";
import { joins } from "../machine/joining";
import { madd, sums2, sums4 } from "../simd";

@inline function within(address: usize, last: usize): usize { return address > last ? last : address; }
${QUERIES.map(scores).join("\n")}
${QUERIES.map(values).join("\n")}
${QUERIES.map(joinedScores).join("\n")}
${QUERIES.map(joinedValues).join("\n")}

/** Queries in 16 bit, their vectors alternating; a factor each. */
export function scoresBlocks(
  queries: u32, q: usize, factors: usize, size: u32, k: usize, step: usize, count: u32, s: usize,
): void {
  if (joins()) {
${pick("joinedScores", "q, factors, size, k, step, count, s")}
    return;
  }
${pick("scores", "q, factors, size, k, step, count, s")}
}

/** \`weights\`: memory for four numbers a position. */
export function valuesBlocks(
  queries: u32, s: usize, factors: usize, v: usize, step: usize, count: u32, size: u32, acc: usize, weights: usize,
): void {
  if (joins()) {
${pick("joinedValues", "s, factors, v, step, count, size, acc, weights")}
    return;
  }
${pick("values", "s, factors, v, step, count, size, acc, weights")}
}
`;
}
