// The table of number formats. A format is one file beside this one and one line here; whatever reads
// weights, multiplies by them or stores a KV cache learns of a format from this table only.

import { bf16 } from "./bf16.ts";
import { f16 } from "./f16.ts";
import { f32 } from "./f32.ts";
import type { NumberFormat } from "./format.ts";
import { q4_0 } from "./q4_0.ts";
import { q4_1 } from "./q4_1.ts";
import { q8_0 } from "./q8_0.ts";

export { formatBytes, type NumberFormat } from "./format.ts";

const all: readonly NumberFormat[] = [f32, f16, bf16, q4_0, q4_1, q8_0];

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
