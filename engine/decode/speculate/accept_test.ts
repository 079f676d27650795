// Acceptance over synthetic distributions: what comes out is distributed as the target, and as many tokens come of a
// check as the formula says. The fixtures' exact fractions are in tests/speculation_test.ts.

import { assertAlmostEquals, assertLess } from "@std/assert";
import { expectedTokens } from "../../../tests/support/expected_tokens.ts";
import { createRandom, nextDouble } from "../sampling/random.ts";
import { createTokenTable } from "../sampling/token_table.ts";
import { drawToken, judge } from "./accept.ts";

const distribution = (probabilities: readonly number[]) => ({
  ids: Int32Array.from(probabilities.keys()),
  probabilities: Float64Array.from(probabilities),
});

/** A target and a draft with Σ min(p, q) = α: a part of q is where p has nothing. */
function pairOf(alpha: number): { readonly p: number[]; readonly q: number[] } {
  return {
    p: [0.5 * alpha, 0.3 * alpha, 0.2 * alpha, 1 - alpha, 0],
    q: [0.5 * alpha, 0.3 * alpha, 0.2 * alpha, 0, 1 - alpha],
  };
}

for (const alpha of [0.3, 0.6, 0.8, 0.95]) {
  Deno.test(`checks give (1 - α^(K + 1)) / (1 - α) tokens within 2 %, drawn as the target's: α = ${alpha}`, () => {
    const random = createRandom(Math.round(1000 * alpha)), coin = () => nextDouble(random);
    const { p, q } = pairOf(alpha), from = distribution(q), table = createTokenTable(p.length);
    const counts = p.map(() => 0);
    for (const k of [1, 3, 8]) {
      let tokens = 0;
      const checks = 40_000;
      for (let check = 0; check < checks; check++) {
        let accepted = 0;
        for (; accepted < k; accepted++) {
          const token = drawToken(from, coin());
          const taken = judge(distribution(p), { proposed: { token, from }, table, coin });
          counts[taken]!++;
          if (taken !== token) break;
        }
        tokens += accepted + 1;
      }
      const expected = expectedTokens(alpha, k);
      assertAlmostEquals(tokens / checks, expected, 0.02 * expected, `K = ${k}`);
    }
    const total = counts.reduce((a, b) => a + b);
    const chi = p.reduce(
      (sum, share, id) =>
        share === 0 ? sum : sum + (counts[id]! - total * share) ** 2 / (total * share),
      0,
    );
    assertLess(chi, 16.27); // 99.9 % point of 3 degrees of freedom
  });
}
