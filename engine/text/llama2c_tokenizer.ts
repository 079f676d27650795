// The `tokenizer.bin` of llama2.c: the length of the longest token, then for each token a float32 score, a
// length and bytes. It is a SentencePiece BPE with what its exporter changed: marks of blanks became
// blanks, and the texts of BOS (1) and EOS (2) got line ends around them. Ids of bytes begin at 3. There is
// no count; the file ends with the last token.

import { FormatError } from "../errors.ts";
import { BLANK_MARK } from "./char_bpe.ts";
import { createSentencePieceTokenizer } from "./sentencepiece.ts";
import type { Tokenizer } from "./tokenizer_types.ts";
import { byteOfToken, TOKEN_KIND } from "./vocabulary/vocabulary.ts";

const UNK = 0;
const BOS = 1;
const EOS = 2;

/**
 * Builds a tokenizer from a `tokenizer.bin`.
 *
 * @throws {FormatError} If a token runs past the end, is longer than announced, or not UTF-8.
 */
export function tokenizerFromLlama2c(bytes: Uint8Array, file: string): Tokenizer {
  const texts: string[] = [];
  const scores: number[] = [];
  const kinds: number[] = [];
  for (const { text, score } of readTokens(bytes, file)) {
    const id = texts.length;
    kinds.push(kindOf(id, text));
    texts.push(id === BOS || id === EOS ? text.trim() : text.replaceAll(" ", BLANK_MARK));
    scores.push(score);
  }
  if (texts.length <= EOS) throw new FormatError(`holds ${texts.length} tokens`, { file });
  const model = {
    texts,
    scores: Float32Array.from(scores),
    kinds: Uint8Array.from(kinds),
    algorithm: "bpe",
    unkId: UNK,
    bosId: BOS,
    eosId: EOS,
    padId: -1,
    byteFallback: true,
    blankIsSuffix: false,
    addDummyPrefix: true,
    removeExtraBlanks: false,
    escapeBlanks: true,
    charsmap: new Uint8Array(0),
  };
  return createSentencePieceTokenizer(model, file, { addBos: true, addEos: false });
}

function kindOf(id: number, text: string): number {
  if (id === UNK) return TOKEN_KIND.unknown;
  if (id === BOS || id === EOS) return TOKEN_KIND.control;
  return byteOfToken(text) >= 0 ? TOKEN_KIND.byte : TOKEN_KIND.normal;
}

function* readTokens(bytes: Uint8Array, file: string): Generator<{ text: string; score: number }> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  const broken = (message: string, place: string) =>
    new FormatError(message, { file, place, remedy: "The file is damaged: fetch it again" });
  if (bytes.length < 4) throw broken("is cut short", "byte 0");
  const longest = view.getInt32(0, true);
  let pos = 4;
  for (let id = 0; pos < bytes.length; id++) {
    const place = `token ${id}`;
    if (pos + 8 > bytes.length) throw broken("is cut short", place);
    const score = view.getFloat32(pos, true);
    const length = view.getInt32(pos + 4, true);
    pos += 8;
    if (length < 0 || length > longest || pos + length > bytes.length) {
      throw broken(`has a length of ${length}; ${longest} is the longest`, place);
    }
    if (!Number.isFinite(score)) throw broken("its score is no number", place);
    let text: string;
    try {
      text = utf8.decode(bytes.subarray(pos, pos + length));
    } catch {
      throw broken("is not UTF-8", place);
    }
    pos += length;
    yield { text, score };
  }
}
