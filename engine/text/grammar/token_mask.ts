// Which tokens may follow, for all ways of reading the text so far: the kept masks of their scanners, and a walk through
// the tree of tokens where a token goes on behind a scanner's end.

import type { Leaf } from "./expression.ts";
import type { Frame, Thread, Threads } from "./frames.ts";
import { boundedTokens, clearTokens, type LeafMask, leafMask, setTokens } from "./leaf_mask.ts";
import type { Reader } from "./reader.ts";
import type { TokenTrie } from "./token_trie.ts";

/** What a mask is made with. */
export interface MaskInput {
  readonly reader: Reader;
  readonly trie: TokenTrie;
  /** Bits by token, to be set. */
  readonly tokens: Uint32Array;
  /** So many blanks at the front of a token do not count. */
  readonly dropped: number;
  /** Set where tokens had to be looked at one by one, which takes ten times as long as to find kept masks. */
  isSearched?: boolean;
}

/** Sets the bits of the tokens that may follow. */
export function maskTokens(threads: Threads, input: MaskInput): void {
  if (input.dropped > 0) return walkBelow(0, threads, input);
  const walked: Thread[] = [];
  for (const thread of threads.list) {
    if (thread.leaf === "names") walked.push(thread);
    else maskLeaf(thread as LeafThread, input);
  }
  if (walked.length > 0) walkBelow(0, { list: walked, canEnd: false }, input);
}

type LeafThread = Thread & { readonly leaf: Leaf };

function maskLeaf(thread: LeafThread, input: MaskInput): void {
  const { leaf, state, count, parent } = thread;
  const { automaton, bounds } = leaf;
  const { reader, trie, tokens } = input;
  const mask = leafMask(trie, { automaton, state, ...bounds && { bounds } });
  const allowed = bounds ? boundedTokens(mask, { trie, leaf, state, count }) : mask.tokens;
  if (mask.searches > mask.told) {
    mask.told = mask.searches;
    input.isSearched = true;
  }
  if (looksBack(parent)) return maskBehindText(thread, { mask, allowed }, input);
  orInto(tokens, allowed);
  // What goes on is the same behind every exit.
  let behind: Threads | undefined;
  for (const [i, node] of mask.exits.entries()) {
    if (trie.end[node]! === node + 1 || !mayLeave(mask, i, thread)) continue;
    walkBelow(node, behind ??= reader.behind(thread), input);
  }
}

// Whether what goes on behind a part looks at its text: the name of a member, and what is in an item that none may equal.
function looksBack(parent: Frame | undefined): boolean {
  if (parent?.kind === "object" && parent.phase === "name") return true;
  for (let frame = parent; frame; frame = frame.parent) {
    if (frame.kind === "array" && frame.array.unique === "texts") return true;
  }
  return false;
}

function maskBehindText(
  thread: LeafThread,
  { mask, allowed }: { mask: LeafMask; allowed: Uint32Array },
  input: MaskInput,
): void {
  const { reader, trie, tokens } = input;
  const own = allowed.slice();
  const { length } = reader;
  for (const [i, node] of mask.exits.entries()) {
    if (!mayLeave(mask, i, thread)) continue;
    pushBytes(node, input);
    const behind = reader.behind(thread);
    if (behind.list.length > 0) walkBelow(node, behind, input);
    else if (!behind.canEnd && thread.leaf.automaton.isLast(mask.exitStates[i]!)) {
      clearTokens(own, { trie, node });
    }
    reader.length = length;
  }
  orInto(tokens, own);
}

function mayLeave({ exitCounts }: LeafMask, exit: number, { leaf, count }: LeafThread): boolean {
  const { bounds } = leaf;
  const whole = count + exitCounts[exit]!;
  return !bounds || whole >= bounds.min && whole <= bounds.max;
}

function orInto(tokens: Uint32Array, others: Uint32Array): void {
  for (let i = 0; i < tokens.length; i++) tokens[i]! |= others[i]!;
}

// Puts a node's bytes behind the text.
function pushBytes(node: number, { trie: { byte, end }, reader }: MaskInput): void {
  let at = 0;
  while (at !== node) {
    let child = at + 1;
    while (end[child]! <= node) child = end[child]!;
    at = child;
    reader.push(byte[at]!);
  }
}

// Tokens below a node, all bytes of which were read.
function walkBelow(node: number, threads: Threads, input: MaskInput): void {
  const { trie, reader, tokens, dropped } = input;
  const { byte, end, depth } = trie;
  const last = end[node]!;
  const drops = depth[node]! < dropped;
  for (let child = node + 1; child < last; child = end[child]!) {
    if (drops && byte[child] === BLANK) {
      setTokens(tokens, { trie, node: child });
      walkBelow(child, threads, input);
      continue;
    }
    reader.push(byte[child]!);
    const next = reader.step(threads, byte[child]!);
    if (next.list.length > 0 || next.canEnd) {
      setTokens(tokens, { trie, node: child });
      const below = drops ? { ...input, dropped: 0 } : input;
      if (next.list.length > 0 && end[child]! > child + 1) walkBelow(child, next, below);
    }
    reader.length--;
  }
}

const BLANK = 0x20;
