// Forward maximum matching, Inferflow's `fmm` and `fmm2` [IF-8]: at each place the longest token whose bytes
// stand there; a byte that no token begins with is skipped. (`fmm2` is to ignore blanks, which no published
// version does; both names mean this.) It works on any vocabulary, whatever file it came from.
//
// The tokens are sorted by their bytes, and the tokens that begin alike are a range of that list: matching
// narrows the range byte by byte with a binary search, which needs no trie and no memory beyond the list.

import { assembleTokenizer } from "./assemble.ts";
import { BLANK_MARK } from "./char_bpe.ts";
import type { Tokenizer } from "./tokenizer_types.ts";
import { createVocabulary, TOKEN_KIND } from "./vocabulary/vocabulary.ts";

interface Match {
  /** -1 where nothing matches. */
  readonly id: number;
  readonly length: number;
}

const UTF8 = new TextEncoder();

/** A tokenizer over the vocabulary of another one; control tokens, BOS and decoding stay as they are. */
export function createMaximumMatching(base: Tokenizer): Tokenizer {
  const texts = Array.from({ length: base.vocabSize }, (_, id) => base.tokenText(id));
  const kinds = Uint8Array.from(
    texts,
    (_, id) => base.isSpecial(id) ? TOKEN_KIND.control : TOKEN_KIND.normal,
  );
  const match = createMatcher(base, texts);
  return assembleTokenizer({
    vocabulary: createVocabulary(texts, kinds),
    algorithm: "maximum_matching",
    bosId: base.bosId,
    eosId: base.eosId,
    unkId: base.unkId,
    padId: base.padId,
    endOfGenerationIds: base.endOfGenerationIds,
    prefix: base.prefixIds,
    suffix: base.suffixIds,
    leadingBlanks: base.leadingBlanks,
    warnings: base.warnings,
    encodeStretch(text, _isFirst, out) {
      const bytes = UTF8.encode(text);
      for (let at = 0; at < bytes.length;) {
        const { id, length } = match(bytes, at);
        if (id >= 0) out.push(id);
        at += Math.max(1, length);
      }
    },
    bytesOf: base.tokenBytes,
  });
}

/** A blank in front that the token's own text does not have comes from the decoder. */
function ownBytes(base: Tokenizer, id: number, text: string): Uint8Array {
  const bytes = base.tokenBytes(id);
  const isAdded = bytes[0] === 0x20 && ![" ", BLANK_MARK, "Ġ"].includes(text[0]);
  return isAdded ? UTF8.encode(text) : bytes;
}

function createMatcher(
  base: Tokenizer,
  texts: readonly string[],
): (bytes: Uint8Array, at: number) => Match {
  const tokens = texts
    .map((text, id) => ({ id, bytes: ownBytes(base, id, text) }))
    .filter(({ id, bytes }) => bytes.length > 0 && !base.isSpecial(id))
    .sort((a, b) => compareBytes(a.bytes, b.bytes) || a.id - b.id);

  /** First token in a range whose byte at `depth` is `byte` or above. */
  function lowerBound(
    low: number,
    { high, depth, byte }: { readonly high: number; readonly depth: number; readonly byte: number },
  ): number {
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (tokens[middle].bytes[depth] < byte) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  return (bytes, at) => {
    let low = 0;
    let high = tokens.length;
    let best: Match = { id: -1, length: 0 };
    for (let depth = 0; at + depth < bytes.length; depth++) {
      const byte = bytes[at + depth];
      // Tokens that end here come first in the range and have been taken.
      while (low < high && tokens[low].bytes.length === depth) low++;
      low = lowerBound(low, { high, depth, byte });
      high = lowerBound(low, { high, depth, byte: byte + 1 });
      if (low === high) break;
      if (tokens[low].bytes.length === depth + 1) best = { id: tokens[low].id, length: depth + 1 };
    }
    return best;
  };
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) if (a[i] !== b[i]) return a[i] - b[i];
  return a.length - b.length;
}
