// Which model a request is for, and what an answer is asked for with where the request says nothing.

import type { AnswerJob, ModelTask } from "../engine.ts";
import { ApiError } from "./api_error.ts";
import type { Call } from "./call.ts";

/**
 * The model that a request names, or else the first that can do it: llama.cpp's clients name none.
 *
 * @throws {ApiError} 404 if nobody serves such a model.
 */
export async function modelOf(
  call: Call,
  { name, task }: { readonly name: string | undefined; readonly task?: ModelTask },
): Promise<string> {
  if (name !== undefined && name !== "") return name;
  const models = await call.engine.call("models", null, call.signal);
  // What a model can do is known when it has been loaded.
  const model = models.find(({ tasks }) =>
    task === undefined || tasks.length === 0 || tasks.includes(task)
  );
  if (model) return model.name;
  throw new ApiError(404, `No model is served that can ${task ?? "do this"}`, {
    param: "model",
    code: "model_not_found",
  });
}

/** Options that say how a token is drawn, or that none is. */
const OF_CHANCE = ["temperature", "samplers", "strategy", "mirostat"];
/** Options that say from which tokens. */
const OF_CHOICE = ["topK", "topP", "minP", "typicalP", "tfsZ", "topNSigma", "xtcProbability"];

/** How tokens are drawn where a request says nothing of it: as llama.cpp's server does, since small models need it. */
const USUAL_DRAW = { temperature: 0.8, topK: 40, topP: 0.95, minP: 0.05 } as const;

/** Options as fields set them, with what holds where they set nothing. */
export function withDefaults(options: Readonly<Record<string, unknown>>): AnswerJob["options"] {
  const sets = (names: readonly string[]) => names.some((name) => options[name] !== undefined);
  return {
    ...!sets(OF_CHANCE) && (sets(OF_CHOICE) ? { temperature: 1 } : USUAL_DRAW),
    // A prompt that is too long is refused; an answer that fills the context ends with `length`.
    onContextFull: "stop",
    ...options,
  };
}

/** Most tokens where nobody says: until the model or the context ends. */
export const WHOLE_CONTEXT: number = 2 ** 31;

/** Jobs for several answers to each of some prompts; a seed that was given counts up, so that they differ. */
export function jobsFor(
  inputs: readonly AnswerJob["input"][],
  { model, options, n }: {
    readonly model: string;
    readonly options: AnswerJob["options"];
    readonly n: number;
  },
): AnswerJob[] {
  const { seed } = options;
  return inputs.flatMap((input) =>
    Array.from({ length: n }, (_, i) => ({
      model,
      input,
      options: seed === undefined || i === 0 ? options : { ...options, seed: seed + i },
    }))
  );
}
