// What codes of 4 bit stand for, as vectors to look them up in: signed bytes of IQ4, and the doubled values of E2M1
// and the coordinates of grids with their sign, above the least; and the floats that Q8_LOG's bytes stand for.

import { E2M1_DOUBLED } from "../../quant/e2m1.ts";
import type { NumberFormat } from "../../quant/format.ts";
import { IQ4_LEVELS } from "../../quant/iq4_fit.ts";
import { q8_log } from "../../quant/formats/q8_log.ts";
import { POINT_LEVELS } from "../point_grids.ts";

function data(name: string, values: Int8Array): string {
  const bytes = [...values].map((value) => value & 0xff);
  return `export const ${name}: usize = memory.data<u8>([${bytes.join(", ")}], 16);`;
}

function aboveLeast(values: Int8Array): Int8Array {
  const least = Math.min(...values);
  return values.map((value) => value - least);
}

/** Coordinates by rank, those with bit 3 negative. */
function withSigns(levels: readonly number[]): Int8Array {
  return Int8Array.from({ length: 16 }, (_, i) => (i < 8 ? 1 : -1) * (levels[i & 7] ?? 0));
}

/** The numbers of all codes of a byte. */
function levels({ decode }: NumberFormat): Float32Array {
  const values = new Float32Array(256);
  decode(Uint8Array.from(values, (_, code) => code), values);
  return values;
}

/** Module `generated/code_tables`. */
export function codeTablesModule(): string {
  return [
    data("IQ4_AT", IQ4_LEVELS),
    data("E2M1_AT", aboveLeast(E2M1_DOUBLED)),
    ...Object.entries(POINT_LEVELS).map(([name, levels]) =>
      data(`${name.toUpperCase()}_AT`, aboveLeast(withSigns(levels)))
    ),
    `export const Q8_LOG_AT: usize = memory.data<f32>([${levels(q8_log).join(", ")}], 16);`,
    "",
  ].join("\n");
}
