// Random small tokenizer.json documents: every model, normalizer and pre-tokenizer that is built, with added tokens of
// all manners, over an alphabet of the characters that tokenizers differ about.

import { BYTE_CHARS, bytesOfByteLevelText } from "../../../engine/text/byte_level.ts";
import type { Draw } from "../../support/draw.ts";

/** Characters of texts and vocabularies. */
const CHARS: readonly string[] = [
  ..."abcABx12 .,'-_▁éßΣσ中👋\n\t\0",
  "e\u0301",
  "\u00a0",
  "\u0085",
  "\ufeff",
  "\u200d",
  "ﬁ",
  "Ａ",
  "  ",
  "İ",
];
const pickOf = (draw: Draw) => <T>(items: readonly T[]): T => items[draw(items.length)]!;

/** A text of the alphabet and of `words`. */
export function randomText(draw: Draw, words: readonly string[] = []): string {
  const pick = pickOf(draw);
  const length = draw(8) === 0 ? draw(120) : draw(16);
  return Array.from(
    { length },
    () => words.length > 0 && draw(4) === 0 ? pick(words) : pick(CHARS),
  ).join("");
}

/** Characters whose kind is the same in every version of Unicode since 8, which some references stay at. */
const RANGES: readonly (readonly [number, number])[] = [
  [0x20, 0x7e],
  [0x20, 0x7e],
  [0, 0x1f],
  [0xa0, 0x17f],
  [0x300, 0x36f],
  [0x370, 0x52f],
  [0x591, 0x5f4],
  [0x620, 0x6ff],
  [0x900, 0x963],
  [0xe01, 0xe5b],
  [0x1100, 0x11ff],
  [0x2000, 0x206f],
  [0x2190, 0x23f3],
  [0x2600, 0x27bf],
  [0x3041, 0x30ff],
  [0x4e00, 0x9fcc],
  [0xac00, 0xd7a3],
  [0xe000, 0xe0ff],
  [0xfb00, 0xfb06],
  [0xfdd0, 0xfdef],
  [0xff01, 0xffee],
  [0x1d400, 0x1d7ff],
  [0x1f300, 0x1f64f],
  [0x20000, 0x2a6d6],
];
const WORDS: readonly string[] = [
  ...[
    "▁",
    "▁▁",
    "▁▁▁▁",
    "\0",
    "\0\0",
    " ",
    "  ",
    "    ",
    "\n",
    "\r\n",
    "\n\n\n",
    "\t",
    "the",
    " The",
  ],
  ...["don't", "I'LL", "ing", "▁the", "<s>", "</s>", "<unk>", "<|endoftext|>", "<0x41>", "[MASK]"],
  ...["123", "3.14", "http://", "ﬃ", "e\u0301", "\u200b", "\ufeff", "\u00ad", "ſ", "İ", "ά", "👩‍👩‍👧"],
];

/** A text of characters from all over Unicode, and of words that tokenizers treat apart. */
export function randomUnicode(draw: Draw): string {
  const length = draw(6) === 0 ? draw(200) : draw(24);
  let [low, high] = RANGES[draw(RANGES.length)]!;
  return Array.from({ length }, () => {
    if (draw(3) === 0) return WORDS[draw(WORDS.length)]!;
    if (draw(4) === 0) [low, high] = RANGES[draw(RANGES.length)]!;
    return String.fromCodePoint(low + draw(high - low + 1));
  }).join("");
}

type Json = Record<string, unknown>;

const PATTERNS: readonly Json[] = [
  { String: " " },
  { String: "a" },
  { String: "▁" },
  { Regex: "\\s+" },
  { Regex: "\\p{L}+" },
  { Regex: "[0-9]" },
  { Regex: "\\w+|[^\\w\\s]+" },
  { Regex: "b*" },
  { Regex: "'s|a|\\s+(?!\\S)|\\s" },
];
/** Where a normalizer replaces nothing by something the reference loses its place, and panics. */
const FULL_PATTERNS = PATTERNS.filter(({ Regex }) => Regex !== "b*");
const BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"];

