// Tokenizer and chat template of a model file: from GGUF metadata, or from tokenizer.json and its
// companions beside the weights, or from what older checkpoints have instead of it. A file without any
// still computes: ids in, logits out.

import { UnsupportedError } from "../errors.ts";
import type { WeightFile } from "../formats/source.ts";
import { type ChatTemplate, compileChatTemplate } from "./chat_template.ts";
// Not by way of tokenizer.ts: a GGUF file needs nothing of what reads tokenizer.json. And neither this nor templates
// when they are called for: that would be a wait of its own behind all threads that are busy, 3 to 8 ms.
import { tokenizerFromGguf } from "./gguf_tokenizer.ts";
import { ggufTemplate } from "./gguf_text_keys.ts";
import type { Tokenizer } from "./tokenizer.ts";
import type { ChatTemplates, FoundText } from "./folder_text.ts";

/** Text side of a model. */
export interface TextParts {
  /** @throws {UnsupportedError} If the files hold none. */
  tokenizer(): Tokenizer;
  readonly chatTemplate: ChatTemplate | undefined;
  /** What files beside the weights ask for and does not happen; one sentence each. */
  readonly warnings: readonly string[];
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
  { template, tokenization = "" }: {
    readonly template?: string | null | undefined;
    readonly tokenization?: string | undefined;
  } = {},
): Promise<TextParts> {
  const { tokenizer: own, templates, warnings } = await readFiles(file);
  const tokenizer = own && tokenization !== "" ? await cutBy(own, tokenization, file.name) : own;
  return {
    tokenizer: () => tokenizer ?? noTokenizer(file),
    chatTemplate: template === undefined
      ? compileAll(templates, file.name)
      : template === null
      ? undefined
      : compileChatTemplate(template, "option chatTemplate"),
    warnings,
  };
}

/** The default template, which the one for tools stands in for where there are some, as in transformers. */
function compileAll(templates: ChatTemplates, name: string): ChatTemplate | undefined {
  if (templates.default === undefined) return undefined;
  const plain = compileChatTemplate(templates.default, name);
  if (templates.tool_use === undefined) return plain;
  const withTools = compileChatTemplate(templates.tool_use, name);
  const render: ChatTemplate["render"] = (input) => (input.tools ? withTools : plain).render(input);
  return { ...plain, toolSource: withTools.source, render };
}

async function cutBy(own: Tokenizer, algorithm: string, name: string): Promise<Tokenizer> {
  const { byAlgorithm } = await import("./tokenization.ts");
  return byAlgorithm(own, { name: algorithm, file: name });
}

async function readFiles(file: WeightFile): Promise<FoundText> {
  if (!file.metadata.has("tokenizer.ggml.model")) {
    return await (await import("./folder_text.ts")).readFolderText(file);
  }
  const text = (key: string) => ggufTemplate(file.metadata, { file: file.name, key });
  return {
    tokenizer: tokenizerFromGguf(file.metadata, file.name),
    templates: {
      default: text("tokenizer.chat_template"),
      tool_use: text("tokenizer.chat_template.tool_use"),
    },
    warnings: [],
  };
}

function noTokenizer({ name }: WeightFile): never {
  throw new UnsupportedError("the model's files hold no tokenizer", {
    file: name,
    remedy:
      "Put tokenizer.json or tokenizer.model beside the weights, or use a session with token ids",
  });
}
