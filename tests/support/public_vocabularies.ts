// Vocabularies of well-known models from npm packages that carry them, as the metadata of a GGUF file, so
// that the same reader and encoders are tested that models use. Downloaded by Deno when a test asks.

import type { MetadataValue } from "../../engine/formats/source.ts";
import { BYTE_CHARS } from "../../engine/text/byte_level.ts";

/** Keys of a GGUF file. */
export type Metadata = Map<string, MetadataValue>;

interface VocabularyOfNpm {
  readonly vocabById: string[];
  readonly merges: Map<string, number>;
}

interface RanksOfNpm {
  readonly bpe_ranks: string;
  readonly special_tokens: Readonly<Record<string, number>>;
}

const CONTROL = 3;

function metadata(model: string, values: Record<string, MetadataValue>): Metadata {
  const entries = Object.entries({ model, ...values });
  return new Map(entries.map(([key, value]) => [`tokenizer.ggml.${key}`, value]));
}

/** Llama 2, 32,000 pieces. The scores are those the golden file names. */
export async function llama2Metadata(): Promise<Metadata> {
  const { default: vocabulary } = await import("npm:llama-tokenizer-js@1.2.2");
  const tokens = (vocabulary as unknown as VocabularyOfNpm).vocabById;
  return metadata("llama", {
    tokens,
    scores: tokens.map((text, id) => /^▁▁+$/.test(text) ? -1e9 : 259 - id),
    token_type: tokens.map((_, id) => id === 0 ? 2 : id < 3 ? CONTROL : id < 259 ? 6 : 1),
    bos_token_id: 1,
    eos_token_id: 2,
    unknown_token_id: 0,
  });
}

/** Llama 3, 128,256 tokens. */
export async function llama3Metadata(): Promise<Metadata> {
  const { default: vocabulary } = await import("npm:llama3-tokenizer-js@1.2.0");
  const { vocabById: tokens, merges } = vocabulary as unknown as VocabularyOfNpm;
  const byRank = [...merges].sort(([, a], [, b]) => a - b);
  return metadata("gpt2", {
    tokens,
    merges: byRank.map(([merge]) => merge),
    token_type: tokens.map((_, id) => id < 128_000 ? 1 : CONTROL),
    pre: "llama-bpe",
    bos_token_id: 128_000,
    eos_token_id: 128_009,
  });
}

/** GPT-2, 50,257 tokens. */
export async function gpt2Metadata(): Promise<Metadata> {
  const { default: ranks } = await import("npm:js-tiktoken@1.0.21/ranks/gpt2");
  return fromRanks(ranks as unknown as RanksOfNpm, "gpt-2");
}

/** cl100k, 100,277 ids. */
export async function cl100kMetadata(): Promise<Metadata> {
  const { default: ranks } = await import("npm:js-tiktoken@1.0.21/ranks/cl100k_base");
  return fromRanks(ranks as unknown as RanksOfNpm, "dbrx");
}

/**
 * tiktoken's files hold ranks of tokens and no merges: any two neighbours whose bytes together are a
 * token merge, the lowest rank first. So every way to cut a token in two tokens is a merge.
 */
function fromRanks({ bpe_ranks, special_tokens }: RanksOfNpm, pre: string): Metadata {
  const tokens: string[] = [];
  for (const line of bpe_ranks.split("\n")) {
    const [, first, ...encoded] = line.split(" ");
    encoded.forEach((text, i) => tokens[Number(first) + i] = byteText(Uint8Array.fromBase64(text)));
  }
  const known = new Set(tokens);
  const merges: string[] = [];
  for (const token of tokens) {
    for (let cut = 1; cut < token.length; cut++) {
      const left = token.slice(0, cut);
      const right = token.slice(cut);
      if (known.has(left) && known.has(right)) merges.push(`${left} ${right}`);
    }
  }
  const kinds = tokens.map(() => 1);
  for (const [text, id] of Object.entries(special_tokens)) {
    while (tokens.length < id) {
      kinds.push(5);
      tokens.push(`<hole ${tokens.length}>`);
    }
    tokens[id] = text;
    kinds[id] = CONTROL;
  }
  return metadata("gpt2", { tokens, merges, token_type: kinds, pre });
}

function byteText(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => BYTE_CHARS[byte]).join("");
}