function randomNormalizer(draw: Draw, depth = 1): Json {
  const pick = pickOf(draw);
  const rows: readonly (() => Json)[] = [
    () => ({ type: "Lowercase" }),
    () => ({ type: pick(["NFC", "NFD", "NFKC", "NFKD"]) }),
    () => ({ type: "StripAccents" }),
    () => ({ type: "Strip", strip_left: draw(2) === 0, strip_right: draw(2) === 0 }),
    () => ({ type: "Prepend", prepend: pick(["▁", "x"]) }),
    () => ({ type: "Replace", pattern: pick(FULL_PATTERNS), content: pick(["", "▁", "ab"]) }),
    () => ({
      type: "BertNormalizer",
      clean_text: draw(2) === 0,
      handle_chinese_chars: draw(2) === 0,
      strip_accents: pick([null, true, false]),
      lowercase: draw(2) === 0,
    }),
    () => ({
      type: "Sequence",
      normalizers: Array.from({ length: draw(3) }, () => randomNormalizer(draw, depth - 1)),
    }),
  ];
  return rows[draw(depth > 0 ? rows.length : rows.length - 1)]!();
}

function randomPreTokenizer(draw: Draw, depth = 1): Json {
  const pick = pickOf(draw);
  const rows: readonly (() => Json)[] = [
    () => ({ type: "BertPreTokenizer" }),
    () => ({ type: "Whitespace" }),
    () => ({ type: "WhitespaceSplit" }),
    () => ({ type: "Digits", individual_digits: draw(2) === 0 }),
    () => ({ type: "Punctuation", behavior: pick(BEHAVIORS) }),
    () => ({
      type: "Metaspace",
      replacement: "▁",
      prepend_scheme: pick(["always", "first", "never"]),
      split: draw(2) === 0,
    }),
    () => ({
      type: "Split",
      pattern: pick(PATTERNS),
      behavior: pick(BEHAVIORS),
      invert: draw(2) === 0,
    }),
    () => ({
      type: "Sequence",
      pretokenizers: Array.from({ length: 1 + draw(2) }, () => randomPreTokenizer(draw, depth - 1)),
    }),
  ];
  return rows[draw(depth > 0 ? rows.length : rows.length - 1)]!();
}

/** Tokens that merge from two others, in order. */
function randomMerges(draw: Draw, chars: readonly string[]): [string, string][] {
  const tokens = [...chars];
  const merges: [string, string][] = [];
  for (let i = draw(30); i > 0; i--) {
    const [left, right] = [tokens[draw(tokens.length)]!, tokens[draw(tokens.length)]!];
    if (tokens.includes(left + right)) continue;
    tokens.push(left + right);
    merges.push([left, right]);
  }
  return merges;
}

function idsOf(texts: Iterable<string>): Record<string, number> {
  const ids: Record<string, number> = Object.create(null);
  let next = 0;
  for (const text of texts) if (!(text in ids)) ids[text] = next++;
  return ids;
}

const UNK = "<unk>";

function randomBpe(draw: Draw): Json {
  const chars = CHARS.flatMap((text) => [...text]).filter(() => draw(5) > 0);
  const merges = randomMerges(draw, chars);
  const byteFallback = draw(2) === 0;
  const bytes = byteFallback
    ? Array.from({ length: 256 }, (_, i) => `<0x${i.toString(16).toUpperCase().padStart(2, "0")}>`)
    : [];
  const hasUnknown = draw(4) > 0;
  return {
    type: "BPE",
    dropout: null,
    unk_token: hasUnknown ? UNK : null,
    fuse_unk: draw(2) === 0,
    byte_fallback: byteFallback,
    ignore_merges: false,
    vocab: idsOf([UNK, ...bytes, ...chars, ...merges.map((pair) => pair.join(""))]),
    merges,
  };
}

function randomByteBpe(draw: Draw): Json {
  const merges = randomMerges(draw, [..."abcABx12.,", "Ġ", "Ċ", "Ã", "©"]);
  return {
    type: "BPE",
    dropout: null,
    unk_token: null,
    fuse_unk: false,
    byte_fallback: false,
    ignore_merges: draw(2) === 0,
    vocab: idsOf([UNK, ...BYTE_CHARS, ...merges.map((pair) => pair.join(""))]),
    merges,
  };
}

