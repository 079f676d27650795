// Asks a loaded model the queries of a list: the template makes ids of a query, generate() or the mask filler does
// the rest. Queries run side by side as far as the model has sessions for them.

import { coreOf, startGeneration } from "../decode/generate.ts";
import type { GenerateOptions } from "../decode/generate_options.ts";
import type { Generation } from "../decode/generation.ts";
import { UnsupportedError } from "../errors.ts";
import type { Model } from "../decode/model.ts";
import {
  encodePrompt,
  findPromptTemplate,
  type PromptInput,
  type PromptTemplate,
} from "../text/prompt_template.ts";
import type { EngineConfig } from "./engine_config.ts";
import type { InferflowQuery } from "./queries.ts";

/** What a query needs beside the engine's configuration. */
export interface AskOptions {
  readonly seed: number | undefined;
  readonly temperature: number | undefined;
  readonly signal: AbortSignal;
}

/**
 * Starts the answer to a query.
 *
 * @throws {FormatError} If a template names a token that the model has not.
 * @throws {UnsupportedError} If the model is an encoder.
 */
export function askModel(
  model: Model,
  { config, query }: { readonly config: EngineConfig; readonly query: InferflowQuery },
  { seed, temperature, signal }: AskOptions,
): Generation {
  const options: GenerateOptions = {
    maxTokens: 1024,
    ...config.generate,
    ...seed !== undefined && { seed },
    ...temperature !== undefined && { temperature },
    signal,
  };
  const encode = (template: PromptTemplate | undefined, isEncoder: boolean) =>
    encodeWith(model, template, { ...inputOf(config, query), isEncoder });
  const decoder = templateOf(config, query.decoderTemplate) ?? config.decoderTemplate;
  if (model.info.network === "encoder") {
    throw new UnsupportedError("is an encoder, which continues no text", { file: model.name });
  }
  if (model.info.network === "decoder") {
    const tokens = encode(decoder, false);
    return startGeneration(model, { tokens, keep: 0, continues: query.answer !== "" }, options);
  }
  const encoder = templateOf(config, query.encoderTemplate) ?? config.encoderTemplate;
  const source = encode(encoder, true);
  return startGeneration(model, {
    source,
    tokens: decoder ? encode(decoder, false) : coreOf(model).runtime.source!.start,
    keep: 0,
    continues: false,
  }, options);
}

function templateOf({ templates }: EngineConfig, value: string | undefined) {
  return value === undefined ? undefined : findPromptTemplate(value, templates);
}

function inputOf(config: EngineConfig, query: InferflowQuery): PromptInput {
  const { userTokenId, assistantTokenId } = config;
  return {
    query: query.text,
    systemPrompt: query.systemPrompt,
    answer: query.answer,
    ...userTokenId !== undefined && { userTokenId },
    ...assistantTokenId !== undefined && { assistantTokenId },
  };
}

function encodeWith(
  { tokenizer, info }: Model,
  template: PromptTemplate | undefined,
  input: PromptInput,
): number[] {
  if (template) {
    return encodePrompt(template, { input: { ...input, tokenCount: info.vocabulary }, tokenizer });
  }
  return tokenizer.encode(`${input.query}${input.answer}`);
}
