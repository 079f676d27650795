// The inner loops of attention on a float16 cache for 1 to 4 queries of a KV head: they differ in the number
// of queries only, and every accumulator must be a local to stay in a register.
//
//   scoresN: s[i][j] = 2^12 · q[i] · k[j]    64 channels at a time, positions in pairs (N > 2) or fours
//   valuesN: acc[i] = acc[i] · factor[i] + Σ p[i][j] · v[j]    positions in fours, 8 · vectorsOf(N) channels
//
// 1. V8 checks the bounds of every load with three instructions, so loads are what to save. The queries of 64
//    channels are locals while all positions of a run pass: V8 keeps them on its stack, which it does not check.
//    Eight halves are one load and five operations (two loads of four were two and six). A probability is a lane of
//    a vector that is loaded once for four positions. For 3 queries that is 3.0 and 3.5 instructions a
//    multiply-add, instead of 5 and 5.7.
// 2. Accumulators of channels beyond 64 wait in `sums`, so that a score is summed in the order of channels
//    whatever the size is.
//
// What then limits 3 queries are the six sums, four cycles a multiply-add. Queries in globals are the same text for V8
// as locals; what else was tried is in bench/results/kernels.md.

/** Positions whose scores are made at once; a line of scores has room for so many. */
export const RUN = 64;
const LINE = 4 * RUN;
/** Channels whose queries are held while positions pass. */
const CHANNELS = 64;

/** Queries of the inner loops. */
export const QUERIES = [1, 2, 3, 4] as const;

/** 0 … count - 1. */
export function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

/** Text for each of 0 … count - 1. */
export function each(count: number, line: (i: number) => string, separator = "\n"): string {
  return range(count).map(line).join(separator);
}

/** Statement that calls the loop `{name}N` of as many queries as there are. */
export function pick(name: string, rest: string): string {
  return QUERIES.map((n) => `  ${n < 4 ? `if (queries == ${n}) ` : ""}${name}${n}(${rest});`)
    .join("\n  else ");
}

function interleave(a: string, b: string, from: number): string {
  const lanes = range(4).flatMap((
    i,
  ) => [from + 2 * i, from + 2 * i + 1, 16 + from + 2 * i, 17 + from + 2 * i]);
  return `i8x16.shuffle(${a}, ${b}, ${lanes.join(", ")})`;
}

/** Eight halves in `x` become two vectors, `low` and `x`, of values times 2^-112 (as movedHalf4). */
function widen(x: string, low: string): string {
  return `t = v128.and(i16x8.shr_s(${x}, 3), mask); ${x} = i16x8.shl(${x}, 13); ` +
    `${low} = ${interleave(x, "t", 0)}; ${x} = ${interleave(x, "t", 8)};`;
}

/** Positions that go together. */
const lanesOf = (queries: number) => queries <= 2 ? 4 : 2;

/** Calls `line` for every query and lane of a step. */
function all(n: number, lanes: number, line: (i: number, r: number) => string): string {
  return each(n, (i) => each(lanes, (r) => line(i, r), " "));
}

/** The four positions of a turn, `lanes` at a time: begins or goes on, multiplies, and ends or leaves off. */
function fourPositions(n: number, products: (lanes: readonly number[]) => string): string {
  const lanes = lanesOf(n);
  const step = (first: number) => {
    const at = (i: number, r: number) => 16 * (4 * i + first + r);
    const end = (i: number) =>
      lanes === 4
        ? `v128.store(line, f32x4.mul(f, sumsOfPairs(pairSums(a${i}0, a${i}1), pairSums(a${i}2, a${i}3))), ${
          LINE * i
        });`
        : first === 0
        ? `b${i} = pairSums(a${i}0, a${i}1);`
        : `v128.store(line, f32x4.mul(f, sumsOfPairs(b${i}, pairSums(a${i}0, a${i}1))), ${
          LINE * i
        });`;
    return `
    if (begins) { ${all(n, lanes, (i, r) => `a${i}${r} = zero;`)} }
    else { ${all(n, lanes, (i, r) => `a${i}${r} = v128.load(sums, ${at(i, r)});`)} }
    ${products(range(lanes).map((r) => first + r))}
    if (ends) { ${each(n, end)} }
    else { ${all(n, lanes, (i, r) => `v128.store(sums, a${i}${r}, ${at(i, r)});`)} }`;
  };
  return `
    let k0 = k, k1 = within(k + step, last), k2 = within(k + 2 * step, last), k3 = within(k + 3 * step, last);
    const line = s + (<usize>j << 2);
    let ${all(n, lanes, (i, r) => `a${i}${r} = zero,`)} ${
    each(n, (i) => `b${i} = zero,`, " ")
  } t = zero, u = zero;
    ${each(lanes, (r) => `let x${r} = zero, l${r} = zero;`, " ")}
    ${each(4 / lanes, (i) => step(lanes * i))}
    sums += ${64 * n};`;
}

