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
  /** Found when bounds first matter. */
  lengths: Lengths | undefined;
  /** Tokens that fit into bounds, by the number of characters before. */
  readonly bounded: WeakMap<Bounds, Map<number, Uint32Array>>;
}

/** How many characters tokens have. */
interface Lengths {
  /** Nodes of the tokens, with the state behind each and the characters counted up to there. */
  readonly nodes: Int32Array;
  readonly states: Int32Array;
  readonly counts: Uint16Array;
  /** By number of characters, the tokens that have no more, one that is begun counted as whole. */
  upTo: Uint32Array[] | undefined;
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
  { trie, leaf, state, count }: {
    readonly trie: TokenTrie;
    readonly leaf: Leaf;
    readonly state: number;
    readonly count: number;
  },
): Uint32Array {
  const { automaton } = leaf;
  const bounds = leaf.bounds!;
  const lengths = mask.lengths ??= measure(trie, automaton, state);
  const inLength = bounds.isFree ? withinLength() : undefined;
  if (inLength && count >= bounds.min) return inLength;
  let known = mask.bounded.get(bounds);
  if (!known) mask.bounded.set(bounds, known = new Map());
  let tokens = known.get(count);
  if (!tokens) {
    if (known.size >= MOST_KEPT) known.clear();
    known.set(count, tokens = inLength?.slice() ?? new Uint32Array(mask.tokens.length));
    if (inLength) clearShort(tokens);
    for (const [i, node] of inLength ? [] : lengths.nodes.entries()) {
      const at = { leaf, state: lengths.states[i]!, count: count + lengths.counts[i]! };
      if (withinBounds(at)) setTokens(tokens, { trie, node });
    }
  }
  return tokens;

  function withinLength(): Uint32Array {
    lengths.upTo ??= tokensByLength(trie, automaton, lengths);
    return lengths.upTo[bounds.max - count] ?? mask.tokens;
  }

  // Too short a text goes on.
  function clearShort(tokens: Uint32Array): void {
    for (const [i, node] of mask.exits.entries()) {
      if (count + mask.exitCounts[i]! < bounds.min) clearTokens(tokens, { trie, node });
    }
  }
}

/** Clears the bits of all tokens of a node. */
export function clearTokens(
  tokens: Uint32Array,
  { trie, node }: { readonly trie: TokenTrie; readonly node: number },
): void {
  for (let id = trie.token[node]!; id >= 0; id = trie.twin[id]!) {
    tokens[id >> 5]! &= ~(1 << (id & 31));
  }
}

/** Most masks that are kept for the bounds of one scanner. */
const MOST_KEPT = 64;

// Each has what the one before has; the longest tokens are few.
function tokensByLength(trie: TokenTrie, automaton: Automaton, lengths: Lengths): Uint32Array[] {
  const { nodes, states, counts } = lengths;
  const byLength: number[][] = [];
  for (const [i, node] of nodes.entries()) {
    const length = counts[i]! + begun(automaton, states[i]!);
    (byLength[length] ??= []).push(node);
  }
  let tokens = new Uint32Array(wordsOf(trie));
  return Array.from(byLength, (own = []) => {
    tokens = tokens.slice();
    for (const node of own) setTokens(tokens, { trie, node });
    return tokens;
  });
}

function createLeafMask(trie: TokenTrie, automaton: Automaton, start: number): LeafMask {
  const tokens = new Uint32Array(wordsOf(trie));
  const exits: number[] = [];
  const exitStates: number[] = [];
  const exitCounts: number[] = [];
  walk(trie, { automaton, start }, (node, state, count) => {
    if (automaton.accepts(state)) {
      exits.push(node);
      exitStates.push(state);
      exitCounts.push(count);
    }
    if (trie.token[node]! >= 0) setTokens(tokens, { trie, node });
  });
  return { tokens, exits, exitStates, exitCounts, lengths: undefined, bounded: new WeakMap() };
}

function measure(trie: TokenTrie, automaton: Automaton, start: number): Lengths {
  const nodes: number[] = [];
  const states: number[] = [];
  const counts: number[] = [];
  walk(trie, { automaton, start }, (node, state, count) => {
    if (trie.token[node]! < 0) return;
    nodes.push(node);
    states.push(state);
    counts.push(count);
  });
  return {
    nodes: Int32Array.from(nodes),
    states: Int32Array.from(states),
    counts: Uint16Array.from(counts),
    upTo: undefined,
  };
}

// All nodes that a scanner allows, in the order of the tree.
function walk(
  trie: TokenTrie,
  { automaton, start }: { readonly automaton: Automaton; readonly start: number },
  visit: (node: number, state: number, count: number) => void,
): void {
  const { byte, depth, end } = trie;
  const states = new Int32Array(trie.deepest + 1);
  const counts = new Int32Array(trie.deepest + 1);
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
    visit(node++, state, counts[at]!);
  }
}

// Whether a character is begun and not complete.
function begun(automaton: Automaton, state: number): number {
  if (automaton.counts(state) || automaton.accepts(state)) return 0;
  return automaton.ahead(state).some(({ more }) => more === 0) ? 0 : 1;
}
