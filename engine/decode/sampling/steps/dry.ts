// DRY ("don't repeat yourself", p-e-w, text-generation-webui PR 5677): a token that would prolong a
// repetition is punished by how long the repetition already is. For every earlier place where the newest
// tokens also stood, the token that followed there loses `multiplier * base^(length - allowed_length)`,
// with the greatest length that ends there; nothing below `allowed_length`. A repetition does not reach
// across a sequence breaker, and a breaker itself is never punished.
// All match lengths come from one Z-array over the reversed history, in linear time.

import { logitsChanged } from "../candidates.ts";
import {
  count,
  defineStep,
  number,
  type ParameterRule,
  type SamplingStep,
  type SequenceBreakers,
  type StepContext,
} from "../step.ts";
import { clearTable, setTableValue, tableValue, type TokenTable } from "../token_table.ts";

interface DryParameters {
  multiplier: number;
  base: number;
  allowed_length: number;
  penalty_last_n: number;
  sequence_breakers: SequenceBreakers;
}

const breakersRule: ParameterRule<SequenceBreakers> = {
  default: ["\n", ":", '"', "*"],
  aliases: ["dry_sequence_breakers"],
  options: ["drySequenceBreakers"],
  allowed: "a list of texts and token ids",
  parse(value) {
    if (!Array.isArray(value)) return undefined;
    const isBreaker = (item: unknown) =>
      typeof item === "string" ? item !== "" : Number.isInteger(item) && (item as number) >= 0;
    return value.every(isBreaker) ? value : undefined;
  },
};

// The largest penalty that float32 can carry, as in llama.cpp: e^88.7.
const MAX_LOG_PENALTY = 88.7;

/** Punishes tokens that prolong a repetition. */
export const dry: SamplingStep = defineStep<DryParameters>({
  name: "dry",
  asksForChance: false,
  rules: {
    multiplier: number(0.8, { min: 0, aliases: ["dry_multiplier"], options: ["dryMultiplier"] }),
    base: number(1.75, { min: 1, aliases: ["dry_base"], options: ["dryBase"] }),
    allowed_length: count(2, { aliases: ["dry_allowed_length"], options: ["dryAllowedLength"] }),
    penalty_last_n: number(-1, {
      min: -1,
      integer: true,
      aliases: ["dry_penalty_last_n"],
      options: ["dryPenaltyLastN"],
    }),
    sequence_breakers: breakersRule,
  },
  neutral: { multiplier: 0 },
  isOff: (p) => p.multiplier === 0 || p.penalty_last_n === 0,
  needsTexts: (p) => p.sequence_breakers.some((breaker) => typeof breaker === "string"),
  apply(candidates, p, context) {
    const lengths = context.table();
    clearTable(lengths);
    repetitionLengths(lengths, p, context);
    if (lengths.count === 0) return;
    const { ids, logits, size } = candidates;
    const maxExponent = MAX_LOG_PENALTY / Math.log(p.base);
    for (let i = 0; i < size; i++) {
      const length = tableValue(lengths, ids[i]!);
      if (length === 0 || length < p.allowed_length) continue;
      const exponent = Math.min(length - p.allowed_length, maxExponent);
      logits[i]! -= p.multiplier * p.base ** exponent;
    }
    logitsChanged(candidates);
  },
});

// Into `lengths`: for each token, how long a repetition it would prolong.
function repetitionLengths(lengths: TokenTable, p: DryParameters, context: StepContext): void {
  const { tokens, length } = context.history;
  const window = p.penalty_last_n === -1 ? length : Math.min(length, p.penalty_last_n);
  const last = length - 1;
  let limit = 0; // newest tokens up to the first breaker
  while (limit < window && !context.isBreaker(tokens[last - limit]!, p.sequence_breakers)) limit++;
  if (limit === 0) return;

  // z[i]: how many tokens going back from `last - i` equal those going back from `last`.
  const z = context.integers(window);
  for (let i = 1, left = 0, right = 0; i < window; i++) {
    let match = i < right ? Math.min(right - i, z[i - left]!) : 0;
    while (i + match < window && tokens[last - match] === tokens[last - i - match]) match++;
    z[i] = match;
    if (i + match > right) {
      left = i;
      right = i + match;
    }
    const repeated = Math.min(match, limit);
    const next = tokens[last - i + 1]!;
    if (repeated === 0 || repeated <= tableValue(lengths, next)) continue;
    if (!context.isBreaker(next, p.sequence_breakers)) {
      setTableValue(lengths, { id: next, value: repeated });
    }
  }
}