/** `x` and `l`: 8 channels of K in each lane, from a constant offset. */
const loadKeys = (lanes: readonly number[], at: number) =>
  lanes.map((row, r) => `x${r} = v128.load(k${row}, ${at}); ${widen(`x${r}`, `l${r}`)}`).join("\n");

function multiply(
  n: number,
  lanes: readonly number[],
  query: (i: number) => string,
  key: string,
): string {
  return each(
    n,
    (i) =>
      `u = ${query(i)}; ` +
      lanes.map((_, r) => `a${i}${r} = madd(u, ${key}${r}, a${i}${r});`).join(" "),
  );
}

function scores(n: number): string {
  const products = (lanes: readonly number[]) =>
    each(CHANNELS / 8, (c) => `
    ${loadKeys(lanes, 16 * c)}
    ${multiply(n, lanes, (i) => `q${2 * c * n + i}`, "l")}
    ${multiply(n, lanes, (i) => `q${(2 * c + 1) * n + i}`, "x")}`);
  const some = (lanes: readonly number[]) => `
    const end = q + channels * ${4 * n};
    let p = q;
    ${lanes.map((row) => `let at${row} = k${row};`).join(" ")}
    for (; p + ${32 * n} <= end; p += ${32 * n}) {
      ${
    lanes.map((row, r) => `x${r} = v128.load(at${row}); at${row} += 16; ${widen(`x${r}`, `l${r}`)}`)
      .join("\n")
  }
      ${multiply(n, lanes, (i) => `v128.load(p, ${16 * i})`, "l")}
      ${multiply(n, lanes, (i) => `v128.load(p, ${16 * (n + i)})`, "x")}
    }
    if (p < end) {
      ${
    lanes.map((row, r) => `x${r} = v128.load64_zero(at${row}); ${widen(`x${r}`, `l${r}`)}`).join(
      "\n",
    )
  }
      ${multiply(n, lanes, (i) => `v128.load(p, ${16 * i})`, "l")}
    }`;
  const head = `(q: usize, k: usize, step: usize, count: u32, s: usize, sums: usize, begins: bool`;
  const start = `
  const mask = i16x8.splat(<i16>0x8fff), f = f32x4.splat(4096), zero = f32x4.splat(0);
  const last = k + <usize>(count - 1) * step;`;
  const loop = `for (let j: u32 = 0; j < count; j += 4, k += 4 * step) {`;
  return `
function all${n}${head}, ends: bool): void {${start}
  ${each(CHANNELS / 4 * n, (i) => `const q${i} = v128.load(q, ${16 * i});`, " ")}
  ${loop}${fourPositions(n, products)}
  }
}
function some${n}${head}, channels: usize): void {${start}
  const ends = true;
  ${loop}${fourPositions(n, (lanes) => `{${some(lanes)}}`)}
  }
}
function scores${n}(q: usize, size: usize, k: usize, step: usize, count: u32, s: usize, sums: usize): void {
  let d: usize = 0;
  for (; d + ${CHANNELS} <= size; d += ${CHANNELS}, q += ${16 * CHANNELS / 4 * n}, k += ${
    2 * CHANNELS
  }) {
    all${n}(q, k, step, count, s, sums, d == 0, d + ${CHANNELS} == size);
  }
  if (d < size) some${n}(q, k, step, count, s, sums, d == 0, size - d);
}`;
}

