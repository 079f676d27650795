// Byte-level BPE (GPT-2 and its heirs): text is cut into words by patterns, a word's UTF-8 bytes are
// its first symbols, and merges with ranks join them. Bytes that the vocabulary has no token for
// encode to nothing, as in the reference implementations; the builders warn about such vocabularies.

import { BYTE_CHARS, bytesOfByteLevelText } from "./byte_level.ts";
import { createMerger, type Merge } from "./merge_bpe.ts";
import { splitWords } from "./pre_tokenizers.ts";
import type { TextIndex } from "./vocabulary/text_index.ts";
import { TOKEN_KIND, type Vocabulary } from "./vocabulary/vocabulary.ts";
import { rememberWords } from "./word_cache.ts";

/** Ranks of merges, by the two texts joined with a separator. */
export interface MergeTable {
  readonly ranks: TextIndex;
  /** What stands between the two texts of a key. */
  readonly separator: string;
}

/** What merging two texts gives, if they merge. */
export type TextMerge = (left: string, right: string) => Merge | undefined;

/** Merges by rank in a list. */
export function mergeByRank({ ids, kinds }: Vocabulary, merges: MergeTable): TextMerge {
  return (left, right) => {
    const rank = merges.ranks.get(left + merges.separator + right);
    if (rank === undefined) return undefined;
    const id = ids.get(left + right);
    return id === undefined || kinds[id] === TOKEN_KIND.control ? undefined : { rank, id };
  };
}

/** What a byte-level BPE is made of. */
export interface ByteBpeOptions {
  readonly vocabulary: Vocabulary;
  readonly merges: MergeTable;
  readonly patterns: readonly RegExp[];
  /** A word that is a token as a whole is taken without merging. */
  readonly ignoreMerges?: boolean;
  /** Id for bytes without a token; without it they encode to nothing. */
  readonly unkId?: number | undefined;
  /** Text at the end of a word's last symbol (CLIP's `</w>`). */
  readonly wordSuffix?: string;
}

const UTF8 = new TextEncoder();

/** Bytes (0 to 255) that no token stands for. */
export function missingBytes({ ids }: Vocabulary): number[] {
  return BYTE_CHARS.flatMap((char, byte) => ids.get(char) === undefined ? [byte] : []);
}

/** Makes the encoder of ordinary text. */
export function createByteBpe(options: ByteBpeOptions): (text: string, out: number[]) => void {
  const { vocabulary, merges, patterns, unkId, wordSuffix = "" } = options;
  const { texts, kinds, ids } = vocabulary;
  // A byte without a token gets a negative symbol, from which its text can be told.
  const symbolOfByte = Int32Array.from(BYTE_CHARS, (char, byte) => ids.get(char) ?? -1 - byte);
  const lastSymbolOfByte = wordSuffix === "" ? symbolOfByte : Int32Array.from(
    BYTE_CHARS,
    (char, byte) => ids.get(char + wordSuffix) ?? -257 - byte,
  );
  const losesBytes = unkId === undefined && symbolOfByte.some((symbol) => symbol < 0);
  const textOf = (symbol: number) =>
    symbol >= 0
      ? texts.get(symbol)!
      : symbol >= -256
      ? BYTE_CHARS[-1 - symbol]
      : BYTE_CHARS[-257 - symbol] + wordSuffix;

  const mergeTexts = mergeByRank(vocabulary, merges);
  const merge = createMerger((left, right) => mergeTexts(textOf(left), textOf(right)));

  function encodeWord(word: string): number[] {
    const bytes = UTF8.encode(word);
    let symbols = Int32Array.from(bytes, (byte) => symbolOfByte[byte]);
    if (wordSuffix !== "") symbols[bytes.length - 1] = lastSymbolOfByte[bytes[bytes.length - 1]];
    // What encodes to nothing is gone before the merges: they reach over it.
    if (losesBytes) symbols = symbols.filter((symbol) => symbol >= 0);
    if (options.ignoreMerges) {
      const whole = ids.get(Array.from(bytes, (byte) => BYTE_CHARS[byte]).join(""));
      if (whole !== undefined && kinds[whole] !== TOKEN_KIND.control) return [whole];
    }
    const found: number[] = [];
    for (const symbol of symbols.subarray(0, merge(symbols, symbols.length))) {
      if (symbol >= 0) found.push(symbol);
      else if (unkId !== undefined) found.push(unkId);
    }
    return found;
  }

  const encodeCached = rememberWords(encodeWord);

  return (text, out) =>
    splitWords(text, {
      patterns,
      visit: (word) => {
        for (const id of encodeCached(word)) out.push(id);
      },
    });
}

/** Bytes of a token of a byte-level vocabulary. */
export function byteBpeBytes(vocabulary: Vocabulary, wordSuffix = ""): (id: number) => Uint8Array {
  const { texts, kinds } = vocabulary;
  return (id) => {
    const text = texts.get(id)!;
    if (kinds[id] !== TOKEN_KIND.normal && kinds[id] !== TOKEN_KIND.unused) {
      return UTF8.encode(text);
    }
    const isEnd = wordSuffix !== "" && text.endsWith(wordSuffix);
    return bytesOfByteLevelText(isEnd ? text.slice(0, -wordSuffix.length) + "Ġ" : text);
  };
}
