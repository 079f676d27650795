// Tokenizer and chat templates from the files beside a model's weights. A fact may stand in several of them: ends of
// answers in generation_config.json, config.json and tokenizer_config.json; a template in a file of its own, in
// tokenizer_config.json, or where processors of pictures once had it.

import { FormatError } from "../errors.ts";
import { checkFields } from "../formats/field_table.ts";
import type { MetadataValue, WeightFile } from "../formats/source.ts";
import { asObject, readJson } from "../formats/strict_json.ts";
import { withEnds } from "./end_of_generation.ts";
import { withTimestamps } from "./speech_timestamps.ts";
import type { Tokenizer } from "./tokenizer.ts";
import { TOKENIZER_FIELDS } from "./tokenizer_config.ts";
import { readGenerationConfig } from "./generation_config.ts";

const CONFIG = "tokenizer_config.json";

/** Jinja texts by their names; a conversation takes `default`, one with tools `tool_use`. */
export interface ChatTemplates {
  readonly default?: string | undefined;
  readonly tool_use?: string | undefined;
}

/** Text side of a model as its files have it. */
export interface FoundText {
  readonly tokenizer: Tokenizer | undefined;
  readonly templates: ChatTemplates;
  readonly warnings: readonly string[];
}

/**
 * Reads them.
 *
 * @throws {FormatError | UnsupportedError} If what is there cannot be used.
 */
export async function readFolderText(file: WeightFile): Promise<FoundText> {
  const json = await readJson(file, "tokenizer.json");
  const config = asObject(await readJson(file, CONFIG)) ?? {};
  const generation = await readGenerationConfig(file);
  const own = json === undefined
    ? await findOther(file)
    : await fromJson(withTimestamps(json, await vocabularyOf(file)), config, file.name);
  const tokenizer = own && withEnds(own, generation.endIds);
  const missing = tokenizer
    ? addedTokens(config).filter(([id, text]) => !hasToken(tokenizer, id, text))
    : [];
  return {
    tokenizer,
    templates: await readTemplates(file, config),
    warnings: [
      ...generation.warnings,
      ...checkFields(config, TOKENIZER_FIELDS, { file: file.name, place: CONFIG }),
      ...missing.map(([id, text]) =>
        `${CONFIG}: added_tokens_decoder has ${
          JSON.stringify(text)
        } as ${id}, which the vocabulary does not know`
      ),
    ],
  };
}

async function fromJson(json: MetadataValue, config: unknown, name: string): Promise<Tokenizer> {
  const { tokenizerFromJson } = await import("./tokenizer.ts");
  return tokenizerFromJson(json, { tokenizerConfig: config, name });
}

async function vocabularyOf(file: WeightFile): Promise<MetadataValue | undefined> {
  return asObject(await readJson(file, "config.json"))?.vocab_size;
}

async function findOther(file: WeightFile): Promise<Tokenizer | undefined> {
  const { findTokenizer } = await import("./tokenizer_files.ts");
  return await findTokenizer(file);
}

type Json = NonNullable<ReturnType<typeof asObject>>;

/** Tokens that the config adds: ids and texts. */
function addedTokens(config: Json): [id: number, text: string][] {
  return Object.entries(asObject(config.added_tokens_decoder) ?? {}).flatMap(([id, row]) => {
    const { content } = asObject(row) ?? {};
    return typeof content === "string" ? [[Number(id), content]] : [];
  });
}

function hasToken(tokenizer: Tokenizer, id: number, text: string): boolean {
  return id < tokenizer.vocabSize && tokenizer.tokenText(id) === text;
}

/** The first place that has any counts: a file of its own, the config, and a processor's old file. */
async function readTemplates(file: WeightFile, config: Json): Promise<ChatTemplates> {
  const plain = await file.readText?.("chat_template.jinja");
  const tools = await file.readText?.("additional_chat_templates/tool_use.jinja");
  if (plain !== undefined) return { default: plain, tool_use: tools };
  const old = asObject(await readJson(file, "chat_template.json"))?.chat_template;
  const stated = templatesOf(config.chat_template, file) ?? templatesOf(old, file);
  return { ...stated, ...tools !== undefined && { tool_use: tools } };
}

// One text, or several with names: a record, or a list as older files have it.
function templatesOf(value: unknown, { name }: WeightFile): ChatTemplates | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "string") return { default: value };
  const pairs = Array.isArray(value)
    ? value.map((item) => [asObject(item)?.name, asObject(item)?.template])
    : Object.entries(asObject(value as Json) ?? { "": null });
  if (pairs.some((pair) => pair.some((text) => typeof text !== "string"))) {
    throw new FormatError("is neither a text nor texts with names", {
      file: name,
      place: "chat_template",
    });
  }
  return Object.fromEntries(pairs);
}
