// What the engine says of a request, in the request's own words: which field an error is about, and the names of fields
// where the engine names its options. Paths of files on this machine are cut to their last part.

import { STEP_OPTIONS } from "../../decode/sampling/options.ts";
import type { JobFailure } from "../job_error.ts";

/** Fields of a request, as paths, by the engine's option that each sets; `tool NAME` is the schema of a tool. */
export type FieldNames = ReadonlyMap<string, string>;

/** `topK` to `top_k`. */
export function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Options that errors speak of without naming them. */
const SIGNS: readonly (readonly [sign: RegExp, options: readonly string[]])[] = [
  [/^#\/|: #\//, ["schema"]],
  [/\bregular expression\b/, ["regex"]],
  [/^grammar\b/, ["grammar"]],
  [/\bthinking\b/, ["thinking"]],
  [/\bplace for tools\b/, ["tools"]],
  [/\bchat template\b/, ["messages"]],
  [/\bsampling step\b/, ["samplers", "strategy"]],
  [/\bempty prompt\b|^Cannot compute token\b/, ["prompt"]],
  [/^the prompt has \d+ tokens\b/, ["messages", "prompt"]],
  [/\bfilling in\b/, ["suffix"]],
  [/\bcount token\b/, ["logitBias", "suppressTokens"]],
  [/\badapter\b/, ["adapters"]],
];

/**
 * The field that an error is about; undefined where none is.
 *
 * @param names Fields of this request.
 */
export function fieldOf(
  { message, param }: Pick<JobFailure, "message" | "param">,
  names: FieldNames,
): string | undefined {
  const [tool] = /\btool "[\w-]+"/.exec(message) ?? [];
  const own = names.get(tool?.replaceAll('"', "") ?? param ?? "");
  if (own !== undefined) return own;
  // "Cannot use k -1 in sampling step top_k"
  const [, parameter, step] = /^Cannot use (\w+) .* in sampling step (\w+):/.exec(message) ?? [];
  const ofStep = STEP_OPTIONS.find(({ option, ...one }) =>
    one.step.name === step && one.parameter !== undefined && names.has(option) &&
    snakeCase(one.parameter) === snakeCase(parameter!)
  );
  if (ofStep) return names.get(ofStep.option);
  const sign = SIGNS.find(([sign, options]) =>
    sign.test(message) && options.some((option) => names.has(option))
  );
  const signed = sign?.[1].find((option) => names.has(option));
  if (signed !== undefined) return names.get(signed);
  const named = [...names].find(([option]) => new RegExp(`\\b${option}\\b`).test(message));
  return named?.[1] ?? (param === undefined || param === "both" ? undefined : snakeCase(param));
}

/** What messages tell programmers to do, for those who ask a server or start it. */
const REMEDIES: readonly (readonly [words: RegExp, ours: string])[] = [
  [/\bLoad (?:it |the model )?with\b/, "Start the server with"],
  [/\bload (?:it |the model )?with\b/, "start the server with"],
  [/\bgenerate\(\)/, "/v1/completions"],
  [/\bcontextLength\b/, "--context"],
  [/\bcacheTokens\b/, "--cache-tokens"],
  [/\bchatTemplate\b/, "--chat-template"],
];

/** A message of the engine, with fields where it has options, and flags of the server where it has those of `load()`. */
export function inFields(message: string, names: FieldNames): string {
  const options = new Map([...COMMON.map((name) => [name, snakeCase(name)] as const), ...names]);
  const told = message
    .replace(/(?<![\w:/#])\/(?:[^\s/:,"]+\/)+([^\s/:,"]+)/g, "$1")
    .replace(
      /(?<![\w./\\-])[a-z]+(?:[A-Z][a-z]*)+(?!\w|[./\\]\w)/g,
      (word) => options.get(word) ?? word,
    );
  return REMEDIES.reduce((text, [words, ours]) => text.replace(words, ours), told);
}

/** Options that messages speak of though a request may not have set them. */
const COMMON: readonly string[] = [
  ...new Set(STEP_OPTIONS.map(({ option }) => option)),
  ...["maxTokens", "toolChoice", "suppressTokens", "ignoreEos", "poolSize", "templateOptions"],
];
