// The loops of attention/half.ts in a form whose pairs of vectors V8 joins to vectors of 256 bits, with the same
// bits as results:
//
//   scoresN: two positions side by side, whose eight channels each are mixed by 64 bits before they are widened
//   valuesN: eight channels, which one load of halves widens to
//
// Two loads are never joined, since each is checked between them. So sums that wait in memory lie there as planes: of
// the eight floats of a pair the even ones, then the odd ones, which are widened to 64 bits and put together
// (`acc` of valuesN, `sums` of scoresN). What begins a search for pairs is an addition of integers whose sides are a
// pair: its sum is stored where the results are stored after it.

import { each, pick, QUERIES, range, RUN } from "./half.ts";
import { behindLoop, everyOther, mixed, seed, spread } from "../planes.ts";
import { HALVES } from "../scales.ts";

const LINE = 4 * RUN;
/** Positions of a factor. */
const BLOCK = 32;
const CHANNELS = 64;

function shuffle(a: string, b: string, lanes: readonly number[]): string {
  return `v128.shuffle<i32>(${a}, ${b}, ${lanes.join(", ")})`;
}

/** Loads a pair from its planes. */
function fromPlanes(pair: readonly [string, string], address: string, at: number): string {
  return `E = v128.load(${address}, ${at}); O = v128.load(${address}, ${at + 16}); ` +
    pair.map((name, h) => `${name} = ${mixed("E", "O", h)};`).join(" ");
}

function toPlanes([a, b]: readonly [string, string], address: string, at: number): string {
  return ([0, 1] as const).map((odd) =>
    `v128.store(${address}, ${everyOther(a, b, odd)}, ${at + 16 * odd});`
  ).join(" ");
}

/** Both halves of eight float16 in `from`, times 2^-112. */
function widen(names: readonly [string, string], from: string): string {
  return names.map((name, h) =>
    `${name} = v128.and(i32x4.shl(${spread(from, h, "i32x4", "s")}, 13), mask);`
  ).join(" ");
}

function scores(n: number): string {
  const lanes = range(4), pairs = [0, 1] as const;
  const sums = (i: number, pair: number) => [`a${i}${2 * pair}`, `a${i}${2 * pair + 1}`] as const;
  const all = (line: (i: number, pair: number) => string) =>
    each(n, (i) => each(2, (pair) => line(i, pair), " "));
  const at = (i: number, pair: number) => 32 * (2 * i + pair);
  const loadKeys = (pair: number, at: number) =>
    `x = v128.load(k${2 * pair}, ${at}); y = v128.load(k${2 * pair + 1}, ${at}); ` +
    `h${pair}0 = v128.shuffle<i64>(x, y, 0, 2); h${pair}1 = v128.shuffle<i64>(x, y, 1, 3);`;
  const products = (c: number) => `
    ${each(2, (pair) => loadKeys(pair, 16 * c))}
    ${
    HALVES.map((h) =>
      each(2, (pair) => widen([`x${2 * pair}`, `x${2 * pair + 1}`], `h${pair}${h}`)) + "\n" +
      each(n, (i) =>
        each(4, (r) =>
          `a${i}${r} = madd(q${(2 * c + h) * n + i}, x${r}, a${i}${r});`, " "))
    ).join("\n")
  }`;
  const sumsOf = (i: number) => `sumsOfPairs(pairSums(a${i}0, a${i}1), pairSums(a${i}2, a${i}3))`;
  return `
function some${n}(q: usize, k: usize, step: usize, count: u32, s: usize, sums: usize, begins: bool, ends: bool): void {
  const mask = halfMask(), f = f32x4.splat(4096), zero = f32x4.splat(0);
  const last = k + <usize>(count - 1) * step;
  ${each(CHANNELS / 4 * n, (i) => `const q${i} = v128.load(q, ${16 * i});`, " ")}
  for (const stop = s + (<usize>count << 2); s < stop; s += 16, k += 4 * step, sums += ${64 * n}) {
    const k0 = k, k1 = within(k + step, last), k2 = within(k + 2 * step, last), k3 = within(k + 3 * step, last);
    let x = zero, y = zero, h00 = zero, h01 = zero, h10 = zero, h11 = zero, ${
    lanes.map((r) => `x${r} = zero`).join(", ")
  };
    let ${
    all((i, pair) => sums(i, pair).map((name) => `${name} = zero,`).join(" "))
  } E = zero, O = zero;
    if (!begins) { ${all((i, pair) => fromPlanes(sums(i, pair), "sums", at(i, pair)))} }
    ${each(CHANNELS / 8, products)}
    ${seed("s", range(n).flatMap((i) => pairs.map((pair) => sums(i, pair))))}
    if (ends) { ${each(n, (i) => `v128.store(s, f32x4.mul(f, ${sumsOf(i)}), ${LINE * i});`)} }
    else { ${all((i, pair) => toPlanes(sums(i, pair), "sums", at(i, pair)))} }
  }
}
function scores${n}(q: usize, size: usize, k: usize, step: usize, count: u32, s: usize, sums: usize): void {
  for (let d: usize = 0; d < size; d += ${CHANNELS}, q += ${16 * CHANNELS / 4 * n}, k += ${
    2 * CHANNELS
  }) {
    some${n}(q, k, step, count, s, sums, d == 0, d + ${CHANNELS} == size);
  }
}`;
}

