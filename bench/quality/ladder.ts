// What must hold between formats on any model whose weights lie on no grid (Inferflow's paper, table 2, and
// TransformerLite's figure of E0M4): more bits, less perplexity. Differences below a thousandth count as none,
// and of Q6 the paper itself says that it may be better than floats.

/** From the best to the worst. */
export const LADDER: readonly string[] = [
  ...["Q8_0", "Q5_B64T1", "Q4_B32T1A", "Q4_B64T1", "Q3H_B64T1", "Q3_B32T1B"],
];

/** Pairs of which the first must not be worse than the second. */
const PAIRS: readonly (readonly [string, string])[] = [
  ["E0M4_G128", "INT4_G128"],
  ["GPTQ:Q4_B64T1", "Q4_B64T1"],
  ["GPTQ:INT4_G128", "INT4_G128"],
  ["GPTQ:E0M4_G128", "E0M4_G128"],
  ["GPTQ:Q4_0", "Q4_0"],
];

const EQUAL = 1.001;
const LARGEST_RISE_OF_Q8 = 1.002;

/** What does not hold among the perplexities that are there, by format; `float` is that of the floats. */
export function ladderFaults(perplexities: ReadonlyMap<string, number>): string[] {
  const steps = LADDER.slice(1).map((worse, i) => [LADDER[i]!, worse] as const);
  const faults = [...steps, ...PAIRS].flatMap(([better, worse]) => {
    const [low, high] = [perplexities.get(better), perplexities.get(worse)];
    if (low === undefined || high === undefined || low <= high * EQUAL) return [];
    return [`${better} (${low.toFixed(3)}) is worse than ${worse} (${high.toFixed(3)})`];
  });
  const [float, q8] = [perplexities.get("float"), perplexities.get(LADDER[0]!)];
  if (float !== undefined && q8 !== undefined && q8 > float * LARGEST_RISE_OF_Q8) {
    faults.push(`${LADDER[0]} (${q8.toFixed(3)}) is 0.2 % above floats (${float.toFixed(3)})`);
  }
  return faults;
}
