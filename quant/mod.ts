// The table of number formats. A format is one file beside this one and one line here; whatever reads
// weights, multiplies by them or stores a KV cache learns of a format from this table only.

import { bf16 } from "./bf16.ts";
import { f16 } from "./f16.ts";
import { f32 } from "./f32.ts";
import type { NumberFormat } from "./format.ts";
import { iq1_m } from "./iq1_m.ts";
import { iq1_s } from "./iq1_s.ts";
import { iq2_s } from "./iq2_s.ts";
import { iq2_xs } from "./iq2_xs.ts";
import { iq2_xxs } from "./iq2_xxs.ts";
import { iq3_s } from "./iq3_s.ts";
import { iq3_xxs } from "./iq3_xxs.ts";
import { iq4_nl } from "./iq4_nl.ts";
import { iq4_xs } from "./iq4_xs.ts";
import { mxfp4 } from "./mxfp4.ts";
import { numbers } from "./numbers.ts";
import { nvfp4 } from "./nvfp4.ts";
import { q1_0 } from "./q1_0.ts";
import { q2_k } from "./q2_k.ts";
import { q3_k } from "./q3_k.ts";
import { q4_0 } from "./q4_0.ts";
import { q4_1 } from "./q4_1.ts";
import { q4_k } from "./q4_k.ts";
import { q5_0 } from "./q5_0.ts";
import { q5_1 } from "./q5_1.ts";
import { q5_k } from "./q5_k.ts";
import { q6_k } from "./q6_k.ts";
import { q8_0 } from "./q8_0.ts";
import { q8_1 } from "./q8_1.ts";
import { q8_k } from "./q8_k.ts";
import { tq1_0 } from "./tq1_0.ts";
import { tq2_0 } from "./tq2_0.ts";

export { formatBytes, type NumberFormat } from "./format.ts";

const all: readonly NumberFormat[] = [
  ...[f32, f16, bf16],
  ...[q4_0, q4_1, q5_0, q5_1, q8_0, q8_1],
  ...[q2_k, q3_k, q4_k, q5_k, q6_k, q8_k],
  ...[iq1_s, iq1_m, iq2_xxs, iq2_xs, iq2_s, iq3_xxs, iq3_s, iq4_nl, iq4_xs],
  ...[tq1_0, tq2_0, q1_0, mxfp4, nvfp4],
  ...numbers,
];

/** Every format that can be decoded, by name. */
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
 * The format of a name as GGUF writes it, e.g. `Q4_1`.
 *
 * @throws {RangeError} If there is none; the message lists the known ones.
 */
export function getFormat(name: string): NumberFormat {
  const format = formats.get(name);
  if (!format) {
    throw new RangeError(
      `Cannot use number format "${name}": known are ${[...formats.keys()].join(", ")}`,
    );
  }
  return format;
}

/** The format of a ggml type id, or undefined if it cannot be decoded here. */
export function formatOfGgmlType(type: number): NumberFormat | undefined {
  return byGgmlType.get(type);
}

/** The name of a ggml type id, also of types that cannot be decoded here; undefined if nobody knows it. */
export function ggmlTypeName(type: number): string | undefined {
  return byGgmlType.get(type)?.name ?? OTHER_GGML_TYPES[type];
}
