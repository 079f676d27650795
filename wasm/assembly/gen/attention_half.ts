// The inner loops of attention on a float16 cache for 1 to 4 queries (decoding): they differ in the number
// of queries only, and every accumulator must be a local to stay in a register.
//
//   scoresN: s[i][j] = 2^12 · q[i] · k[j]    four positions at a time, each K vector read once for N queries
//   valuesN: acc[i] = acc[i] · factor[i] + Σ p[i][j] · v[j]    16 channels at a time, each V vector likewise

const QUERIES = [1, 2, 3, 4] as const;
const LANES = [0, 1, 2, 3] as const;

function range(count: number): number[] {
  return Array.from({ length: count }, (_, i) => i);
}

function accumulate(i: number): string {
  return LANES.map((r) => `a${i}${r} = madd(u, x${r}, a${i}${r});`).join(" ");
}

function scores(n: number): string {
  return `
function scores${n}(q: usize, size: u32, k: usize, step: usize, count: u32, s: usize): void {
  const mask = halfMask(), f = f32x4.splat(4096), bytes = <usize>size << 2;
  const last = k + <usize>(count - 1) * step;
  for (let j: u32 = 0; j < count; j += 4, k += 4 * step) {
    let k0 = k, k1 = within(k + step, last), k2 = within(k + 2 * step, last), k3 = within(k + 3 * step, last);
    const zero = f32x4.splat(0);
    let u = zero;
    ${range(n).map((i) => `let ${LANES.map((r) => `a${i}${r} = zero`).join(", ")};`).join("\n    ")}
    for (let p = q, end = q + bytes; p < end; p += 16, k0 += 8, k1 += 8, k2 += 8, k3 += 8) {
      const ${LANES.map((r) => `x${r} = movedHalf4(k${r}, mask)`).join(", ")};
      ${range(n).map((i) => `u = v128.load(p + ${i} * bytes); ${accumulate(i)}`).join("\n      ")}
    }
    const line = s + (<usize>j << 2);
    ${
    range(n).map((i) =>
      `v128.store(line, f32x4.mul(f, sums4(a${i}0, a${i}1, a${i}2, a${i}3)), ${128 * i});`
    ).join("\n    ")
  }
  }
}`;
}

function values(n: number): string {
  return `
function values${n}(s: usize, factors: usize, v: usize, step: usize, count: u32, size: u32, acc: usize): void {
  const mask = halfMask(), bytes = <usize>size << 2, end = s + (<usize>count << 2);
  let u = mask;
  let d: usize = 0;
  for (; d + 64 <= bytes; d += 64) {
    ${
    range(n).map((i) =>
      `u = v128.load32_splat(factors, ${4 * i});\n    ` +
      LANES.map((r) =>
        `let a${i}${r} = f32x4.mul(v128.load(acc + ${i} * bytes + d, ${16 * r}), u);`
      ).join("\n    ")
    ).join("\n    ")
  }
    let x = v + (d >> 1);
    for (let p = s; p < end; p += 4, x += step) {
      const ${LANES.map((r) => `x${r} = movedHalf4(x + ${8 * r}, mask)`).join(", ")};
      ${
    range(n).map((i) => `u = v128.load32_splat(p, ${128 * i}); ${accumulate(i)}`).join("\n      ")
  }
    }
    ${
    range(n).flatMap((i) =>
      LANES.map((r) => `v128.store(acc + ${i} * bytes + d, a${i}${r}, ${16 * r});`)
    ).join("\n    ")
  }
  }
  for (; d < bytes; d += 16) {
    ${
    range(n).map((i) =>
      `let a${i} = f32x4.mul(v128.load(acc + ${i} * bytes + d), v128.load32_splat(factors, ${
        4 * i
      }));`
    ).join("\n    ")
  }
    let x = v + (d >> 1);
    for (let p = s; p < end; p += 4, x += step) {
      const h = movedHalf4(x, mask);
      ${
    range(n).map((i) => `a${i} = madd(v128.load32_splat(p, ${128 * i}), h, a${i});`).join(
      "\n      ",
    )
  }
    }
    ${range(n).map((i) => `v128.store(acc + ${i} * bytes + d, a${i});`).join("\n    ")}
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
import { halfMask, movedHalf4 } from "../half";
import { madd, sums4 } from "../simd";

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
