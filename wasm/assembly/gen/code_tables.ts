// What codes of 4 bit stand for, as vectors to look them up in: signed bytes of IQ4, and E2M1's doubled values
// above their least.

import { E2M1_DOUBLED } from "../../../quant/e2m1.ts";
import { IQ4_LEVELS } from "../../../quant/iq4_fit.ts";

function data(name: string, values: Int8Array): string {
  const bytes = [...values].map((value) => value & 0xff);
  return `export const ${name}: usize = memory.data<u8>([${bytes.join(", ")}], 16);`;
}

/** Module `generated/code_tables`. */
export function codeTablesModule(): string {
  const least = Math.min(...E2M1_DOUBLED);
  return [
    data("IQ4_AT", IQ4_LEVELS),
    data("E2M1_AT", E2M1_DOUBLED.map((value) => value - least)),
    "",
  ].join("\n");
}
