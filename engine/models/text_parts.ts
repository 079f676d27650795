// Tokenizer and chat template of a model file: from GGUF metadata, or from tokenizer.json and its
// companions beside the weights. A file without any still computes: ids in, logits out.

import { FormatError, UnsupportedError } from "../errors.ts";
import type { WeightFile } from "../formats/source.ts";
import type { ChatTemplate } from "../text/chat_template.ts";
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
 * @throws {FormatError | UnsupportedError} If what is there cannot be used.
 */
export async function readTextParts(file: WeightFile): Promise<TextParts> {
  const { tokenizerFromGguf, tokenizerFromJson } = await import("../text/tokenizer.ts");
  const { chatTemplateFromGguf, chatTemplateFromJson } = await import("../text/chat_template.ts");
  if (file.metadata.has("tokenizer.ggml.model")) {
    const tokenizer = tokenizerFromGguf(file.metadata, file.name);
    return {
      tokenizer: () => tokenizer,
      chatTemplate: chatTemplateFromGguf(file.metadata, tokenizer, file.name),
    };
  }
  const json = await readJson(file, "tokenizer.json");
  if (json === undefined) return { tokenizer: () => noTokenizer(file), chatTemplate: undefined };
  const config = await readJson(file, "tokenizer_config.json");
  const tokenizer = tokenizerFromJson(json, config, file.name);
  const template = await file.readText?.("chat_template.jinja");
  return {
    tokenizer: () => tokenizer,
    chatTemplate: chatTemplateFromJson({ config, template }, tokenizer, file.name),
  };
}

function noTokenizer({ name }: WeightFile): never {
  throw new UnsupportedError("the model's files hold no tokenizer", {
    file: name,
    remedy: "Put tokenizer.json beside the weights, or use a session with token ids",
  });
}

async function readJson(file: WeightFile, name: string): Promise<unknown> {
  const text = await file.readText?.(name);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new FormatError("is not JSON", { file: file.name, place: name, cause });
  }
}