function randomPieces(draw: Draw, count: number): string[] {
  return Array.from(
    { length: count },
    () => Array.from({ length: 1 + draw(3) }, () => pickOf(draw)(CHARS)).join(""),
  );
}

function randomWordPiece(draw: Draw): Json {
  const pieces = randomPieces(draw, 20 + draw(30));
  return {
    type: "WordPiece",
    unk_token: UNK,
    continuing_subword_prefix: "##",
    max_input_chars_per_word: [100, 5][draw(2)],
    vocab: idsOf([UNK, ...pieces, ...pieces.map((piece) => "##" + piece), ..."abc", "##a", "##b"]),
  };
}

/** Few different scores, so that many cuts tie. */
function randomUnigram(draw: Draw): Json {
  const pieces = [...new Set([UNK, ..."abcx▁", ...randomPieces(draw, 20 + draw(30))])];
  return {
    type: "Unigram",
    unk_id: 0,
    byte_fallback: false,
    vocab: pieces.map((text) => [text, -[1, 2, 2.5, 3.3, 0.1, 7][draw(6)]!]),
  };
}

function randomWordLevel(draw: Draw): Json {
  return { type: "WordLevel", unk_token: UNK, vocab: idsOf([UNK, ...randomPieces(draw, 40)]) };
}

/** Added tokens: what the vocabulary has keeps its id and is no control token, the others follow it. */
function randomAdded(draw: Draw, ids: ReadonlyMap<string, number>): Json[] {
  const contents = new Set(
    Array.from(
      { length: draw(5) },
      () =>
        pickOf(draw)([
          "<s>",
          "<S>",
          "ab",
          "Ab",
          " x",
          "é",
          "x ",
          "A",
          "▁a",
          "[M]",
          "ﬁ",
          "<s>a",
          "12",
        ]),
    ),
  );
  const flag = () => draw(3) === 0;
  let next = ids.size;
  return [...contents].map((content) => ({
    id: ids.get(content) ?? next++,
    content,
    special: draw(2) === 0 && !ids.has(content),
    normalized: draw(2) === 0,
    single_word: flag(),
    lstrip: flag(),
    rstrip: flag(),
  }));
}

/** A document, and texts to encode with it. */
export interface TokenizerCase {
  readonly document: Json;
  readonly texts: readonly string[];
}

/** A tokenizer and texts. */
export function randomTokenizer(draw: Draw): TokenizerCase {
  const kind = draw(5);
  const isByteLevel = kind === 0;
  const model = [randomByteBpe, randomBpe, randomWordPiece, randomUnigram, randomWordLevel][kind]!(
    draw,
  );
  const vocab = model.vocab as Record<string, number> | [string, number][];
  const ids = new Map(
    Array.isArray(vocab) ? vocab.map(([text], id) => [text, id] as const) : Object.entries(vocab),
  );
  const words = [...ids.keys()];
  const byteLevel = {
    type: "ByteLevel",
    add_prefix_space: draw(2) === 0,
    trim_offsets: true,
    use_regex: draw(2) === 0,
  };
  const first = randomPreTokenizer(draw);
  const added = randomAdded(draw, ids);
  const shown = isByteLevel ? words.map((word) => decodeBytes(word)) : words;
  const texts = Array.from(
    { length: 8 },
    () => randomText(draw, [...shown, ...added.map(({ content }) => content as string)]),
  );
  const document = {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: added,
    normalizer: draw(3) > 0 ? randomNormalizer(draw) : null,
    pre_tokenizer: isByteLevel
      ? draw(2) === 0 ? byteLevel : { type: "Sequence", pretokenizers: [first, byteLevel] }
      : draw(4) > 0
      ? first
      : null,
    post_processor: null,
    decoder: null,
    model,
  };
  return { document, texts };
}

function decodeBytes(word: string): string {
  return [...word].every((char) => BYTE_CHARS.includes(char))
    ? new TextDecoder().decode(bytesOfByteLevelText(word))
    : word;
}
