// The table of sampling steps. A step is one file beside this one and one line here; chains, options and
// error texts learn of it from this table only.

import { nearest } from "../../../nearest.ts";
import type { SamplingStep } from "../step.ts";
import { draw } from "./draw.ts";
import { dry } from "./dry.ts";
import { fsd } from "./fsd.ts";
import { greedy } from "./greedy.ts";
import { logitBias } from "./logit_bias.ts";
import { minP } from "./min_p.ts";
import { mirostat } from "./mirostat.ts";
import { mirostatV1 } from "./mirostat_v1.ts";
import { penalties } from "./penalties.ts";
import { randomFsd } from "./random_fsd.ts";
import { temperature } from "./temperature.ts";
import { tfs } from "./tfs.ts";
import { topK } from "./top_k.ts";
import { topNSigma } from "./top_n_sigma.ts";
import { topP } from "./top_p.ts";
import { typical } from "./typical.ts";
import { xtc } from "./xtc.ts";

const all: readonly SamplingStep[] = [
  ...[logitBias, penalties, dry],
  ...[topNSigma, topK, temperature, tfs, typical, topP, minP, xtc],
  ...[draw, greedy, mirostat, mirostatV1, fsd, randomFsd],
];

/** Every step by canonical name. */
export const samplingSteps: ReadonlyMap<string, SamplingStep> = new Map(
  all.map((step) => [step.name, step]),
);

const byAnyName: ReadonlyMap<string, SamplingStep> = new Map(
  all.flatMap((step) => [step.name, ...step.aliases].map((name) => [name, step])),
);

/**
 * The step of a name, an alias, or either behind `sample.`.
 *
 * @throws {RangeError} If there is none; the message has the nearest one, or lists the known ones.
 */
export function getSamplingStep(name: string): SamplingStep {
  const step = byAnyName.get(name.startsWith("sample.") ? name.slice(7) : name);
  if (step) return step;
  const near = nearest(name, byAnyName.keys());
  throw new RangeError(
    near === undefined
      ? `Unknown sampling step "${name}": known are ${[...samplingSteps.keys()].join(", ")}`
      : `Unknown sampling step "${name}". Did you mean ${near}?`,
  );
}
