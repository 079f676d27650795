// Which tokens one scanner allows from one state, without what is around it: most of the answer to "which tokens may
// follow" does not depend on that (Dong et al. 2024, XGrammar), so it is found once for a state and kept. Where the
// scanner's text ends within a token, the rest of the token is for what stands around: those nodes of the tree are
// listed, and few.

import { ACCEPTS, type Automaton, COUNTS, DEAD } from "./automaton.ts";
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
  /** How often many tokens were looked at one by one, and how many of those times somebody has heard of. */
  searches: number;
  told: number;
}

/** How many characters the tokens of a mask have. */
interface Lengths {
  /** Their nodes, and the states behind them. */
  readonly nodes: Int32Array;
  readonly states: Int32Array;
  /** Characters of each; one that is begun is not among them. */
  readonly counts: Uint16Array;
  /** The same, one that is begun counted as whole. */
  readonly whole: Uint16Array;
  readonly longest: number;
  /** Places of those that have more than {@linkcode SHORT}. */
  readonly long: readonly number[];
  /** By number of characters, the tokens that have no more. */
  readonly upTo: Map<number, Uint32Array>;
}

/** Characters of a token that is not long. */
const SHORT = 12;
/** So many nodes or tokens take longer than all else that a mask takes. */
const MANY = 8192;
/** Most masks that are kept for the bounds of one scanner. */
const MOST_KEPT = 64;

const masks = new WeakMap<TokenTrie, WeakMap<Automaton, Map<number, LeafMask>>>();

/** The mask of a scanner in a state. */
export function leafMask(
  trie: TokenTrie,
  { automaton, state, bounds }: Pick<Leaf, "automaton" | "bounds"> & { readonly state: number },
): LeafMask {
  let byAutomaton = masks.get(trie);
  if (!byAutomaton) masks.set(trie, byAutomaton = new WeakMap());
  let byState = byAutomaton.get(automaton);
  if (!byState) byAutomaton.set(automaton, byState = new Map());
  let mask = byState.get(state);
  if (!mask) {
    mask = byState.get(likeState(automaton, { state, others: byState.keys() })) ??
      createLeafMask(trie, { automaton, state, isMeasured: bounds !== undefined });
    byState.set(state, mask);
  }
  return mask;
}

// Another state that leads to the same ones, as that behind the opening quote of free text is like those within.
function likeState(
  automaton: Automaton,
  { state, others }: { readonly state: number; readonly others: Iterable<number> },
): number {
  for (const other of others) {
    let byte = 0;
    while (byte < 256 && automaton.next(state, byte) === automaton.next(other, byte)) byte++;
    if (byte === 256) return other;
  }
  return state;
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
  const bounds = leaf.bounds!;
  const { automaton } = leaf;
  mask.lengths ??= createLeafMask(trie, { automaton, state, isMeasured: true }).lengths!;
  const { longest, upTo } = mask.lengths;
  const left = bounds.max - count;
  if (count >= bounds.min) {
    if (left >= longest + (bounds.isFree ? 0 : bounds.furthest)) return mask.tokens;
    if (bounds.isFree) return keptOf(upTo, left, () => noLonger(mask, { trie, left }));
  }
  let known = mask.bounded.get(bounds);
  if (!known) mask.bounded.set(bounds, known = new Map());
  return keptOf(known, count, () => {
    if (mask.lengths!.nodes.length > MANY) mask.searches++;
    return fitting(mask, { trie, leaf, count });
  });
}

function keptOf(
  kept: Map<number, Uint32Array>,
  key: number,
  make: () => Uint32Array,
): Uint32Array {
  let tokens = kept.get(key);
  if (!tokens) {
    if (kept.size >= MOST_KEPT) kept.clear();
    kept.set(key, tokens = make());
  }
  return tokens;
}

