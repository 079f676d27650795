// Tokenizer and chat template of a model file: from GGUF metadata, or from tokenizer.json and its
// companions beside the weights, or from what older checkpoints have instead of it. A file without any
// still computes: ids in, logits out.

import { FormatError, UnsupportedError } from "../errors.ts";
import type { WeightFile } from "../formats/source.ts";
import { parseJson } from "../formats/strict_json.ts";
import { type ChatTemplate, compileChatTemplate } from "../text/chat_template.ts";
// Not by way of tokenizer.ts: a GGUF file needs nothing of what reads tokenizer.json. And neither this nor templates
// when they are called for: that would be a wait of its own behind all threads that are busy, 3 to 8 ms.
import { tokenizerFromGguf } from "../text/gguf_tokenizer.ts";
import type { Tokenizer } from "../text/tokenizer.ts";

/** Text side of a model. */
export interface TextParts {
  /** @throws {UnsupportedError} If the files hold none. */
  tokenizer(): Tokenizer;
  readonly chatTemplate: ChatTemplate | undefined;
}

/**
 * Reads the text side of a model.
 *
 * @param template Jinja text to use instead of the file's; null for none.
 * @param tokenization Algorithm to cut texts with, as Inferflow calls it; none for the file's own.
 * @throws {FormatError | UnsupportedError} If what is there cannot be used.
 */
export async function readTextParts(
  file: WeightFile,
  template?: string | null,
  tokenization = "",
): Promise<TextParts> {
  const { tokenizer: own, source } = await readFiles(file);
  const tokenizer = own && tokenization !== "" ? await cutBy(own, tokenization, file.name) : own;
  const text = template === undefined ? source : template ?? undefined;
  const name = template === undefined ? file.name : "option chatTemplate";
  return {
    tokenizer: () => tokenizer ?? noTokenizer(file),
    chatTemplate: text === undefined ? undefined : compileChatTemplate(text, name),
  };
}

async function cutBy(own: Tokenizer, algorithm: string, name: string): Promise<Tokenizer> {
  const { byAlgorithm } = await import("../text/tokenization.ts");
  return byAlgorithm(own, algorithm, name);
}

interface FoundText {
  readonly tokenizer: Tokenizer | undefined;
  /** Jinja text. */
  readonly source: string | undefined;
}

async function readFiles(file: WeightFile): Promise<FoundText> {
  if (file.metadata.has("tokenizer.ggml.model")) {
    return {
      tokenizer: tokenizerFromGguf(file.metadata, file.name),
      source: templateText(file.metadata.get("tokenizer.chat_template"), file),
    };
  }
  const json = await readJson(file, "tokenizer.json");
  const config = await readJson(file, "tokenizer_config.json") as
    | { chat_template?: unknown }
    | undefined;
  return {
    tokenizer: json === undefined ? await findOther(file) : await fromJson(json, config, file.name),
    source: await file.readText?.("chat_template.jinja") ??
      templateText(config?.chat_template, file),
  };
}

async function fromJson(json: unknown, config: unknown, name: string): Promise<Tokenizer> {
  const { tokenizerFromJson } = await import("../text/tokenizer.ts");
  return tokenizerFromJson(json, config, name);
}

async function findOther(file: WeightFile): Promise<Tokenizer | undefined> {
  const { findTokenizer } = await import("../text/tokenizer_files.ts");
  return await findTokenizer(file);
}

// One text, or several with names, of which "default" is for plain conversations.
function templateText(value: unknown, file: WeightFile): string | undefined {
  if (value === undefined || value === null || typeof value === "string") return value ?? undefined;
  const named = Array.isArray(value)
    ? value.find((item) => (item as { name?: unknown } | null)?.name === "default")
    : undefined;
  const template = (named as { template?: unknown } | undefined)?.template;
  if (typeof template === "string") return template;
  throw new FormatError("is neither a text nor a list with a default one", {
    file: file.name,
    place: "chat_template",
  });
}

function noTokenizer({ name }: WeightFile): never {
  throw new UnsupportedError("the model's files hold no tokenizer", {
    file: name,
    remedy:
      "Put tokenizer.json or tokenizer.model beside the weights, or use a session with token ids",
  });
}

async function readJson(file: WeightFile, name: string): Promise<unknown> {
  const text = await file.readText?.(name);
  return text === undefined ? undefined : parseJson(text, { file: file.name, place: name });
}
