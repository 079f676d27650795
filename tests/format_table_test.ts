// docs' table of number formats says what the formats and the measured lines say.

import { assertEquals } from "@std/assert";
import { formats } from "../quant/mod.ts";
import { formatRows, HEADINGS } from "../tools/build/format_rows.ts";

Deno.test("every format with an encoder has a row with its bits and an error that falls with them", () => {
  const rows = new Map(formatRows().map((row) => [row[0]!, row]));
  for (const { name, encode, blockBytes, blockSize } of formats.values()) {
    const row = rows.get(name);
    if (!row) continue;
    assertEquals([row.length, row[1]], [HEADINGS.length, (8 * blockBytes / blockSize).toFixed(2)]);
    assertEquals(row[3] !== "", encode !== undefined, name);
  }
  const errorOf = (name: string) => parseFloat(rows.get(name)![3]!);
  const ladder = [
    "F32",
    "F16",
    "Q8_0",
    "Q6_B64T1",
    "Q5_B64T1",
    "Q4_B64T1",
    "Q3H_B64T1",
    "Q3_B32T1B",
  ];
  const errors = ladder.map(errorOf);
  assertEquals(errors.toSorted((a, b) => a - b), errors);
});
