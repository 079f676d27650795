// Logit bias: a number added to the logits of single tokens. -Infinity (or false, as llama.cpp's server
// writes it) excludes a token.

import { logitsChanged } from "../candidates.ts";
import { defineStep, type ParameterRule, type SamplingStep } from "../step.ts";
import { clearTable, setTableValue, tableValue } from "../token_table.ts";

/** Bias by token id. */
export type LogitBias = ReadonlyMap<number, number>;

const biasRule: ParameterRule<LogitBias> = {
  default: new Map(),
  aliases: ["logit_bias"],
  options: ["logitBias"],
  allowed: "a map or object from token id to a number, -Infinity or false, or a list of such pairs",
  parse(value) {
    if (typeof value !== "object" || value === null) return undefined;
    const isPairs = value instanceof Map || Array.isArray(value);
    const bias = new Map<number, number>();
    for (const pair of isPairs ? value : Object.entries(value)) {
      if (!Array.isArray(pair) || pair.length !== 2) return undefined;
      const id = typeof pair[0] === "string" && /^\d+$/.test(pair[0]) ? Number(pair[0]) : pair[0];
      const amount = pair[1] === false ? -Infinity : pair[1];
      if (!Number.isInteger(id) || id < 0) return undefined;
      if (typeof amount !== "number" || Number.isNaN(amount) || amount === Infinity) {
        return undefined;
      }
      bias.set(id, amount);
    }
    return bias;
  },
};

/** Adds numbers to the logits of single tokens. */
export const logitBias: SamplingStep = defineStep<{ bias: LogitBias }>({
  name: "logit_bias",
  asksForChance: false,
  rules: { bias: biasRule },
  isOff: ({ bias }) => bias.size === 0,
  apply(candidates, { bias }, context) {
    const { ids, logits } = candidates;
    const table = context.table();
    clearTable(table);
    for (const [id, amount] of bias) setTableValue(table, { id, value: amount });
    if (candidates.dense) {
      for (let i = 0; i < table.count; i++) logits[table.ids[i]!]! += table.values[table.ids[i]!]!;
    } else {
      for (let i = 0; i < candidates.size; i++) logits[i]! += tableValue(table, ids[i]!);
    }
    logitsChanged(candidates);
  },
});
