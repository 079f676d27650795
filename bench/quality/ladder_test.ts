// Which orders of perplexities count as faults.

import { assertEquals } from "@std/assert";
import { LADDER, ladderFaults } from "./ladder.ts";

const HOLDS = new Map(LADDER.map((format, i) => [format, 20 * 1.001 ** i] as const));

Deno.test("a ladder of rising perplexities has no fault, also where two are nearly equal", () => {
  assertEquals(ladderFaults(new Map([...HOLDS, ["float", 20]])), []);
  assertEquals(ladderFaults(new Map([["Q8_0", 20.01], ["Q5_B64T1", 20]])), []);
  assertEquals(ladderFaults(new Map()), []);
});

Deno.test("a fault names the formats that are the wrong way round, and a Q8 too far from floats", () => {
  const [first, second] = LADDER as [string, string];
  assertEquals(ladderFaults(new Map([[first, 21], [second, 20]])), [
    `${first} (21.000) is worse than ${second} (20.000)`,
  ]);
  assertEquals(ladderFaults(new Map([["float", 20], ["Q8_0", 20.1]])).length, 1);
  assertEquals(ladderFaults(new Map([["INT4_G128", 20], ["E0M4_G128", 20.1]])).length, 1);
  assertEquals(ladderFaults(new Map([["GPTQ:Q4_0", 20.1], ["Q4_0", 20]])).length, 1);
});
