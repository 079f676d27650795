// docs' table of sampling steps: names, options and flags as the steps' records have them.

import { STEP_FLAGS } from "../../engine/cli/sampler_flags.ts";
import { STEP_OPTIONS } from "../../engine/decode/sampling/options.ts";
import { samplingSteps } from "../../engine/decode/sampling/steps/mod.ts";
import { alignedTable } from "./document_table.ts";

const HEADINGS = ["step", "options", "flags", "one alone"];

/** The table, aligned as `deno fmt` aligns it. */
export function samplingTable(): string {
  const rows = [...samplingSteps.values()].map(({ name, asksForChance }) => {
    const options = STEP_OPTIONS.filter(({ step }) => step.name === name)
      .map(({ option }) => option);
    const flags = STEP_FLAGS.filter(({ option }) => options.includes(option))
      .map((flag) => `--${flag.name}`);
    const listed = (all: readonly string[]) =>
      [...new Set(all)].map((one) => `\`${one}\``).join(", ");
    const alone = options.length === 0 ? "" : asksForChance ? "drawn" : "greedy";
    return [`\`${name}\``, listed(options), listed(flags), alone];
  });
  return alignedTable(HEADINGS, rows);
}
