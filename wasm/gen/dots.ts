// The three ways in which a vector of 16 codes (four rows by four columns) is multiplied by four
// activations, splatted over the rows, and added to one sum a row. All give the same integers.
// - `dot`: the relaxed dot product with accumulation, one instruction where the processor has it
//   (AVX-VNNI, ARM dot product).
// - `pair`: the relaxed product to sums of two in 16 bits, which every x86 has. V8 makes five
//   instructions of the relaxed dot on processors without VNNI; 16-bit sums need two, and go to 32 bits
//   only before they could overflow: 2 · 127 · (2^bits - 1) a step.
// - `plain`: no relaxed SIMD; even and odd bytes are widened to 16 bits and multiplied as such.
// Eight-bit codes do not fit the seven bits that are the same everywhere. `dot` takes them as the
// processor reads them (signed, or unsigned with an offset: matmul/q8.ts asks it), `plain` unsigned, and
// `pair` splits the activations into positive and negative parts, both 0..127, and subtracts, or, where rows share what
// is done to codes, widens both to 16 bits.

/** A way to multiply. */
export type DotStyle = "dot" | "pair" | "plain";

/** Text of one way to multiply. */
export interface Dots {
  /** Constants for the start of a function. */
  readonly constants: readonly string[];
  /** Statements that derive from the splatted activations `x` what `add` needs. */
  operand(x: string): string[];
  /** What the operand's parts are called that four interleaved rows have instead, as 16 bits. */
  readonly wide?: readonly string[];
  /** Statements that derive from codes `w` what `add` needs. */
  weight?(w: string): string[];
  /** Statements that add step `step` of `steps` of products of `w` and `x` to the sums `c`. */
  add(c: string, x: string, w: string, step: number, steps: number, more?: Multiplied): string[];
}

/**
 * What styles do beside: `pair` multiplies sums of two by a vector of 16 bits, and adds to sums that are there already; sums
 * start at `from`.
 */
export interface Multiplied {
  readonly by: string;
  readonly goesOn: boolean;
  readonly from: string;
  /** Where `pair` has sums of two start, so that all steps fit: what an offset makes of the activations (assembly/matmul/fours.ts). */
  readonly start?: string | undefined;
}

function accumulate(c: string, value: string, first: boolean, from = "ZERO"): string {
  if (first && from !== "ZERO") return `let ${c} = i32x4.add(${from}, ${value});`;
  return first ? `let ${c} = ${value};` : `${c} = i32x4.add(${c}, ${value});`;
}

function relaxedDot(): Dots {
  return {
    constants: ["const ZERO = i32x4.splat(0);"],
    operand: () => [],
    add: (c, x, w, step, _steps, more) => [
      `${step ? c : `let ${c}`} = ` +
      `i32x4.relaxed_dot_i8x16_i7x16_add_s(${x}, ${w}, ${step ? c : more?.from ?? "ZERO"});`,
    ],
  };
}

/** The relaxed dot with a way to make floats of its sums. */
export interface FloatSums extends Dots {
  /** The sum `c` as float. */
  value(c: string): string;
}

/**
 * Sums that start at the bits of 1.5 · 2^23: read as float they are that much too large, exact below 2^22
 * (32 · 127 · 255 is a quarter of it). Adders, which dots leave idle, take it away; a conversion would wait for the
 * ports of the dots.
 */
function floatDot(): FloatSums {
  const { operand, add } = relaxedDot();
  return {
    constants: ["const ZERO = v128.load(SUM_START_AT);"],
    operand,
    add,
    value: (c) => `f32x4.sub(${c}, ZERO)`,
  };
}

const ONES = "const ONES = v128.load(ONES_AT);";
const PAIR = "i16x8.relaxed_dot_i8x16_i7x16_s";

/**
 * Steps of sums of two that fit in 16 bits: 2 · 127 · 15 · 8, 2 · 127 · 31 · 4 and 2 · 127 · 63 · 2 are below 32,768; seven
 * bits fit once: 2 · 127 · 127.
 */
export function runOf(bits: number): number {
  return bits <= 4 ? 8 : bits === 5 ? 4 : bits === 6 ? 2 : 1;
}

