/**
 * Tokenizers and chat templates alone: no model, no device, no file is read.
 *
 * @example
 * ```ts
 * import { tokenizerFromJson } from "@troodon/troodon/tokenizers";
 * import { assertEquals } from "@std/assert";
 *
 * const model = { type: "WordLevel", vocab: { "<unk>": 0, sea: 1, the: 2 }, unk_token: "<unk>" };
 * const tokenizer = tokenizerFromJson(
 *   { model, pre_tokenizer: { type: "WhitespaceSplit" } },
 *   { tokenizerConfig: undefined, name: "tokenizer.json" },
 * );
 * assertEquals(tokenizer.encode("the sea"), [2, 1]);
 * ```
 *
 * @module
 */

export { tokenizerFromJson } from "./text/tokenizer_json/tokenizer.ts";
export { tokenizerFromTiktoken } from "./text/tiktoken.ts";
export type { TiktokenKind } from "./text/tiktoken_kinds.ts";
export { type SentencePieceOptions, tokenizerFromSentencePiece } from "./text/sentencepiece.ts";
export type {
  DecodeOptions,
  EncodeOptions,
  Tokenizer,
  TokenizerAlgorithm,
} from "./text/tokenizer.ts";
export type { InfillIds } from "./text/tokenizer_types.ts";
export {
  type ChatMessage,
  type ChatTemplate,
  type ChatTemplateInput,
  compileChatTemplate,
  type ContentPart,
  encodeChat,
  type EncodeChatOptions,
} from "./text/chat_template.ts";
