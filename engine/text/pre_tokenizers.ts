// How a byte-level BPE cuts text into words before merging: one row for each value that the GGUF key
// `tokenizer.ggml.pre` may have. The patterns are those of the models' own tokenizer.json; several in
// a row are applied one after the other, and what a pattern does not match stays a word of its own.
//
// `\s` in the rows means Unicode's White_Space (what the reference tokenizers mean by it), not
// JavaScript's, which counts U+FEFF in and U+0085 out; `compile` puts that right.
//
// Left out on purpose: kinds whose splitting is a program and no pattern (afmoe). They are refused
// by name, as every unknown kind is.

/** One way to cut text into words. */
export interface PreTokenizer {
  /** Patterns in the order of their use. */
  readonly patterns: readonly string[];
  /** A word that is a token as a whole is taken at once, without merging. */
  readonly ignoreMerges?: boolean;
  /** Whether BOS goes in front where the file does not say. */
  readonly addBos?: boolean;
}

const CONTRACTION = "(?i:'s|'t|'re|'ve|'m|'ll|'d)";
const TAIL = String.raw`\s*[\r\n]+|\s+(?!\S)|\s+`;
const GPT2_TEXT = String
  .raw`'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`;

/** The cl100k family: the rows differ in how many digits and which marks go together. */
function cl100k(digits: string, letters = String.raw`\p{L}`, others = String.raw`\p{L}`): string {
  return String.raw`${CONTRACTION}|[^\r\n\p{L}\p{N}]?[${letters}]+|\p{N}${digits}` +
    String.raw`| ?[^\s${others}\p{N}]+[\r\n]*|${TAIL}`;
}

/** The o200k family: upper case, then lower case, as one word. */
function o200k(digits: string, suffix: string, guard = ""): string {
  const upper = String.raw`(?:${guard}[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])`;
  const lower = String.raw`(?:${guard}[\p{Ll}\p{Lm}\p{Lo}\p{M}])`;
  const lead = String.raw`[^\r\n\p{L}\p{N}]?`;
  return `${lead}${upper}*${lower}+${suffix}|${lead}${upper}+${lower}*${suffix}` +
    String.raw`|\p{N}${digits}| ?[^\s\p{L}\p{N}]+[\r\n/]*|${TAIL}`;
}

const LLAMA3 = cl100k("{1,3}");
const QWEN2 = cl100k("");
const ASCII_PUNCTUATION = "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~]";
const DEEPSEEK_WORDS = String.raw`${ASCII_PUNCTUATION}[A-Za-z]+` +
  String.raw`|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|${TAIL}`;
const DEEPSEEK3 = [String.raw`\p{N}{1,3}`, "[一-龥\u3040-ゟ゠-ヿ]+", DEEPSEEK_WORDS];
const BLOOM = String.raw` ?[^(\s|.,!?…。，、।۔،)]+`;
/**
 * Letters that have case. The DeepSeek LLM tokenizer lists them one by one; the list is Unicode 11's
 * cased letters without the mathematical alphabets.
 */
const CASED_LETTER = String.raw`(?:(?![\u{1D400}-\u{1D7FF}])\p{LC})`;
const CJK = "[一-龥ࠀ-一가-\ud7ff]+";

const GPT2_ROW: PreTokenizer = { patterns: [GPT2_TEXT] };
const DIGITS_ROW: PreTokenizer = { patterns: [String.raw`\p{N}`, GPT2_TEXT] };
const QWEN2_ROW: PreTokenizer = { patterns: [QWEN2] };
const LLAMA3_ROW: PreTokenizer = { patterns: [LLAMA3], ignoreMerges: true, addBos: true };
const CL100K_ROW: PreTokenizer = { patterns: [LLAMA3] };
const DEEPSEEK3_ROW: PreTokenizer = { patterns: DEEPSEEK3 };
const GPT4O_ROW: PreTokenizer = { patterns: [o200k("{1,3}", `${CONTRACTION}?`)] };
const BLOOM_ROW: PreTokenizer = { patterns: [BLOOM] };
const FALCON_PUNCTUATION = "[\\p{P}\\$\\+<=>\\^~\\|`]+";

