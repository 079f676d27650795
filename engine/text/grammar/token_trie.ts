// The vocabulary as a tree of bytes, in the order of a walk through it: what lies below a node stands behind it, up to
// `end`, so that a part which no grammar allows is skipped by one number. Made once a tokenizer, when a first answer is
// constrained; control tokens and tokens without bytes are not in it.

import { UnsupportedError } from "../../errors.ts";
import type { Tokenizer } from "../tokenizer_types.ts";

/** Node 0 is the empty text. */
export interface TokenTrie {
  /** Number of ids of the vocabulary. */
  readonly vocabSize: number;
  /** By node, its last byte. */
  readonly byte: Uint8Array;
  /** By node, how many bytes it is long. */
  readonly depth: Uint16Array;
  /** By node, the first node that does not begin with it. */
  readonly end: Int32Array;
  /** By node, a token of exactly these bytes, or -1. */
  readonly token: Int32Array;
  /** By token, another token of the same bytes, or -1. */
  readonly twin: Int32Array;
  /** Bytes of the longest token. */
  readonly deepest: number;
}

const tries = new WeakMap<Tokenizer, TokenTrie>();

/** The tree of a tokenizer. */
export function trieOf(tokenizer: Tokenizer): TokenTrie {
  let trie = tries.get(tokenizer);
  if (!trie) tries.set(tokenizer, trie = build(readTokens(tokenizer)));
  return trie;
}

/** All tokens that text is made of, their bytes one behind the other. */
interface Tokens {
  readonly vocabSize: number;
  readonly bytes: Uint8Array;
  readonly ids: readonly number[];
  /** Where each one's bytes begin; one more entry behind the last. */
  readonly starts: readonly number[];
}

function readTokens(tokenizer: Tokenizer): Tokens {
  const { vocabSize, endOfGenerationIds } = tokenizer;
  tokenizer.readTexts?.();
  let bytes = new Uint8Array(8 * vocabSize);
  const ids: number[] = [];
  const starts = [0];
  let size = 0;
  for (let id = 0; id < vocabSize; id++) {
    if (tokenizer.isSpecial(id) || endOfGenerationIds.has(id)) continue;
    const own = tokenizer.tokenBytes(id);
    if (own.length === 0 || own.length > LONGEST) continue;
    if (size + own.length > bytes.length) {
      const larger = new Uint8Array(2 * bytes.length + own.length);
      larger.set(bytes);
      bytes = larger;
    }
    bytes.set(own, size);
    starts.push(size += own.length);
    ids.push(id);
  }
  return { vocabSize, bytes, ids, starts };
}

/** Longest token that is in the tree. */
const LONGEST = 0xffff;
/** Bytes of a token that are compared at once, as digits of base 257, 0 behind its end: with the token's place a number. */
const AT_ONCE = 4;
const PLACES = 2 ** 20;

// Sorts places of tokens, all alike in their first bytes, by the rest of their bytes.
function sort(places: Float64Array, { bytes, starts }: Tokens, alike: number): void {
  for (let i = 0; i < places.length; i++) {
    const place = places[i]!;
    const end = starts[place + 1]!;
    let key = 0;
    for (let at = starts[place]! + alike, k = 0; k < AT_ONCE; k++, at++) {
      key = 257 * key + (at < end ? bytes[at]! + 1 : 0);
    }
    places[i] = key * PLACES + place;
  }
  places.sort();
  for (let i = 0; i < places.length;) {
    const key = Math.floor(places[i]! / PLACES);
    const first = i;
    for (; i < places.length && Math.floor(places[i]! / PLACES) === key; i++) {
      places[i] = places[i]! - key * PLACES;
    }
    if (i - first > 1 && key % 257 !== 0) {
      sort(places.subarray(first, i), { bytes, starts } as Tokens, alike + AT_ONCE);
    }
  }
}

function build(tokens: Tokens): TokenTrie {
  const { vocabSize, bytes, ids, starts } = tokens;
  const places = Float64Array.from(ids, (_, place) => place);
  if (places.length >= PLACES) {
    throw new UnsupportedError(`more than ${PLACES} tokens are not read`);
  }
  sort(places, tokens, 0);
  const most = starts.at(-1)! + 1;
  const trie = {
    byte: new Uint8Array(most),
    depth: new Uint16Array(most),
    end: new Int32Array(most),
    token: new Int32Array(most).fill(-1),
    twin: new Int32Array(vocabSize).fill(-1),
  };
  const path = [0]; // nodes of the token before, by depth
  let size = 1;
  for (const place of places) {
    const start = starts[place]!;
    const length = starts[place + 1]! - start;
    let alike = 0;
    while (
      alike < length && alike < path.length - 1 &&
      trie.byte[path[alike + 1]!] === bytes[start + alike]
    ) alike++;
    while (path.length > alike + 1) trie.end[path.pop()!] = size;
    for (let at = alike; at < length; at++) {
      trie.byte[size] = bytes[start + at]!;
      trie.depth[size] = at + 1;
      path.push(size++);
    }
    const node = path.at(-1)!;
    trie.twin[ids[place]!] = trie.token[node]!;
    trie.token[node] = ids[place]!;
  }
  for (const node of path) trie.end[node] = size;
  const depth = trie.depth.slice(0, size);
  return {
    vocabSize,
    byte: trie.byte.slice(0, size),
    depth,
    end: trie.end.slice(0, size),
    token: trie.token.slice(0, size),
    twin: trie.twin,
    deepest: depth.reduce((most, one) => Math.max(most, one), 0),
  };
}