function pairs(bits: number): Dots {
  return {
    constants: [ONES],
    operand: () => [],
    add(c, x, w, step, steps, more) {
      const { by = "ONES", goesOn = false, start } = more ?? {};
      const product = `${PAIR}(${x}, ${w})`, most = start ? steps : runOf(bits);
      if (most === 1) {
        return [accumulate(c, `i32x4.dot_i16x8_s(${product}, ${by})`, step === 0 && !goesOn)];
      }
      const run = step % most, name = `t${c}_${w}_${step}`;
      const lines = [
        `const ${name} = ${product};`,
        run
          ? `${c}s = i16x8.add(${c}s, ${name});`
          : `${step || goesOn ? "" : "let "}${c}s = ${
            start ? `i16x8.add(${start}, ${name})` : name
          };`,
      ];
      if (run === most - 1 || step === steps - 1) {
        lines.push(
          accumulate(c, `i32x4.dot_i16x8_s(${c}s, ${by})`, step < most && !goesOn, more?.from),
        );
      }
      return lines;
    },
  };
}

function signSplit(): Dots {
  return {
    constants: [ONES, "const ZERO = i32x4.splat(0);"],
    operand: (x) => [
      `const ${x}p = i8x16.max_s(${x}, ZERO), ${x}n = i8x16.sub(${x}p, ${x});`,
    ],
    add: (c, x, w, step) => [
      accumulate(
        c,
        `i32x4.dot_i16x8_s(i16x8.sub(${PAIR}(${w}, ${x}p), ${PAIR}(${w}, ${x}n)), ONES)`,
        step === 0,
      ),
    ],
  };
}

/** Even and odd bytes of a vector, signed, as 16 bits. */
function widened(name: string): string[] {
  return [
    `const ${name}e = i16x8.shr_s(i16x8.shl(${name}, 8), 8), ${name}o = i16x8.shr_s(${name}, 8);`,
  ];
}

/** Signed bytes of several rows: what is derived from codes is shared by rows, and products are four instructions, not five. */
function signedProducts(): Dots {
  return {
    constants: [],
    operand: widened,
    wide: ["e", "o"],
    weight: widened,
    add: (c, x, w, step) => [
      accumulate(c, `i32x4.dot_i16x8_s(${w}e, ${x}e)`, step === 0),
      accumulate(c, `i32x4.dot_i16x8_s(${w}o, ${x}o)`, false),
    ],
  };
}

/** Codes and activations that lie as 16 bits. */
export function widePairs(): FloatSums {
  return {
    constants: ["const ZERO = i32x4.splat(0);"],
    operand: () => [],
    add: (c, x, w, step, _steps, more) => [
      accumulate(c, `i32x4.dot_i16x8_s(${w}, ${x})`, step === 0, more?.from),
    ],
    value: (c) => `f32x4.convert_i32x4_s(${c})`,
  };
}

function widenedProducts(): Dots {
  return {
    constants: ["const LOW_BYTES = v128.load(LOW_BYTES_AT), ZERO = i32x4.splat(0);"],
    operand: widened,
    add: (c, x, w, step, _steps, more) => [
      accumulate(
        c,
        `i32x4.dot_i16x8_s(v128.and(${w}, LOW_BYTES), ${x}e)`,
        step === 0,
        more?.from,
      ),
      accumulate(c, `i32x4.dot_i16x8_s(i16x8.shr_u(${w}, 8), ${x}o)`, false),
    ],
  };
}

/** Constant that `signParts` uses. */
export const NOTHING = "const NOTHING = i8x16.splat(0);";

/** Statements that part signed codes w{name}, of 8 bit or of 16, into p{name} above zero and n{name} below, both 0..127. */
export function signParts(name: string, lanes: "i8x16" | "i16x8" = "i8x16"): string[] {
  return [
    `const p${name} = ${lanes}.max_s(w${name}, NOTHING), n${name} = ${lanes}.sub(p${name}, w${name});`,
  ];
}

/** The text of a style for codes of a width. */
export function dotsOf(style: DotStyle, bits: number): Dots {
  if (style === "dot") return relaxedDot();
  if (style === "plain") return widenedProducts();
  return bits === 8 ? signSplit() : pairs(bits);
}

/** The same for several rows that share what is done to codes. */
export function rowsDotsOf(style: DotStyle, bits: number): Dots {
  return style === "pair" && bits === 8 ? signedProducts() : dotsOf(style, bits);
}

/** The same for sums that become floats at once. */
export function floatSumsOf(style: DotStyle, bits: number): FloatSums {
  if (style === "dot") return floatDot();
  return { ...rowsDotsOf(style, bits), value: (c) => `f32x4.convert_i32x4_s(${c})` };
}