/** Vectors of eight channels that values take at a time. */
const vectorsOf = (queries: number) => queries === 1 ? 4 : queries === 2 ? 2 : 1;

function values(n: number): string {
  const tile = (vectors: number, narrow: boolean) => {
    const width = narrow ? 1 : 2 * vectors;
    const names = range(width).map((r) => r % 2 === 0 ? `l${r >> 1}` : `x${r >> 1}`);
    const load = (v: number, address: string) =>
      `x${v} = ${narrow ? "v128.load64_zero" : "v128.load"}(${address}, ${16 * v}); ${
        widen(`x${v}`, `l${v}`)
      }`;
    const add = (i: number) =>
      names.map((name, r) => `a${i}${r} = madd(u, ${name}, a${i}${r});`).join(" ");
    const splat = (i: number, lane: number) =>
      `i8x16.shuffle(p${i}, p${i}, ${range(16).map((b) => 4 * lane + b % 4).join(", ")})`;
    return `
    ${
      each(n, (i) =>
        `u = v128.load32_splat(factors, ${4 * i});\n` +
        each(
          width,
          (r) => `let a${i}${r} = f32x4.mul(v128.load(acc + ${i} * bytes + d, ${16 * r}), u);`,
        ))
    }
    let p = s, y0 = v + (d >> 1);
    for (; p < fours; p += 16, y0 += 4 * step) {
      const y1 = y0 + step, y2 = y1 + step, y3 = y2 + step;
      ${each(n, (i) => `const p${i} = v128.load(p, ${LINE * i});`)}
      ${
      each(4, (lane) => `
      ${each(narrow ? 1 : vectors, (v) => load(v, `y${lane}`))}
      ${each(n, (i) => `u = ${splat(i, lane)}; ${add(i)}`)}`)
    }
    }
    for (; p < end; p += 4, y0 += step) {
      ${each(narrow ? 1 : vectors, (v) => load(v, "y0"))}
      ${each(n, (i) => `u = v128.load32_splat(p, ${LINE * i}); ${add(i)}`)}
    }
    ${
      each(n, (i) =>
        each(width, (r) => `v128.store(acc + ${i} * bytes + d, a${i}${r}, ${16 * r});`, " "))
    }`;
  };
  const most = vectorsOf(n);
  return `
function values${n}(s: usize, factors: usize, v: usize, step: usize, count: u32, size: u32, acc: usize): void {
  const mask = i16x8.splat(<i16>0x8fff), bytes = <usize>size << 2;
  const end = s + (<usize>count << 2), fours = s + (<usize>(count & ~3) << 2);
  let u = mask, t = mask;
  ${each(most, (i) => `let x${i} = mask, l${i} = mask;`, " ")}
  let d: usize = 0;
  for (; d + ${32 * most} <= bytes; d += ${32 * most}) {${tile(most, false)}
  }
  ${
    most > 1
      ? `for (; d + 32 <= bytes; d += 32) {${tile(1, false)}
  }`
      : ""
  }
  if (d < bytes) {${tile(1, true)}
  }
}`;
}

/** Module `generated/attention_half`: `scoresHalf` and `valuesHalf` for 1 to 4 queries. */
export function attentionHalf(): string {
  return `
import { madd, pairSums, sumsOfPairs } from "../simd";

export const RUN: u32 = ${RUN};

@inline function within(address: usize, last: usize): usize { return address > last ? last : address; }
${QUERIES.map(scores).join("\n")}
${QUERIES.map(values).join("\n")}

export function scoresHalf(
  queries: u32, q: usize, size: u32, k: usize, step: usize, count: u32, s: usize, sums: usize,
): void {
${pick("scores", "q, size, k, step, count, s, sums")}
}

export function valuesHalf(
  queries: u32, s: usize, factors: usize, v: usize, step: usize, count: u32, size: u32, acc: usize,
): void {
${pick("values", "s, factors, v, step, count, size, acc")}
}
`;
}
