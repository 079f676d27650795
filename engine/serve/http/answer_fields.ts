// The fields by which an answer is asked for, as data: OpenAI's own, and the engine's samplers and options under their
// names in snake_case. Chat, completions and responses have tables of their own on top of this one.

import {
  COUNT,
  FLAG,
  listOf,
  NUMBER,
  OBJECT,
  oneOf,
  TEXT,
  type ValueRule,
  valueRule,
  whole,
} from "../../record.ts";
import { WHOLE_CONTEXT } from "./model_choice.ts";
import { field, type FieldTable, ignored, refused, SAMPLER_FIELDS } from "./fields.ts";

/** A text, or a list of them. */
const TEXT_OR_TEXTS: ValueRule<string | readonly string[]> = valueRule(
  "a text or a list of texts",
  (value) => typeof value === "string" || isTexts(value),
);

/** Any list of texts. */
const TEXTS: ValueRule<readonly string[]> = listOf(TEXT, "a list of texts");

/** Numbers from 0 to 1, both included. */
const TO_ONE: ValueRule<number> = valueRule(
  "a number from 0 to 1",
  (value) => typeof value === "number" && value >= 0 && value <= 1,
);

const TO_TWO: ValueRule<number> = valueRule(
  "a number from -2 to 2",
  (value) => typeof value === "number" && value >= -2 && value <= 2,
);

const TEMPERATURE: ValueRule<number> = valueRule(
  "a number of at least 0",
  (value) => Number.isFinite(value) && value as number >= 0,
);

/** -1 of llama.cpp's and LM Studio's clients: until the model or the context ends. */
const NO_LIMIT = -1;

/** Most tokens of an answer. */
const MOST_TOKENS: ValueRule<number> = tokenLimit(1);

function tokenLimit(least: number): ValueRule<number> {
  return valueRule(
    `a whole number of at least ${least}, or ${NO_LIMIT} for no limit`,
    (value) => value === NO_LIMIT || Number.isSafeInteger(value) && value as number >= least,
  );
}

/** The engine's option for such a field. */
export function maxTokensOf(tokens: number = NO_LIMIT): number {
  return tokens === NO_LIMIT ? WHOLE_CONTEXT : tokens;
}

/** Most answers to one prompt, as in OpenAI's API. */
const MOST_ANSWERS = 128;

function isTexts(value: unknown): boolean {
  return Array.isArray(value) && value.every((text) => typeof text === "string");
}

function isBias(value: unknown): boolean {
  const isWeight = (weight: unknown) =>
    weight === false || typeof weight === "number" && Math.abs(weight) <= 100;
  return OBJECT.accepts(value) &&
    Object.entries(value).every(([id, weight]) => /^\d{1,9}$/.test(id) && isWeight(weight));
}

/** Fields that OpenAI's clients send and that change nothing here. */
const HARMLESS: FieldTable = ignored([
  ...["user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key"],
  ...["prompt_cache_retention", "prediction", "verbosity", "cache_prompt", "timings_per_token"],
]);

/** Fields of every kind of answer. */
const ANSWER_FIELDS = {
  ...SAMPLER_FIELDS,
  ...HARMLESS,
  model: field(TEXT),
  stream: field(FLAG),
  temperature: field(TEMPERATURE, { option: "temperature" }),
  top_p: field(TO_ONE, { option: "topP" }),
  frequency_penalty: field(TO_TWO, { option: "frequencyPenalty" }),
  presence_penalty: field(TO_TWO, { option: "presencePenalty" }),
  seed: field(whole("a whole number of at most 2^53 - 1"), { option: "seed" }),
  logit_bias: field(
    valueRule<Readonly<Record<string, number | false>>>(
      "an object of token ids, with numbers from -100 to 100 or false",
      isBias,
    ),
    { option: "logitBias" },
  ),
  ignore_eos: field(FLAG, { option: "ignoreEos" }),
  context_full: field(
    oneOf(["drop", "error", "stop", "slide"], "one of drop, error, stop, slide"),
    { option: "onContextFull" },
  ),
  keep: field(COUNT, { option: "keep" }),
  adapters: field(
    valueRule<Readonly<Record<string, number>>>(
      "an object of adapters' names with numbers",
      (value) => OBJECT.accepts(value) && Object.values(value).every(Number.isFinite),
    ),
    { option: "adapters" },
  ),
  draft: field(oneOf(["lookup", "history"], "one of lookup, history"), { option: "draft" }),
  priority: field(
    valueRule<string | number>(
      "one of high, normal, low, or a whole number from -8 to 8",
      (value) =>
        ["high", "normal", "low"].includes(value as string) ||
        Number.isInteger(value) && Math.abs(value as number) <= 8,
    ),
    { option: "priority" },
  ),
  special: field(FLAG, { option: "special" }),
  grammar: field(TEXT, { option: "grammar" }),
  regex: field(TEXT, { option: "regex" }),
} as const;

/** How often, and until where: fields of chat and completions. */
const REPEATED = {
  n: field(
    whole(`a whole number from 1 to ${MOST_ANSWERS}`, { least: 1, most: MOST_ANSWERS }),
  ),
  stop: field(TEXT_OR_TEXTS, {
    option: "stop",
    to: (stop) => typeof stop === "string" ? [stop] : stop,
  }),
  stream_options: field(OBJECT),
};

const AUDIO = "answers here are text";