/** Vectors of eight channels that values take at a time. */
const vectorsOf = (queries: number) => queries === 1 ? 8 : queries === 2 ? 4 : 2;

function values(n: number): string {
  const tile = (vectors: number) => {
    const sums = (i: number, v: number) => [`a${i}${2 * v}`, `a${i}${2 * v + 1}`] as const;
    const x = (v: number) => [`x${2 * v}`, `x${2 * v + 1}`] as const;
    const all = (line: (i: number, v: number) => string) =>
      each(n, (i) => each(vectors, (v) => line(i, v)));
    const load = (address: string) =>
      each(vectors, (v) => `h = v128.load(${address}, ${16 * v}); ${widen(x(v), "h")}`);
    const add = (i: number) =>
      each(2 * vectors, (r) => `a${i}${r} = madd(u, x${r}, a${i}${r});`, " ");
    return `
    const a = acc + d;
    ${
      all((i, v) =>
        sums(i, v).map((name) => `let ${name} = zero;`).join(" ") + " " +
        fromPlanes(sums(i, v), `(a + ${i} * bytes)`, 32 * v)
      )
    }
    let p = s, y0 = v + (d >> 1);
    for (let f = factors; p < end; f += 16) {
      const stop = min(p + ${4 * BLOCK}, end), fours = p + ((stop - p) & ~15);
      ${
      each(n, (i) =>
        `u = v128.load32_splat(f, ${4 * i}); ` +
        each(2 * vectors, (r) => `a${i}${r} = f32x4.mul(a${i}${r}, u);`, " "))
    }
    for (; p < fours; p += 16, y0 += 4 * step) {
      const y1 = y0 + step, y2 = y1 + step, y3 = y2 + step;
      ${each(n, (i) => `const p${i} = v128.load(p, ${LINE * i});`)}
      ${
      each(4, (lane) => `
      ${load(`y${lane}`)}
      ${each(n, (i) => `u = ${shuffle(`p${i}`, `p${i}`, Array(4).fill(lane))}; ${add(i)}`)}`)
    }
    }
    for (; p < stop; p += 4, y0 += step) {
      ${load("y0")}
      ${each(n, (i) => `u = v128.load32_splat(p, ${LINE * i}); ${add(i)}`)}
    }
    }
    ${all((i, v) => sums(i, v).map(behindLoop).join(" "))}
    ${seed("a", range(n).flatMap((i) => range(vectors).map((v) => sums(i, v))))}
    ${all((i, v) => toPlanes(sums(i, v), `(a + ${i} * bytes)`, 32 * v))}`;
  };
  const most = vectorsOf(n);
  return `
function values${n}(s: usize, factors: usize, v: usize, step: usize, count: u32, size: u32, acc: usize): void {
  const mask = halfMask(), zero = f32x4.splat(0), bytes = <usize>size << 2;
  const end = s + (<usize>count << 2);
  let u = mask, h = mask, E = mask, O = mask, ${
    each(most, (v) => `x${2 * v} = mask, x${2 * v + 1} = mask`, ", ")
  };
  let d: usize = 0;
  for (; d + ${32 * most} <= bytes; d += ${32 * most}) {${tile(most)}
  }
  for (; d < bytes; d += 32) {${tile(1)}
  }
}`;
}

/** Module `generated/attention_joined`: `scoresJoined` and `valuesJoined` for 1 to 4 queries. */
export function attentionJoined(): string {
  return `
import { halfMask } from "../half";
import { min } from "../machine/runtime";
import { madd, pairSums, sumsOfPairs } from "../simd";

@inline function within(address: usize, last: usize): usize { return address > last ? last : address; }
${QUERIES.map(scores).join("\n")}
${QUERIES.map(values).join("\n")}

/** Of heads that have a multiple of 64 channels. */
export function scoresJoined(
  queries: u32, q: usize, size: u32, k: usize, step: usize, count: u32, s: usize, sums: usize,
): void {
${pick("scores", "q, size, k, step, count, s, sums")}
}

/** Of heads that have a multiple of 8 channels; \`acc\` lies in planes. */
export function valuesJoined(
  queries: u32, s: usize, factors: usize, v: usize, step: usize, count: u32, size: u32, acc: usize,
): void {
${pick("values", "s, factors, v, step, count, size, acc")}
}

/** Puts sums that lie in planes into the order of channels. */
export function orderPlanes(acc: usize, bytes: usize): void {
  for (const end = acc + bytes; acc < end; acc += 32) {
    const even = v128.load(acc), odd = v128.load(acc, 16);
    v128.store(acc, ${shuffle("even", "odd", [0, 4, 1, 5])});
    v128.store(acc, ${shuffle("even", "odd", [2, 6, 3, 7])}, 16);
  }
}
`;
}
