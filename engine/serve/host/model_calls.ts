// What is asked of a model once and answered once, through the public functions.

import type { Model, ModelInfo } from "../../decode/model.ts";
import type { EncoderRuntime } from "../../decode/encoder_run.ts";
import { embed } from "../../pipelines/embed.ts";
import { encoderOf, pairOf } from "../../pipelines/encoder_text.ts";
import { rerank } from "../../pipelines/rerank.ts";
import { unitVector } from "../../pipelines/vectors.ts";
import type { EngineCalls, ModelTask } from "../engine.ts";
import { type ChatTemplate, encodeChat } from "../../text/chat_template.ts";
import { JobError } from "../job_error.ts";

/** Calls of one model. */
export type ModelCall = "embed" | "rerank" | "tokenize" | "detokenize";

/** What each does. @throws {JobError} On a wrong argument. @throws What the public functions throw. */
export const MODEL_CALLS: {
  readonly [K in ModelCall]: (
    model: Model,
    argument: EngineCalls[K]["argument"],
    signal: AbortSignal,
  ) => EngineCalls[K]["result"] | Promise<EngineCalls[K]["result"]>;
} = {
  async embed(model, { input, dimensions }, signal) {
    const runtime = encoderOf(model, { use: "embed texts" });
    checkDimensions(dimensions, runtime.hidden);
    const ids = input.map((text) => wholeText(runtime, text));
    const whole = await embed(model, ids, { signal });
    // The front of a vector is one itself, of models that were trained for it (Kusupati et al. 2022).
    const vectors = dimensions === undefined
      ? whole
      : whole.map((vector) => unitVector(vector.slice(0, dimensions)));
    return { vectors, promptTokens: ids.reduce((sum, { length }) => sum + length, 0) };
  },
  async rerank(model, { query, documents }, signal) {
    const ranked = await rerank(model, query, documents, { signal });
    const scores = new Array<number>(documents.length);
    for (const { index, score } of ranked) scores[index] = score;
    const runtime = encoderOf(model, { use: "rerank documents" });
    const lengthOf = (document: string) =>
      pairOf(runtime, { first: query, second: document }).tokens.length;
    return { scores, promptTokens: documents.reduce((sum, text) => sum + lengthOf(text), 0) };
  },
  tokenize(model, { text, addSpecial, parseSpecial }) {
    const { tokenizer } = model;
    const ids = typeof text === "string"
      ? tokenizer.encode(text, { addSpecial, special: parseSpecial })
      : encodeChat(tokenizer, templateOf(model), text, { addGenerationPrompt: true });
    return { ids, pieces: ids.map((id) => tokenizer.tokenText(id)) };
  },
  detokenize: (model, { ids }) => ({ text: model.tokenizer.decode(ids) }),
};

/** What a model is for. */
export function tasksOf({ network, labels }: ModelInfo): ModelTask[] {
  if (network === "picture") return [];
  if (network !== "encoder") return ["answer"];
  return labels === 1 ? ["rerank"] : ["embed"];
}

function templateOf({ chatTemplate }: Model): ChatTemplate {
  if (chatTemplate) return chatTemplate;
  throw new JobError({ status: 400, message: "The model has no chat template: give a text" });
}

function checkDimensions(dimensions: number | undefined, width: number): void {
  if (dimensions === undefined) return;
  if (Number.isInteger(dimensions) && dimensions >= 1 && dimensions <= width) return;
  throw new JobError({
    ...{ status: 400, param: "dimensions" },
    message: `Cannot use dimensions ${dimensions}: the model's vectors have ${width}`,
  });
}

/** Ids of a text that nobody cuts. */
function wholeText(
  runtime: EncoderRuntime,
  text: string | readonly number[],
): readonly number[] {
  const ids = typeof text === "string" ? runtime.tokenizer().encode(text, { special: true }) : text;
  const most = Math.min(runtime.encoder.maxTokens, runtime.batch);
  if (ids.length <= most) return ids;
  throw new JobError({
    ...{ status: 400, param: "input", code: "context_length_exceeded" },
    message: `The input has ${ids.length} tokens, and the model reads ${most} at most`,
  });
}