/** Fields of a conversation's answer, however it is asked for. */
const CHAT_OPTIONS = {
  thinking: field(FLAG, { option: "thinking" }),
  enable_thinking: field(FLAG, { option: "thinking" }),
  chat_template_kwargs: field(OBJECT),
  parallel_tool_calls: field(FLAG),
} as const;

/** /v1/chat/completions */
export const CHAT_FIELDS = {
  ...ANSWER_FIELDS,
  ...REPEATED,
  ...CHAT_OPTIONS,
  messages: field(valueRule<readonly unknown[]>("a list of messages", Array.isArray)),
  max_tokens: field(MOST_TOKENS),
  max_completion_tokens: field(MOST_TOKENS),
  logprobs: field(FLAG),
  top_logprobs: field(whole("a whole number from 0 to 20", { least: 0, most: 20 })),
  tools: field(valueRule<readonly unknown[]>("a list of tools", Array.isArray)),
  tool_choice: field(valueRule<unknown>("a text or an object", () => true)),
  response_format: field(OBJECT),
  reasoning_effort: field(TEXT),
  modalities: refused(AUDIO, [["text"]]),
  audio: refused(AUDIO),
  web_search_options: refused("this server searches nothing"),
  functions: refused("give tools instead"),
  function_call: refused("give tool_choice instead", ["none", "auto"]),
} as const;

/** /v1/completions */
export const COMPLETION_FIELDS = {
  ...ANSWER_FIELDS,
  ...REPEATED,
  prompt: field(
    valueRule<unknown>("a text, a list of texts, of token ids, or of such lists", isAny),
  ),
  suffix: field(TEXT),
  max_tokens: field(tokenLimit(0), { option: "maxTokens", to: maxTokensOf }),
  logprobs: field(whole("a whole number from 0 to 20", { least: 0, most: 20 })),
  echo: field(FLAG),
  best_of: field(whole("a whole number of at least 1", { least: 1 })),
} as const;

function isAny(value: unknown): boolean {
  return typeof value === "string" || Array.isArray(value);
}

/** /v1/responses */
export const RESPONSE_FIELDS = {
  ...ANSWER_FIELDS,
  ...CHAT_OPTIONS,
  input: field(valueRule<unknown>("a text or a list of items", isAny)),
  instructions: field(TEXT),
  max_output_tokens: field(MOST_TOKENS, { option: "maxTokens", to: maxTokensOf }),
  tools: field(valueRule<readonly unknown[]>("a list of tools", Array.isArray)),
  tool_choice: field(valueRule<unknown>("a text or an object", () => true)),
  text: field(OBJECT),
  reasoning: field(OBJECT),
  include: field(TEXTS),
  top_logprobs: field(whole("a whole number from 0 to 20", { least: 0, most: 20 })),
  truncation: field(oneOf(["auto", "disabled"], "one of auto, disabled")),
  stream_options: field(OBJECT),
  ...ignored(["max_tool_calls"]),
  background: refused("this server keeps no answers", [false]),
  previous_response_id: refused("this server keeps no answers: send the whole conversation"),
  conversation: refused("this server keeps no conversations: send the whole of it"),
  prompt: refused("this server keeps no prompts: send the texts"),
} as const;

/** /v1/embeddings */
export const EMBEDDING_FIELDS = {
  ...HARMLESS,
  model: field(TEXT),
  input: field(
    valueRule<unknown>("a text, a list of texts, of token ids, or of such lists", isAny),
  ),
  encoding_format: field(oneOf(["float", "base64"], "one of float, base64")),
  dimensions: field(whole("a whole number of at least 1", { least: 1 })),
} as const;

/** /v1/rerank: Jina's and Cohere's */
export const RERANK_FIELDS = {
  ...HARMLESS,
  model: field(TEXT),
  query: field(TEXT),
  documents: field(valueRule<readonly unknown[]>("a list of texts", Array.isArray)),
  top_n: field(whole("a whole number of at least 1", { least: 1 })),
  return_documents: field(FLAG),
} as const;

/** /tokenize: llama.cpp's names and vLLM's */
export const TOKENIZE_FIELDS = {
  model: field(TEXT),
  content: field(TEXT),
  text: field(TEXT),
  prompt: field(TEXT),
  messages: field(valueRule<readonly unknown[]>("a list of messages", Array.isArray)),
  add_special: field(FLAG),
  add_special_tokens: field(FLAG),
  parse_special: field(FLAG),
  with_pieces: field(FLAG),
} as const;

/** /detokenize */
export const DETOKENIZE_FIELDS = {
  model: field(TEXT),
  tokens: field(listOf(COUNT, "a list of token ids")),
} as const;

/** Inferflow's own endpoint [IF-23]. */
export const INFERFLOW_FIELDS = {
  header: field(OBJECT),
  model: field(TEXT),
  text: field(TEXT),
  system_prompt: field(TEXT),
  res_prefix: field(TEXT),
  encoder_input_template: field(TEXT),
  decoder_input_template: field(TEXT),
  decoding_alg: field(TEXT, { option: "strategy", to: (name) => name === "" ? undefined : name }),
  random_seed: field(COUNT, { option: "seed", to: (seed) => seed === 0 ? undefined : seed }),
  temperature: field(NUMBER, { option: "temperature" }),
  max_output_len: field(COUNT, { option: "maxTokens" }),
  max_new_tokens: field(COUNT, { option: "maxTokens" }),
  is_streaming_mode: field(
    valueRule<boolean | number>(
      "0, 1, true or false",
      (value) => [0, 1, true, false].includes(value as number),
    ),
  ),
} as const;
