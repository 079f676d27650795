// The inner loops of attention on a float16 cache for 1 to 4 queries (decoding): they differ in the number
// of queries only, and every accumulator must be a local to stay in a register.
//
//   scoresN: s[i][j] = 2^12 · q[i] · k[j]    `lanes` positions at a time, each K vector read once
//   valuesN: acc[i] = acc[i] · factor[i] + Σ p[i][j] · v[j]    `lanes` vectors of channels at a time
//
// Vectors of the N queries alternate in memory, and offsets are immediates where they can be: in V8's code
// every address that is a sum costs an instruction. N = 3 and 4 take 2 lanes: 12 accumulators and their
// operands do not fit 16 registers.

const QUERIES = [1, 2, 3, 4] as const;

function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

function lanesOf(queries: number): number {
  return queries <= 2 ? 4 : 2;
}

function each(count: number, line: (i: number) => string, separator = "\n"): string {
  return range(count).map(line).join(separator);
}

function accumulate(i: number, lanes: number): string {
  return each(lanes, (r) => `a${i}${r} = madd(u, x${r}, a${i}${r});`, " ");
}

/** Four halves at an address plus a constant, times 2^-112 (as movedHalf4). */
function half(address: string, offset: number): string {
  return `v128.and(i32x4.shl(v128.load16x4_s(${address}, ${offset}), 13), mask)`;
}

function scores(n: number): string {
  const lanes = lanesOf(n);
  const store = (i: number) =>
    lanes === 4
      ? `v128.store(line, f32x4.mul(f, sums4(a${i}0, a${i}1, a${i}2, a${i}3)), ${128 * i});`
      : `v128.store64_lane(line, f32x4.mul(f, sums2(a${i}0, a${i}1)), 0, ${128 * i});`;
  return `
function scores${n}(q: usize, size: u32, k: usize, step: usize, count: u32, s: usize): void {
  const mask = halfMask(), f = f32x4.splat(4096), end = q + <usize>size * ${4 * n};
  const last = k + <usize>(count - 1) * step, padded = (count + 3) & ~3;
  for (let j: u32 = 0; j < padded; j += ${lanes}, k += ${lanes} * step) {
    ${each(lanes, (r) => `let k${r} = within(k + ${r} * step, last);`, " ")}
    const zero = f32x4.splat(0);
    let u = zero;
    ${each(n, (i) => `let ${each(lanes, (r) => `a${i}${r} = zero`, ", ")};`)}
    let p = q;
    for (; p + ${32 * n} <= end; p += ${32 * n}) {
      ${each(lanes, (r) => `let x${r} = ${half(`k${r}`, 0)};`)}
      ${each(n, (i) => `u = v128.load(p, ${16 * i}); ${accumulate(i, lanes)}`)}
      ${each(lanes, (r) => `x${r} = ${half(`k${r}`, 8)}; k${r} += 16;`)}
      ${each(n, (i) => `u = v128.load(p, ${16 * (n + i)}); ${accumulate(i, lanes)}`)}
    }
    if (p < end) {
      ${each(lanes, (r) => `const x${r} = ${half(`k${r}`, 0)};`)}
      ${each(n, (i) => `u = v128.load(p, ${16 * i}); ${accumulate(i, lanes)}`)}
    }
    const line = s + (<usize>j << 2);
    ${each(n, store)}
  }
}`;
}

function values(n: number): string {
  const lanes = lanesOf(n);
  const block = (width: number) => `
    ${
    each(n, (i) =>
      `u = v128.load32_splat(factors, ${4 * i});\n` +
      each(
        width,
        (r) => `let a${i}${r} = f32x4.mul(v128.load(acc + ${i} * bytes + d, ${16 * r}), u);`,
      ))
  }
    let x = v + (d >> 1);
    for (let p = s; p < end; p += 4, x += step) {
      ${each(width, (r) => `const x${r} = ${half("x", 8 * r)};`)}
      ${each(n, (i) => `u = v128.load32_splat(p, ${128 * i}); ${accumulate(i, width)}`)}
    }
    ${
    each(n, (i) =>
      each(width, (r) =>
        `v128.store(acc + ${i} * bytes + d, a${i}${r}, ${16 * r});`, " "))
  }`;
  return `
function values${n}(s: usize, factors: usize, v: usize, step: usize, count: u32, size: u32, acc: usize): void {
  const mask = halfMask(), bytes = <usize>size << 2, end = s + (<usize>count << 2);
  let u = mask;
  let d: usize = 0;
  for (; d + ${16 * lanes} <= bytes; d += ${16 * lanes}) {${block(lanes)}
  }
  for (; d < bytes; d += 16) {${block(1)}
  }
}`;
}

/** Module `generated/attention_half`: `scoresHalf` and `valuesHalf` for 1 to 4 queries. */
export function attentionHalf(): string {
  const pick = (name: string, rest: string) =>
    QUERIES.map((n) => `  ${n < 4 ? `if (queries == ${n}) ` : ""}${name}${n}(${rest});`).join(
      "\n  else ",
    );
  return `
import { halfMask } from "../half";
import { madd, sums2, sums4 } from "../simd";

@inline function within(address: usize, last: usize): usize { return address > last ? last : address; }
${QUERIES.map(scores).join("\n")}
${QUERIES.map(values).join("\n")}

export function scoresHalf(queries: u32, q: usize, size: u32, k: usize, step: usize, count: u32, s: usize): void {
${pick("scores", "q, size, k, step, count, s")}
}

export function valuesHalf(
  queries: u32, s: usize, factors: usize, v: usize, step: usize, count: u32, size: u32, acc: usize,
): void {
${pick("values", "s, factors, v, step, count, size, acc")}
}
`;
}
