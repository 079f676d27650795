// The table of number formats. A format is one file beside this one and one line here; whatever reads
// weights, multiplies by them or stores a KV cache learns of a format from this table only.

import { bf16 } from "./formats/bf16.ts";
import { defineE0m4 } from "./formats/e0m4.ts";
import { f16 } from "./formats/f16.ts";
import { f32 } from "./formats/f32.ts";
import { f8 } from "./f8.ts";
import type { NumberFormat } from "./format.ts";
import { inferflowBlocks } from "./formats/inferflow_blocks.ts";
import { defineInt4 } from "./formats/int4.ts";
import { iq1_m } from "./formats/iq1_m.ts";
import { iq1_s } from "./formats/iq1_s.ts";
import { iq2_s } from "./formats/iq2_s.ts";
import { iq2_xs } from "./formats/iq2_xs.ts";
import { iq2_xxs } from "./formats/iq2_xxs.ts";
import { iq3_s } from "./formats/iq3_s.ts";
import { iq3_xxs } from "./formats/iq3_xxs.ts";
import { iq4_nl } from "./formats/iq4_nl.ts";
import { iq4_xs } from "./formats/iq4_xs.ts";
import { lf8 } from "./formats/lf8.ts";
import { mxfp4 } from "./formats/mxfp4.ts";
import { ALIASES } from "./names.ts";
import { numbers } from "./formats/numbers.ts";
import { nb4 } from "./formats/nb4.ts";
import { nvfp4 } from "./formats/nvfp4.ts";
import { defineI4pc, defineI8pc } from "./formats/per_channel.ts";
import { q1_0 } from "./formats/q1_0.ts";
import { q2_k } from "./formats/q2_k.ts";
import { q3_k } from "./formats/q3_k.ts";
import { q3h_b64t1 } from "./formats/q3h_b64t1.ts";
import { q4_0 } from "./formats/q4_0.ts";
import { q4_1 } from "./formats/q4_1.ts";
import { q4_b16 } from "./formats/q4_b16.ts";
import { q4_k } from "./formats/q4_k.ts";
import { q5_0 } from "./formats/q5_0.ts";
import { q5_1 } from "./formats/q5_1.ts";
import { q5_k } from "./formats/q5_k.ts";
import { q6_k } from "./formats/q6_k.ts";
import { q8_0 } from "./formats/q8_0.ts";
import { q8_1 } from "./formats/q8_1.ts";
import { defineQ8Gl } from "./formats/q8_gl.ts";
import { q8_k } from "./formats/q8_k.ts";
import { q8_log } from "./formats/q8_log.ts";
import { tq1_0 } from "./formats/tq1_0.ts";
import { tq2_0 } from "./formats/tq2_0.ts";

export { type EncodeOptions, formatBytes, type NumberFormat } from "./format.ts";

const all: readonly NumberFormat[] = [
  ...[f32, f16, bf16, ...f8],
  ...[q4_0, q4_1, q5_0, q5_1, q8_0, q8_1],
  ...[q2_k, q3_k, q4_k, q5_k, q6_k, q8_k],
  ...[iq1_s, iq1_m, iq2_xxs, iq2_xs, iq2_s, iq3_xxs, iq3_s, iq4_nl, iq4_xs],
  ...[tq1_0, tq2_0, q1_0, mxfp4, nvfp4],
  ...numbers,
  ...[...inferflowBlocks, q3h_b64t1, q4_b16, q8_log, lf8, nb4],
  ...[32, 64, 128, 256].flatMap((group) => [defineE0m4(group, 1), defineE0m4(group, 2)]),
  ...[32, 64, 128, 256].map(defineInt4),
];

// Formats whose block is a row: the columns are part of the name.
const rowFormats: ReadonlyMap<string, (columns: number) => NumberFormat> = new Map([
  ["I8PC", defineI8pc],
  ["I4PC", defineI4pc],
  ["Q8_GL", defineQ8Gl],
]);

/** Names of the formats whose block is a row, without its columns. */
export const ROW_FAMILIES: readonly string[] = [...rowFormats.keys()];

/** The same as formats of rows of `columns`. */
export function rowFormatsOf(columns: number): NumberFormat[] {
  return [...rowFormats.values()].map((define) => define(columns));
}

/** Every format of a fixed block that can be decoded, by name. */
export const formats: ReadonlyMap<string, NumberFormat> = new Map(all.map((f) => [f.name, f]));

const byGgmlType: ReadonlyMap<number, NumberFormat> = new Map(
  all.flatMap((f) => f.ggmlType === undefined ? [] : [[f.ggmlType, f]]),
);

// Types that ggml once had or has and that cannot be decoded here: known only to be named in errors.
const OTHER_GGML_TYPES: Readonly<Record<number, string>> = {
  4: "Q4_2",
  5: "Q4_3",
  31: "Q4_0_4_4",
  32: "Q4_0_4_8",
  33: "Q4_0_8_8",
  36: "IQ4_NL_4_4",
  37: "IQ4_NL_4_8",
  38: "IQ4_NL_8_8",
  42: "Q2_0", // Block sizes of 64 and of 128 are both in use under this id.
};

/**
 * The format of a name as files write it, e.g. `Q4_1`, or `I8PC_576` where the block is a row.
 *
 * @throws {RangeError} If there is none; the message lists the known ones.
 */
export function getFormat(name: string): NumberFormat {
  const format = formats.get(name) ?? rowFormat(name);
  if (!format) {
    const rows = ROW_FAMILIES.map((family) => `${family}_COLUMNS`);
    throw new RangeError(
      `Cannot use number format "${name}": known are ${[...formats.keys(), ...rows].join(", ")}`,
    );
  }
  return format;
}

function rowFormat(name: string): NumberFormat | undefined {
  const [, family, columns] = /^(\w+)_([1-9]\d*)$/.exec(name) ?? [];
  return family === undefined ? undefined : rowFormats.get(family)?.(Number(columns));
}

/**
 * The format that a person means by a name, in either case: a name of the table, an alias (`e0m4`, `q3h`,
 * `q8_b32t2`), or a format whose block is a row (`i8pc`).
 *
 * @param columns Length of the rows that are to be stored.
 * @throws {RangeError} If there is none, or if it cannot have such rows.
 */
export function findFormat(name: string, columns: number): NumberFormat {
  const upper = name.toUpperCase();
  const alias = ALIASES[upper] ?? upper;
  return rowFormats.get(alias)?.(columns) ?? getFormat(alias);
}

/** Whether {@linkcode findFormat} knows a name. */
export function isFormatName(name: string): boolean {
  const upper = name.toUpperCase();
  const alias = ALIASES[upper] ?? upper;
  return formats.has(alias) || rowFormats.has(alias);
}

/** Whether values can be stored in a format that {@linkcode findFormat} knows. */
export function hasEncoder(name: string): boolean {
  // Rows of 256 suit every format whose block is a row.
  return findFormat(name, 256).encode !== undefined;
}

/** Names of the formats that values can be stored in; those whose block is a row without the row's length. */
export function encodedNames(): string[] {
  const names = [...formats.values()].filter(({ encode }) => encode).map(({ name }) => name);
  return [...names, ...ROW_FAMILIES.filter(hasEncoder)];
}

/** The format of a ggml type id, or undefined if it cannot be decoded here. */
export function formatOfGgmlType(type: number): NumberFormat | undefined {
  return byGgmlType.get(type);
}

/** The name of a ggml type id, also of types that cannot be decoded here; undefined if nobody knows it. */
export function ggmlTypeName(type: number): string | undefined {
  return byGgmlType.get(type)?.name ?? OTHER_GGML_TYPES[type];
}
