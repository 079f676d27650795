// Which tokens one scanner allows from one state, without what is around it: most of the answer to "which tokens may
// follow" does not depend on that (Dong et al. 2024, XGrammar), so it is found once for a state and kept. Where the
// scanner's text ends within a token, the rest of the token is for what stands around: those nodes of the tree are
// listed, and few.

import { type Automaton, DEAD } from "./automaton.ts";
import type { Bounds } from "./bounds.ts";
import type { Leaf } from "./expression.ts";
import { withinBounds } from "./reader.ts";
import type { TokenTrie } from "./token_trie.ts";

/** Tokens by bit, and where in the tree the scanner's text may end. */
export interface LeafMask {
  /** Tokens that stay within the scanner, or end where it ends. */
  readonly tokens: Uint32Array;
  /** Nodes where its text may end. */
  readonly exits: readonly number[];
  /** By exit, the state there. */
  readonly exitStates: readonly number[];
  /** By exit, characters counted up to there. */
  readonly exitCounts: readonly number[];
  /** Nodes of the tokens, with the state behind each and the characters counted up to there. */
  readonly nodes: Int32Array;
  readonly states: Int32Array;
  readonly counts: Uint16Array;
  /** Tokens that fit into bounds, by the number of characters before; of free text, by those left. */
  readonly bounded: WeakMap<Bounds, Map<number, Uint32Array>>;
  readonly upTo: Map<number, Uint32Array>;
}

const masks = new WeakMap<TokenTrie, WeakMap<Automaton, Map<number, LeafMask>>>();

/** The mask of a scanner in a state. */
export function leafMask(
  trie: TokenTrie,
  { automaton, state }: { readonly automaton: Automaton; readonly state: number },
): LeafMask {
  let byAutomaton = masks.get(trie);
  if (!byAutomaton) masks.set(trie, byAutomaton = new WeakMap());
  let byState = byAutomaton.get(automaton);
  if (!byState) byAutomaton.set(automaton, byState = new Map());
  let mask = byState.get(state);
  if (!mask) byState.set(state, mask = createLeafMask(trie, automaton, state));
  return mask;
}

/** Sets the bits of all tokens of a node. */
export function setTokens(
  tokens: Uint32Array,
  { trie, node }: { readonly trie: TokenTrie; readonly node: number },
): void {
  for (let id = trie.token[node]!; id >= 0; id = trie.twin[id]!) tokens[id >> 5]! |= 1 << (id & 31);
}

/** Words of a mask of a vocabulary. */
export function wordsOf({ vocabSize }: TokenTrie): number {
  return vocabSize + 31 >> 5;
}

/**
 * The tokens of a mask that fit into the bounds of its scanner, behind so many characters.
 *
 * @returns A mask of its own, kept: not to be changed.
 */
export function boundedTokens(
  mask: LeafMask,
  { trie, leaf, count }: { readonly trie: TokenTrie; readonly leaf: Leaf; readonly count: number },
): Uint32Array {
  const bounds = leaf.bounds!;
  if (bounds.isFree && count >= bounds.min) {
    return tokensUpTo(mask, { trie, leaf, left: bounds.max - count });
  }
  let known = mask.bounded.get(bounds);
  if (!known) mask.bounded.set(bounds, known = new Map());
  return cached(known, count, () => {
    const tokens = new Uint32Array(mask.tokens.length);
    for (const [i, node] of mask.nodes.entries()) {
      if (withinBounds({ leaf, state: mask.states[i]!, count: count + mask.counts[i]! })) {
        setTokens(tokens, { trie, node });
      }
    }
    return tokens;
  });
}

function tokensUpTo(
  mask: LeafMask,
  { trie, leaf: { automaton }, left }: { trie: TokenTrie; leaf: Leaf; left: number },
): Uint32Array {
  if (left > trie.deepest) return mask.tokens;
  return cached(mask.upTo, left, () => {
    const tokens = new Uint32Array(mask.tokens.length);
    for (const [i, node] of mask.nodes.entries()) {
      if (mask.counts[i]! + begun(automaton, mask.states[i]!) <= left) {
        setTokens(tokens, { trie, node });
      }
    }
    return tokens;
  });
}

/** Most masks that are kept for the bounds of one scanner. */
const MOST_KEPT = 64;

function cached(
  known: Map<number, Uint32Array>,
  key: number,
  make: () => Uint32Array,
): Uint32Array {
  let tokens = known.get(key);
  if (!tokens) {
    if (known.size >= MOST_KEPT) known.clear();
    known.set(key, tokens = make());
  }
  return tokens;
}

function createLeafMask(trie: TokenTrie, automaton: Automaton, start: number): LeafMask {
  const { byte, depth, end, token } = trie;
  const tokens = new Uint32Array(wordsOf(trie));
  const exits: number[] = [];
  const exitStates: number[] = [];
  const exitCounts: number[] = [];
  const nodes = new Int32Array(byte.length);
  const ends = new Int32Array(byte.length);
  const lengths = new Uint16Array(byte.length);
  const states = new Int32Array(trie.deepest + 1);
  const counts = new Int32Array(trie.deepest + 1);
  let size = 0;
  states[0] = start;
  for (let node = 1; node < byte.length;) {
    const at = depth[node]!;
    const state = automaton.next(states[at - 1]!, byte[node]!);
    if (state === DEAD) {
      node = end[node]!;
      continue;
    }
    states[at] = state;
    counts[at] = counts[at - 1]! + (automaton.counts(state) ? 1 : 0);
    if (automaton.accepts(state)) {
      exits.push(node);
      exitStates.push(state);
      exitCounts.push(counts[at]!);
    }
    if (token[node]! >= 0) {
      setTokens(tokens, { trie, node });
      nodes[size] = node;
      ends[size] = state;
      lengths[size++] = counts[at]!;
    }
    node++;
  }
  return {
    ...{ tokens, exits, exitStates, exitCounts },
    nodes: nodes.slice(0, size),
    states: ends.slice(0, size),
    counts: lengths.slice(0, size),
    bounded: new WeakMap(),
    upTo: new Map(),
  };
}

// Whether a character is begun and not complete.
function begun(automaton: Automaton, state: number): number {
  if (automaton.counts(state) || automaton.accepts(state)) return 0;
  return automaton.ahead(state).some(({ more }) => more === 0) ? 0 : 1;
}
