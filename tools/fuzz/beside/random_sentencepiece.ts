// Random small SentencePiece models of both kinds, with words added by hand, unused pieces, byte pieces and all
// settings of the normalizer but its map of characters.

import { type Piece, writeSentencePiece } from "../../../tests/support/write_sentencepiece.ts";
import type { Draw } from "../../support/draw.ts";
import { randomText } from "./random_tokenizer.ts";

/** A model file, and texts to encode with it. */
export interface SentencePieceCase {
  /** Base64. */
  readonly model: string;
  readonly texts: readonly string[];
}

const KIND = { normal: 1, unknown: 2, control: 3, userDefined: 4, unused: 5, byte: 6 } as const;
const SCORES: readonly number[] = [-1, -2, -2.5, -3.3, -0.1, -7.7, -1.1];

/** A model and texts. */
export function randomSentencePiece(draw: Draw): SentencePieceCase {
  const isUnigram = draw(2) === 0;
  const hasBytes = draw(2) === 0;
  const texts = new Set<string>([..."abcx▁12", "▁▁"].filter(() => draw(5) > 0));
  for (let i = 10 + draw(40); i > 0; i--) {
    const text = randomText(draw).replaceAll(" ", "▁").replaceAll("\0", "");
    const characters = Array.from(text).slice(0, 1 + draw(4)).join("");
    if (characters !== "") texts.add(characters);
  }
  const pieces: Piece[] = [
    { text: "<unk>", kind: KIND.unknown },
    { text: "<s>", kind: KIND.control },
    { text: "</s>", kind: KIND.control },
  ];
  if (hasBytes) {
    for (let byte = 0; byte < 256; byte++) {
      const text = `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`;
      pieces.push({ text, kind: KIND.byte });
    }
  }
  let rank = 0;
  for (const text of texts) {
    const roll = draw(12);
    // Unused pieces of a BPE model are left out of the reader, which warns of them.
    const kind = roll === 0
      ? KIND.userDefined
      : roll === 1 && isUnigram
      ? KIND.unused
      : KIND.normal;
    pieces.push({ text, kind, score: isUnigram ? SCORES[draw(SCORES.length)]! : -(rank++) });
  }
  const flag = () => draw(2);
  const model = writeSentencePiece(pieces, {
    trainer: { 3: isUnigram ? 1 : 2, 24: draw(4) === 0 ? 1 : 0, 35: hasBytes ? 1 : 0 },
    normalizer: { 3: flag(), 4: flag(), 5: draw(4) > 0 ? 1 : 0 },
  });
  const words = [...texts, "<s>", "<unk>", "<0x41>", "aaaaaaaaaaaaaaaaaaaaaa", "    "];
  return {
    model: model.toBase64(),
    // The reference ends a text at its first NUL, which no binding of it hides.
    texts: Array.from({ length: 8 }, () => randomText(draw, words)),
  };
}