/** Names of which each stands for the same row. */
const SHARED: readonly (readonly [PreTokenizer, string])[] = [
  [
    GPT2_ROW,
    "gpt-2 phi-2 mpt olmo jais trillion granite-docling jina-es jina-de jina-v2-es " +
    "jina-v2-de jina-v2-code jina-v1-en roberta-bpe exaone4",
  ],
  [DIGITS_ROW, "smollm starcoder refact command-r codeshell exaone minerva minerva-7b"],
  [LLAMA3_ROW, "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2"],
  [CL100K_ROW, "dbrx smaug-bpe glm4 chatglm-bpe"],
  [QWEN2_ROW, "qwen2 deepseek-r1-qwen megrez stablelm2 hunyuan grok-2 solar-open"],
  [DEEPSEEK3_ROW, "deepseek-v3 deepseek3-llm hunyuan-dense"],
  [BLOOM_ROW, "bloom gpt3-finnish poro-chat"],
  [GPT4O_ROW, "gpt-4o llama4 minimax-m2"],
];

/** The rows, by the name that a GGUF file writes. */
export const PRE_TOKENIZERS: ReadonlyMap<string, PreTokenizer> = new Map<string, PreTokenizer>([
  ...SHARED.flatMap(([row, names]) => names.split(" ").map((name) => [name, row] as const)),
  ["default", {
    patterns: [
      FALCON_PUNCTUATION.replace("`", ""),
      GPT2_TEXT,
      String.raw`\p{N}+`,
      "[0-9][0-9][0-9]",
    ],
  }],
  ["qwen35", { patterns: [cl100k("", String.raw`\p{L}\p{M}`, String.raw`\p{L}\p{M}`)] }],
  ["seed-coder", {
    patterns: [
      String.raw`${CONTRACTION}|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}\r\n]+|${TAIL}`,
    ],
  }],
  ["bailingmoe", {
    patterns: [
      String.raw`${CONTRACTION}|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*` +
      String.raw`|\s*[\r\n]|\s+(?!\S)|\s+`,
    ],
  }],
  ["deepseek-llm", {
    patterns: [
      "[\\r\\n]",
      `\\s?${CASED_LETTER}+`,
      "\\s?[!-/:-~！-／：-～‘-‟　-。]+",
      "\\s+$",
      CJK,
      "\\p{N}+",
    ],
  }],
  ["deepseek-coder", { patterns: ["[\\r\\n]", "\\s?\\p{L}+", "\\s?\\p{P}+", CJK, "\\p{N}"] }],
  ["falcon", { patterns: [FALCON_PUNCTUATION, GPT2_TEXT, "[0-9][0-9][0-9]"] }],
  ["viking", { patterns: [BLOOM, String.raw`\p{N}`] }],
  ["tekken", { patterns: [o200k("", "")], ignoreMerges: true, addBos: true }],
  ["kimi-k2", {
    patterns: [
      String.raw`\p{Script=Han}+|` +
      o200k("{1,3}", `${CONTRACTION}?`, String.raw`(?!\p{Script=Han})`),
    ],
  }],
  ["superbpe", { patterns: [String.raw`\p{N}+`, String.raw`(?=(?:\d{3})+(?!\d))`] }],
]);

/** A pattern of the table as a regular expression that is ready for `matchAll` and `exec` loops. */
export function compilePattern(pattern: string): RegExp {
  return new RegExp(
    pattern.replaceAll("\\s", "\\p{White_Space}").replaceAll("\\S", "\\P{White_Space}"),
    "gu",
  );
}

/**
 * Cuts text into words and hands each to `visit`, in order. Matches and the stretches between them
 * are both words; an empty match (a pattern that only looks ahead) cuts without taking anything.
 */
export function splitWords(
  text: string,
  { patterns, visit, from = 0 }: {
    readonly patterns: readonly RegExp[];
    readonly visit: (word: string) => void;
    readonly from?: number | undefined;
  },
): void {
  if (from === patterns.length) {
    visit(text);
    return;
  }
  let start = 0;
  for (const match of text.matchAll(patterns[from])) {
    if (match.index > start) {
      splitWords(text.slice(start, match.index), { patterns, visit, from: from + 1 });
    }
    if (match[0].length > 0) splitWords(match[0], { patterns, visit, from: from + 1 });
    start = match.index + match[0].length;
  }
  if (start < text.length) splitWords(text.slice(start), { patterns, visit, from: from + 1 });
}
