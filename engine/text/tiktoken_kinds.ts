// Patterns and control tokens of published tiktoken vocabularies, by the number of their ranks; the rank
// files hold neither. Sources: openai/tiktoken (tiktoken_ext/openai_public.py), Meta's llama3 tokenizer.py
// and Qwen's tokenization_qwen.py.

import { PRE_TOKENIZERS } from "./pre_tokenizers.ts";

/**
 * What a rank file leaves out.
 * @category Tokens and templates
 */
export interface TiktokenKind {
  /** Regular expressions that cut a text into words, tried in their order. */
  readonly patterns: readonly string[];
  /** Control tokens and their ids. */
  readonly control: Readonly<Record<string, number>>;
  /** Name of the control token in front of every text. */
  readonly bos?: string;
  /** Name of the control token that ends a text. */
  readonly eos?: string;
  /** Whether a word that is a token is taken at once; true as in the reference. */
  readonly ignoreMerges?: boolean;
}

// `(?i:'s)` would match a long s, too, which the list of cases in the reference does not.
const CL100K = [
  String
    .raw`'(?:[sS]|[tT]|[rR][eE]|[vV][eE]|[mM]|[lL][lL]|[dD])|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}` +
  String.raw`| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`,
];

const GPT2: TiktokenKind = {
  patterns: patternsOf("gpt-2"),
  control: { "<|endoftext|>": 50256 },
  eos: "<|endoftext|>",
};

/** The rows, by number of ranks. */
export const TIKTOKEN_KINDS: ReadonlyMap<number, TiktokenKind> = new Map<number, TiktokenKind>([
  [50256, GPT2],
  [100256, {
    patterns: CL100K,
    control: {
      "<|endoftext|>": 100257,
      "<|fim_prefix|>": 100258,
      "<|fim_middle|>": 100259,
      "<|fim_suffix|>": 100260,
      "<|endofprompt|>": 100276,
    },
    eos: "<|endoftext|>",
  }],
  [199998, {
    patterns: patternsOf("gpt-4o"),
    control: { "<|endoftext|>": 199999, "<|endofprompt|>": 200018 },
    eos: "<|endoftext|>",
  }],
  [128000, {
    patterns: patternsOf("llama3"),
    control: numbered(128000, [
      ...["<|begin_of_text|>", "<|end_of_text|>", "<|reserved_special_token_0|>"],
      ...["<|reserved_special_token_1|>", "<|finetune_right_pad_id|>"],
      ...["<|reserved_special_token_2|>", "<|start_header_id|>", "<|end_header_id|>", "<|eom_id|>"],
      ...["<|eot_id|>", "<|python_tag|>"],
      ...Array.from({ length: 245 }, (_, i) => `<|reserved_special_token_${i + 3}|>`),
    ]),
    bos: "<|begin_of_text|>",
    eos: "<|end_of_text|>",
  }],
  [151643, {
    patterns: patternsOf("qwen2"),
    control: numbered(151643, [
      "<|endoftext|>",
      "<|im_start|>",
      "<|im_end|>",
      ...Array.from({ length: 205 }, (_, i) => `<|extra_${i}|>`),
    ]),
    eos: "<|endoftext|>",
  }],
]);

function patternsOf(name: string): readonly string[] {
  return PRE_TOKENIZERS.get(name)!.patterns;
}

function numbered(first: number, names: readonly string[]): Record<string, number> {
  return Object.fromEntries(names.map((name, i) => [name, first + i]));
}
