// SentencePiece's unigram model: of all ways to cut a text into pieces the one with the highest sum
// of scores, found by Viterbi's algorithm over the ends of pieces. Pieces are found in a trie of
// UTF-16 units; the longest piece bounds the work for each place, so time is linear in the text.
// A character that no piece begins with is unknown, at a score below all others (the lowest minus
// 10, as the reference has it), and may fall apart into byte tokens.

import { byteTokenIds, TOKEN_KIND, type Vocabulary } from "./vocabulary/vocabulary.ts";

/** What a unigram model is made of. */
export interface UnigramOptions {
  readonly vocabulary: Vocabulary;
  /** Score of each id: a logarithm of a probability. */
  readonly scores: ArrayLike<number | bigint>;
  readonly unkId: number;
  readonly byteFallback: boolean;
  /**
   * Whether sums are rounded to 32 bits at every step, by which SentencePiece decides between equal cuts. The readers of
   * tokenizer.json (Hugging Face's unigram/model.rs) and of GGUF (llama.cpp since May 2025) add 64 bits, as ours do.
   */
  readonly isSingle?: boolean;
}

interface TrieNode {
  next?: Map<number, TrieNode>;
  id: number;
}

function buildTrie({ texts: list, kinds, ids }: Vocabulary): TrieNode {
  const texts = list.all();
  const root: TrieNode = { id: -1 };
  for (let id = 0; id < texts.length; id++) {
    const isText = kinds[id] === TOKEN_KIND.normal || kinds[id] === TOKEN_KIND.userDefined ||
      kinds[id] === TOKEN_KIND.unused;
    if (!isText || ids.get(texts[id]) !== id) continue;
    let node = root;
    for (let i = 0; i < texts[id].length; i++) {
      const unit = texts[id].charCodeAt(i);
      node.next ??= new Map();
      let child = node.next.get(unit);
      if (child === undefined) node.next.set(unit, child = { id: -1 });
      node = child;
    }
    node.id = id;
  }
  return root;
}

function unitsOfCharacter(text: string, at: number): number {
  return (text.codePointAt(at) as number) > 0xffff ? 2 : 1;
}

/** Makes the encoder of ordinary text whose blanks are already marked. */
export function createUnigram(options: UnigramOptions): (text: string, out: number[]) => void {
  const { vocabulary, scores, unkId } = options;
  const root = buildTrie(vocabulary);
  const byteIds = byteTokenIds(vocabulary.ids);
  const utf8 = new TextEncoder();
  let lowest = 0;
  for (let id = 0; id < vocabulary.texts.length; id++) {
    if (vocabulary.kinds[id] === TOKEN_KIND.normal) lowest = Math.min(lowest, Number(scores[id]));
  }
  const Sums = options.isSingle ? Float32Array : Float64Array;
  const round = options.isSingle ? Math.fround : Number;
  const unknownScore = round(lowest - 10);

  /** Id of the piece that ends the best cut at each place, and where that piece begins. */
  function bestCut(text: string): { ids: Int32Array; starts: Int32Array } {
    const best = new Sums(text.length + 1).fill(-Infinity);
    const ids = new Int32Array(text.length + 1).fill(-1);
    const starts = new Int32Array(text.length + 1);
    best[0] = 0;
    const offer = (start: number, end: number, id: number, score: number) => {
      const sum = round(best[start] + score);
      if (sum <= best[end]) return;
      best[end] = sum;
      ids[end] = id;
      starts[end] = start;
    };
    for (let start = 0; start < text.length; start += unitsOfCharacter(text, start)) {
      const single = start + unitsOfCharacter(text, start);
      let hasSingle = false;
      let node: TrieNode | undefined = root;
      for (let end = start; end < text.length;) {
        node = node.next?.get(text.charCodeAt(end++));
        if (node === undefined) break;
        if (node.id < 0) continue;
        offer(start, end, node.id, Number(scores[node.id]));
        hasSingle ||= end === single;
      }
      if (!hasSingle) offer(start, single, unkId, unknownScore);
    }
    return { ids, starts };
  }

  return (text, out) => {
    const { ids, starts } = bestCut(text);
    const pieces: { id: number; start: number; end: number }[] = [];
    for (let end = text.length; end > 0; end = starts[end]) {
      pieces.push({ id: ids[end], start: starts[end], end });
    }
    pieces.reverse();
    for (let i = 0; i < pieces.length; i++) {
      const { id, start } = pieces[i];
      if (id !== unkId) {
        out.push(id);
        continue;
      }
      // Unknown characters in a row are one token, or all of them bytes, as in the reference.
      while (pieces[i + 1]?.id === unkId) i++;
      const bytes = options.byteFallback
        ? utf8.encode(text.slice(start, pieces[i].end))
        : undefined;
      if (bytes?.every((byte) => byteIds[byte] >= 0)) {
        for (const byte of bytes) out.push(byteIds[byte]);
      } else out.push(unkId);
    }
  };
}
