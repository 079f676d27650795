// What figures of the quality bench count as faults.

import { assertEquals, assertMatch } from "@std/assert";
import type { Figure } from "../support/figures.ts";
import { qualityFaults } from "./mod.ts";

function figure(name: string, value: number, ratio: number | null = null): Figure {
  const peer = { peer: null, peerValue: null, ratio, share: null };
  return { ...peer, bench: "quality", case: name, unit: "", value, machine: "" };
}

Deno.test("figures that hold are no faults", () => {
  const figures = [
    figure("perplexity float a", 20),
    figure("perplexity Q8_0 a", 20.02),
    figure("perplexity Q5_B64T1 a", 21),
    figure("perplexity Q5_B64T1 b at 768", 19),
    figure("perplexity Q4_B32T1A b at 768", 20),
    figure("encode Q4_K minilm", 7, 0.99),
    figure("encode IQ4_NL minilm", 7, 0.97),
    figure("tokens q4_0 a", 0.99, 0.99),
    figure("gap q4_0 a", 0.1),
  ];
  assertEquals(qualityFaults(figures), []);
});

Deno.test("a worse encoder, other tokens, a wide gap and a wrong order are faults, each by its name", () => {
  const faults = qualityFaults([
    figure("encode Q4_K minilm", 7, 0.97),
    figure("tokens q4_0 a", 0.5, 0.5),
    figure("gap q4_0 a", 3),
    figure("perplexity Q5_B64T1 b at 768", 22),
    figure("perplexity Q4_B32T1A b at 768", 21),
  ]);
  assertEquals(faults.length, 4);
  assertMatch(faults[0]!, /^encode Q4_K minilm: /);
  assertMatch(faults[1]!, /^tokens q4_0 a: /);
  assertMatch(faults[2]!, /^gap q4_0 a: 3/);
  assertMatch(faults[3]!, /^b at 768: Q5_B64T1 .* is worse than Q4_B32T1A/);
});