// Without the tokens that have more characters than are left.
function noLonger(
  { tokens, lengths }: LeafMask,
  { trie, left }: { readonly trie: TokenTrie; readonly left: number },
): Uint32Array {
  const { nodes, whole, long } = lengths!;
  const own = tokens.slice();
  if (left >= SHORT) {
    for (const i of long) if (whole[i]! > left) clearTokens(own, { trie, node: nodes[i]! });
    return own;
  }
  for (let i = 0; i < nodes.length; i++) {
    if (whole[i]! > left) clearTokens(own, { trie, node: nodes[i]! });
  }
  return own;
}

// Behind which an end can be reached in time; few states with few counts, so each pair is looked at once.
function fitting(
  { tokens, lengths }: LeafMask,
  { trie, leaf, count }: {
    readonly trie: TokenTrie;
    readonly leaf: Leaf;
    readonly count: number;
  },
): Uint32Array {
  const { nodes, states, counts, longest } = lengths!;
  const own = tokens.slice();
  const width = longest + 1;
  const verdicts = new Uint8Array(leaf.automaton.flags.length * width); // 1: fits, 2: does not
  for (let i = 0; i < nodes.length; i++) {
    const state = states[i]!;
    const verdict = verdicts[width * state + counts[i]!] ||=
      withinBounds({ leaf, state, count: count + counts[i]! }) ? 1 : 2;
    if (verdict === 2) clearTokens(own, { trie, node: nodes[i]! });
  }
  return own;
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

// Walks over all nodes that the scanner allows, in the order of the tree. Hundreds of thousands are looked at, so all is
// done here, on the scanner's table.
function createLeafMask(
  trie: TokenTrie,
  { automaton, state: start, isMeasured }: {
    readonly automaton: Automaton;
    readonly state: number;
    readonly isMeasured: boolean;
  },
): LeafMask {
  const { byte, depth, end, token, twin } = trie;
  const tokens = new Uint32Array(wordsOf(trie));
  const exits: number[] = [], exitStates: number[] = [], exitCounts: number[] = [];
  const most = isMeasured ? trie.vocabSize : 0;
  const nodes = new Int32Array(most), states = new Int32Array(most);
  const counts = new Uint16Array(most), whole = new Uint16Array(most);
  const long: number[] = [];
  let size = 0, longest = 0, visited = 0;
  const path = new Int32Array(trie.deepest + 1);
  const pathCounts = new Int32Array(trie.deepest + 1);
  path[0] = start;
  let { table, flags } = automaton;
  for (let node = 1; node < byte.length;) {
    const at = depth[node]!;
    visited++;
    let state = table[256 * path[at - 1]! + byte[node]!]!;
    if (state < DEAD) {
      state = automaton.next(path[at - 1]!, byte[node]!);
      ({ table, flags } = automaton);
    }
    if (state === DEAD) {
      node = end[node]!;
      continue;
    }
    const own = flags[state]!;
    const count = pathCounts[at - 1]! + ((own & COUNTS) === 0 ? 0 : 1);
    path[at] = state;
    pathCounts[at] = count;
    if ((own & ACCEPTS) !== 0) {
      exits.push(node);
      exitStates.push(state);
      exitCounts.push(count);
    }
    let id = token[node]!;
    if (id >= 0 && isMeasured) {
      nodes[size] = node;
      states[size] = state;
      counts[size] = count;
      const length = whole[size] = own !== 0 ? count : count + begun(automaton, state);
      if (length > SHORT) long.push(size);
      longest = Math.max(longest, length);
      size++;
    }
    for (; id >= 0; id = twin[id]!) tokens[id >> 5]! |= 1 << (id & 31);
    node++;
  }
  const lengths = isMeasured
    ? {
      ...{ nodes: nodes.slice(0, size), states: states.slice(0, size), long, longest },
      ...{ counts: counts.slice(0, size), whole: whole.slice(0, size), upTo: new Map() },
    }
    : undefined;
  return {
    tokens,
    exits,
    exitStates,
    exitCounts,
    lengths,
    bounded: new WeakMap(),
    searches: visited > MANY ? 1 : 0,
    told: 0,
  };
}

// Whether a character is begun and not complete, where none ends.
function begun(automaton: Automaton, state: number): number {
  return automaton.ahead(state).some(({ more }) => more === 0) ? 0 : 1;
}
