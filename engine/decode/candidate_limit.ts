// Models that give out the best few logits of a row only (exports with a top-k at their end). A sampler that
// takes one of those is exact; whatever asks for the rest would compute with logits that nobody has, so it is
// refused at once.

import { UnsupportedError } from "../errors.ts";
import type { ResolvedGenerateOptions } from "./generate_options.ts";
import type { Runtime } from "./runtime.ts";
import { resolveOptions } from "./sampling/options.ts";

/** @throws {UnsupportedError} If the options need more logits than a model gives. */
export function checkCandidates(
  { candidates, name }: Pick<Runtime, "candidates" | "name">,
  { sampler, logprobs, structure }: Pick<
    ResolvedGenerateOptions,
    "sampler" | "logprobs" | "structure"
  >,
): void {
  if (candidates === undefined) return;
  const { chain, eosBypassingMax } = resolveOptions(sampler);
  const [first] = chain;
  const k = first?.name === "top_k" ? first.parameters.k as number : Infinity;
  const isWithin = first?.isGreedy || k <= candidates;
  const problem = logprobs !== undefined
    ? "log-probabilities need"
    : structure
    ? "a schema or grammar needs"
    : eosBypassingMax > 0
    ? "eosBypassingMax needs"
    : isWithin
    ? undefined
    : `sampling step ${first!.name} needs`;
  if (!problem) return;
  throw new UnsupportedError(
    `gives out the best ${candidates} logits of a token, and ${problem} more`,
    { file: name, remedy: `Sample greedily, or begin with topK of at most ${candidates}` },
  );
}

/** @throws {UnsupportedError} If a model gives out a part of the logits only. */
export function requireAllLogits({ candidates, name }: Pick<Runtime, "candidates" | "name">): void {
  if (candidates === undefined) return;
  throw new UnsupportedError(`gives out the best ${candidates} logits of a token, not all`, {
    file: name,
    remedy: "Export it with its logits",
  });
}
