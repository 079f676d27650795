// Text that V8 joins to 256 bits (assembly/machine/joining.ts): all operations come in pairs, of vectors of outputs 0..3 and 4..7. Two
// loads are no pair, since each has a check of bounds before it, so what both halves read comes in planes: of each 16 bits the
// low bytes of all and then the high bytes, or of each 32 bits the low 16 and then the high 16, which a pair of extensions
// of one load spreads. What is the same in both halves is one load, and a splat of a lane of it one broadcast.
// Two loads of what lies as it is wanted can be joined too, if at some cost: V8 puts any two vectors together of which a lane
// was replaced (`swapped`). Two stores are no pair either, with which V8 would begin: it begins with sums of pairs, which `seed` makes.

import { HALVES } from "./scales.ts";

const PARTS: readonly string[] = ["low", "high"];

/** Lanes half as wide as those that `spread` makes. */
const NARROW: Readonly<Record<string, string>> = { i16x8: "i8x16", i32x4: "i16x8", i64x2: "i32x4" };

/** Half `h` of the bytes, or, of `i32x4` and `i64x2`, of lanes of 16 and 32 bits, of a vector as lanes twice as wide. */
export function spread(plane: string, h: number, lanes = "i16x8", sign: "u" | "s" = "u"): string {
  return `${lanes}.extend_${PARTS[h]}_${NARROW[lanes]}_${sign}(${plane})`;
}

/** Statements that define {name(0)} and {name(1)}, 32-bit lanes that lie in planes at `pointer` + `at`. */
export function halves(name: (h: number) => string, pointer: string, at: number): string[] {
  const low = `${name(0)}low`, high = `${name(0)}high`;
  return [
    `const ${low} = v128.load(${pointer}, ${at}), ${high} = v128.load(${pointer}, ${at + 16});`,
    ...HALVES.map((h) =>
      `const ${name(h)} = v128.or(${spread(low, h, "i32x4")}, ` +
      `i32x4.shl(${spread(high, h, "i32x4")}, 16));`
    ),
  ];
}

/** The same of bytes. */
export function bytes(name: (h: number) => string, pointer: string, at: number): string[] {
  const even = `${name(0)}even`, odd = `${name(0)}odd`;
  return [
    `const ${even} = v128.load(${pointer}, ${at}), ${odd} = v128.load(${pointer}, ${at + 16});`,
    ...HALVES.map((h) =>
      `const ${name(h)} = v128.or(${spread(even, h)}, i16x8.shl(${spread(odd, h)}, 8));`
    ),
  ];
}

/**
 * Statements that define {name(0)} and {name(1)}, eight floats at `pointer` + `at` of which 0 and 1 are swapped with 4 and 5: both
 * need both loads, so neither a load nor its check stands between them. Swapped back by `swappedLanes`.
 */
export function swapped(name: (h: number) => string, pointer: string, at: number): string[] {
  const raw = HALVES.map((h) => `${name(h)}raw`);
  return [
    `const ${raw.map((raw, h) => `${raw} = v128.load(${pointer}, ${at + 16 * h})`).join(", ")};`,
    ...HALVES.map((h) => `const ${name(h)} = ${swappedLanes(raw[h]!, raw[1 - h]!)};`),
  ];
}

/** The vector `name` with the first two lanes of `other`. */
export function swappedLanes(name: string, other: string): string {
  return `f64x2.replace_lane(${name}, 0, f64x2.extract_lane(${other}, 0))`;
}

/** Half `h` of eight lanes of 32 bits, out of the even ones and the odd ones. */
export function mixed(even: string, odd: string, h: number): string {
  const wide = (lanes: string) => `i64x2.extend_${PARTS[h]}_i32x4_u(${lanes})`;
  return `v128.or(${wide(even)}, i64x2.shl(${wide(odd)}, 32))`;
}

/** The even lanes of eight, or, of `odd` 1, the odd ones. */
export function everyOther(low: string, high: string, odd: 0 | 1): string {
  return `v128.shuffle<i32>(${low}, ${high}, ${[0, 2, 4, 6].map((k) => k + odd).join(", ")})`;
}

/** The constant that `nibbles` uses. */
export const LOW_NIBBLES = "const LOW4 = v128.load(LOW4_AT);";

/** The same of nibbles, two in a byte of one plane, the first low. */
export function nibbles(name: (h: number) => string, pointer: string, at: number): string[] {
  const pairs = `${name(0)}pairs`;
  return [
    `const ${pairs} = v128.load(${pointer}, ${at});`,
    ...HALVES.flatMap((h) => [
      `const ${name(h)}w = ${spread(pairs, h)};`,
      `const ${name(h)} = v128.and(v128.or(${name(h)}w, i16x8.shl(${name(h)}w, 4)), LOW4);`,
    ]),
  ];
}

/** The lane `k` of the vector `name` in all lanes: of a vector that was loaded, V8 makes one load of it. */
export function laneSplat(name: string, k: number): string {
  return `v128.shuffle<i32>(${name}, ${name}, ${k}, ${k}, ${k}, ${k})`;
}

/**
 * A statement that says `name` once more, for who stores it behind a loop: V8 takes a pair apart where it is defined, which of a sum
 * that goes through the loop would be in each turn.
 */
export function behindLoop(name: string): string {
  return `${name} = v128.or(${name}, ${name});`;
}

/**
 * A statement from which V8 finds pairs of vectors: it stores what nobody reads, since `out` is written again behind it. A
 * value that is not stored would be left out.
 */
export function seed(out: string, pairs: readonly (readonly [string, string])[]): string {
  const sums = pairs.map(([a, b]) => `i32x4.add(${a}, ${b})`);
  return `v128.store(${out}, ${sums.reduce((all, sum) => `v128.xor(${all}, ${sum})`)});`;
}
