// Tokens between which models of code fill in: what stands in front of a hole and what stands behind it, each
// behind a mark. Every family has marks of its own; most want the front first, some the rear. A GGUF file may
// name them (tokenizer.ggml.fim_*), else the vocabulary tells.

import { FormatError } from "../../errors.ts";
import type { MetadataValue } from "../../formats/source.ts";
import type { InfillIds, Tokenizer } from "../tokenizer_types.ts";

/** Marks of one family. */
interface MarkRow {
  readonly prefix: string;
  readonly suffix: string;
  /** In front of the hole; none: the second text leads into it. */
  readonly middle?: string;
  /** Whether the text behind the hole is given first. */
  readonly isSuffixFirst?: boolean;
  /** Texts that end a filling besides the model's own end and the marks. */
  readonly ends?: readonly string[];
}

const ROWS: readonly MarkRow[] = [
  // Qwen2.5-Coder, CodeGemma
  {
    ...{ prefix: "<|fim_prefix|>", suffix: "<|fim_suffix|>", middle: "<|fim_middle|>" },
    ends: ["<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<|file_separator|>", "<|cursor|>"],
  },
  // StarCoder, StarCoder2, Granite, Refact
  {
    ...{ prefix: "<fim_prefix>", suffix: "<fim_suffix>", middle: "<fim_middle>" },
    ends: ["<fim_pad>", "<file_sep>", "<repo_name>", "<|endoftext|>"],
  },
  // SantaCoder
  {
    ...{ prefix: "<fim-prefix>", suffix: "<fim-suffix>", middle: "<fim-middle>" },
    ends: ["<fim-pad>"],
  },
  // Code Llama
  { prefix: "▁<PRE>", suffix: "▁<SUF>", middle: "▁<MID>", ends: ["▁<EOT>"] },
  { prefix: "<PRE>", suffix: "<SUF>", middle: "<MID>", ends: ["<EOT>"] },
  // DeepSeek-Coder; its middle mark stands at the end, and a hole where it belongs
  { prefix: "<｜fim▁begin｜>", suffix: "<｜fim▁hole｜>", middle: "<｜fim▁end｜>" },
  // GLM-4, CodeGeeX
  { prefix: "<|code_prefix|>", suffix: "<|code_suffix|>", middle: "<|code_middle|>" },
  // Seed-Coder
  {
    ...{ prefix: "<[fim-prefix]>", suffix: "<[fim-suffix]>", middle: "<[fim-middle]>" },
    isSuffixFirst: true,
  },
  // Codestral
  { prefix: "[PREFIX]", suffix: "[SUFFIX]", isSuffixFirst: true },
];

/** What is needed to fill in. */
export interface InfillTokens {
  readonly prefix: number;
  readonly suffix: number;
  readonly middle: number | undefined;
  readonly isSuffixFirst: boolean;
  /** Tokens that end a filling, besides the model's own ends. */
  readonly ends: ReadonlySet<number>;
}

/** The marks of a vocabulary; undefined where it has none. */
export function infillTokensOf(tokenizer: Tokenizer): InfillTokens | undefined {
  const row = ROWS.find(({ prefix, suffix, middle }) =>
    [prefix, suffix, middle].every((text) =>
      text === undefined || tokenizer.idOf(text) !== undefined
    )
  );
  const idOf = (text: string | undefined) => text === undefined ? undefined : tokenizer.idOf(text);
  const named = tokenizer.infillIds;
  const prefix = named?.prefix ?? idOf(row?.prefix);
  const suffix = named?.suffix ?? idOf(row?.suffix);
  const middle = named?.middle ?? idOf(row?.middle);
  if (prefix === undefined || suffix === undefined) return undefined;
  const more = [...named?.ends ?? [], ...(row?.ends ?? []).map(idOf), prefix, suffix, middle];
  return {
    ...{ prefix, suffix, middle, isSuffixFirst: row?.isSuffixFirst ?? false },
    ends: new Set(more.filter((id) => id !== undefined)),
  };
}

/** Keys of GGUF files, newest first. */
const KEYS: Readonly<Record<"prefix" | "suffix" | "middle", readonly string[]>> = {
  prefix: ["fim_pre_token_id", "prefix_token_id"],
  suffix: ["fim_suf_token_id", "suffix_token_id"],
  middle: ["fim_mid_token_id", "middle_token_id"],
};
const END_KEYS = ["fim_pad_token_id", "fim_rep_token_id", "fim_sep_token_id"];

/**
 * The marks that a GGUF file names; undefined where it names none.
 *
 * @throws {FormatError} If one is no id of the vocabulary.
 */
export function ggufInfillIds(
  metadata: ReadonlyMap<string, MetadataValue>,
  { file, vocabSize }: { readonly file: string; readonly vocabSize: number },
): InfillIds | undefined {
  const idAt = (key: string): number | undefined => {
    const place = `tokenizer.ggml.${key}`, value = metadata.get(place);
    if (value === undefined) return undefined;
    const id = typeof value === "bigint" ? Number(value) : value;
    if (typeof id === "number" && Number.isInteger(id) && id >= 0 && id < vocabSize) return id;
    throw new FormatError(`must be an id from 0 to ${vocabSize - 1}`, { file, place });
  };
  const first = (keys: readonly string[]) => keys.map(idAt).find((id) => id !== undefined);
  const found = Object.entries(KEYS).map(([role, keys]) => [role, first(keys)] as const);
  const ends = END_KEYS.map(idAt).filter((id) => id !== undefined);
  const named = found.filter(([, id]) => id !== undefined);
  return named.length + ends.length > 0 ? { ...Object.fromEntries(named), ends } : undefined;
}
