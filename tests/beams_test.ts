// Greedy and beam searches of tiny models against what transformers finds and how it scores that. The cases are those
// of `deno task fixtures`, which takes every device.

import { assertEquals } from "@std/assert";
import { runCase } from "../tools/fixtures/case.ts";
import { decoding } from "../tools/fixtures/decoding.ts";
import { fixturePath } from "./support/fixtures.ts";

Deno.test("searches with beams find the texts and scores of transformers", async () => {
  const counts: Record<string, number> = {}, failed: string[] = [];
  const context = { device: "wasm", full: false } as const;
  for await (const one of decoding.cases(fixturePath("decoding"), context)) {
    const { name, outcome, reason } = await runCase(one);
    counts[outcome] = (counts[outcome] ?? 0) + 1;
    if (outcome === "failed") failed.push(`${name}: ${reason}`);
  }
  // Contrastive search is what is skipped.
  assertEquals([failed, counts], [[], { passed: 16, skipped: 2 }]);
});
