// Trees as flat arrays, and what they give for rows. A child is the index of a node, or the complement of a leaf's.
// Every comparison becomes one of three kinds, so that most ensembles are walked by one loop without a switch:
// x < t is x ≤ the number before t, x > t is x ≤ t with the children swapped, and x ≠ t is x = t with them swapped.
// NaN goes the way of `no` unless the node says otherwise.

import type { Rows } from "./rows.ts";

/** Comparisons, in the order of their numbers in TreeEnsemble. */
export const NODE_MODES = [
  "BRANCH_LEQ",
  "BRANCH_LT",
  "BRANCH_GTE",
  "BRANCH_GT",
  "BRANCH_EQ",
  "BRANCH_NEQ",
  "BRANCH_MEMBER",
] as const;

/** A comparison of a node. */
export type NodeMode = (typeof NODE_MODES)[number];

/** Names of the aggregate functions, in the order of their numbers in TreeEnsemble. */
export const AGGREGATES = ["AVERAGE", "SUM", "MIN", "MAX"] as const;

/** A branch as a file describes it. */
export interface Branch {
  readonly mode: NodeMode;
  readonly feature: number;
  /** What the feature is compared with; not for members. */
  readonly split: number;
  /** For BRANCH_MEMBER. */
  readonly members?: ReadonlySet<number>;
  readonly yes: number;
  readonly no: number;
  /** Whether NaN goes the way of `yes`. */
  readonly missingIsYes: boolean;
}

/** What a leaf adds to the score of a target. */
export interface LeafWeight {
  readonly leaf: number;
  readonly target: number;
  readonly weight: number;
}

/** Trees that are evaluated together. */
export interface Ensemble {
  readonly roots: Int32Array;
  readonly features: Int32Array;
  readonly splits: Float64Array;
  readonly yes: Int32Array;
  readonly no: Int32Array;
  /** Of the ordered kind, of equality or of membership. */
  readonly kinds: Uint8Array;
  readonly missingIsYes: Uint8Array;
  readonly members: ReadonlyMap<number, ReadonlySet<number>>;
  /** True: every node is of the ordered kind, and NaN goes the way of `no`. */
  readonly isPlain: boolean;
  /** The first of each leaf's weights, and the end of the last one's. */
  readonly firstWeight: Int32Array;
  readonly targets: Int32Array;
  readonly weights: Float64Array;
  readonly targetCount: number;
  /** Features that a row must have at least. */
  readonly width: number;
}

const ORDERED = 0, EQUAL = 1, MEMBER = 2;
const MOST_TARGETS = 65_535;

/** What makes an ensemble. */
export interface EnsembleParts {
  readonly roots: readonly number[];
  readonly branches: readonly Branch[];
  readonly leafCount: number;
  /** A leaf's are added in this order. */
  readonly weights: readonly LeafWeight[];
  readonly targetCount: number;
}

/**
 * Makes an ensemble.
 *
 * @throws {RangeError} If a tree has a cycle, or a feature or target is out of range.
 */
export function createEnsemble(parts: EnsembleParts): Ensemble {
  const { roots, branches, targetCount } = parts;
  if (!(targetCount >= 1 && targetCount <= MOST_TARGETS)) {
    throw new RangeError(`${targetCount} targets: must be from 1 to ${MOST_TARGETS}`);
  }
  const kinds = new Uint8Array(branches.length), missingIsYes = new Uint8Array(branches.length);
  const splits = new Float64Array(branches.length);
  const yes = new Int32Array(branches.length), no = new Int32Array(branches.length);
  const features = new Int32Array(branches.length);
  const members = new Map<number, ReadonlySet<number>>();
  let width = 0;
  branches.forEach((branch, i) => {
    const { feature } = branch;
    if (!(feature >= 0 && feature < 2 ** 31 - 1)) {
      throw new RangeError(`a node reads feature ${feature}`);
    }
    features[i] = feature;
    width = Math.max(width, feature + 1);
    const form = formOf(branch);
    kinds[i] = form.kind;
    splits[i] = form.split;
    yes[i] = form.isSwapped ? branch.no : branch.yes;
    no[i] = form.isSwapped ? branch.yes : branch.no;
    // Of x ≠ t NaN goes the way of `yes` by itself.
    const isYes = branch.missingIsYes || branch.mode === "BRANCH_NEQ";
    missingIsYes[i] = Number(isYes !== form.isSwapped);
    if (branch.members) members.set(i, branch.members);
  });
  refuseCycles(roots, { yes, no });
  return {
    ...{ roots: Int32Array.from(roots), features, splits, yes, no, kinds, missingIsYes, members },
    isPlain: kinds.every((kind) => kind === ORDERED) && missingIsYes.every((is) => is === 0),
    ...weightsByLeaf(parts),
    ...{ targetCount, width },
  };
}

interface Form {
  readonly kind: number;
  readonly split: number;
  readonly isSwapped: boolean;
}

function formOf({ mode, split }: Branch): Form {
  switch (mode) {
    case "BRANCH_LEQ":
      return { kind: ORDERED, split, isSwapped: false };
    case "BRANCH_LT":
      return { kind: ORDERED, split: before(split), isSwapped: false };
    case "BRANCH_MEMBER":
      return { kind: MEMBER, split, isSwapped: false };
    case "BRANCH_EQ":
      return { kind: EQUAL, split, isSwapped: false };
    case "BRANCH_NEQ":
      return { kind: EQUAL, split, isSwapped: true };
  }
  // Nothing is above NaN, nor at least NaN.
  if (Number.isNaN(split)) return { kind: EQUAL, split, isSwapped: false };
  return {
    kind: ORDERED,
    split: mode === "BRANCH_GT" ? split : before(split),
    isSwapped: true,
  };
}

const bits = new BigInt64Array(1), number = new Float64Array(bits.buffer);

/** The greatest float64 below a number; NaN, which nothing is at most, where there is none. */
function before(x: number): number {
  if (x === -Infinity) return NaN;
  if (x === 0) return -Number.MIN_VALUE;
  number[0] = x;
  bits[0]! += x > 0 ? -1n : 1n;
  return Number.isNaN(x) ? x : number[0];
}

// Trees may share nodes: LightGBM's sets of categories are chains of equalities with one child in common.
function refuseCycles(
  roots: readonly number[],
  { yes, no }: { readonly yes: Int32Array; readonly no: Int32Array },
): void {
  const FRESH = 0, OPEN = 1, DONE = 2;
  const states = new Uint8Array(yes.length);
  const stack: number[] = [];
  for (const root of roots) {
    if (root >= 0) stack.push(root);
    while (stack.length > 0) {
      const node = stack.at(-1)!;
      if (states[node] !== FRESH) {
        states[node] = DONE;
        stack.pop();
        continue;
      }
      states[node] = OPEN;
      for (const child of [yes[node]!, no[node]!]) {
        if (child < 0 || states[child] === DONE) continue;
        if (states[child] === OPEN) throw new RangeError("a tree has a cycle");
        stack.push(child);
      }
    }
  }
}

function weightsByLeaf({ leafCount, weights, targetCount }: EnsembleParts) {
  const firstWeight = new Int32Array(leafCount + 1);
  for (const { leaf, target } of weights) {
    if (!(target >= 0 && target < targetCount)) {
      throw new RangeError(`a leaf is for target ${target} of ${targetCount}`);
    }
    firstWeight[leaf + 1]!++;
  }
  for (let leaf = 0; leaf < leafCount; leaf++) firstWeight[leaf + 1]! += firstWeight[leaf]!;
  const next = firstWeight.slice();
  const targets = new Int32Array(weights.length), values = new Float64Array(weights.length);
  for (const { leaf, target, weight } of weights) {
    const at = next[leaf]!++;
    targets[at] = target;
    values[at] = weight;
  }
  return { firstWeight, targets, weights: values };
}

/** Scores of rows. */
export interface TreeScores {
  /** [N, targets]; in float32 unless the rows are of float64, since onnxruntime adds in that. */
  readonly scores: Float32Array | Float64Array;
  /** Whether a leaf had a weight for it. */
  readonly seen: Uint8Array;
}

// Rows that go through a tree together, so that neither they nor the tree leave the cache.
const BLOCK = 64;

interface Block extends TreeScores {
  readonly rows: Rows;
  readonly start: number;
  readonly size: number;
  /** The leaf that each row comes to. */
  readonly leaves: Int32Array;
}

/** Sums, or takes the least or greatest, of what the trees give. */
export function scoreRows(
  ensemble: Ensemble,
  { rows, aggregate }: { readonly rows: Rows; readonly aggregate: string },
): TreeScores {
  const { roots, targetCount, isPlain } = ensemble;
  const count = rows.count * targetCount;
  const scores = rows.data instanceof Float64Array
    ? new Float64Array(count)
    : new Float32Array(count);
  const seen = new Uint8Array(count), leaves = new Int32Array(BLOCK);
  const walk = isPlain ? walkPlain : walkAny;
  const add = aggregate === "MIN" || aggregate === "MAX" ? keepBest : addWeights;
  for (let start = 0; start < rows.count; start += BLOCK) {
    const size = Math.min(BLOCK, rows.count - start);
    const block: Block = { rows, start, size, leaves, scores, seen };
    for (let tree = 0; tree < roots.length; tree++) {
      walk(ensemble, roots[tree]!, block);
      add(ensemble, block, aggregate);
    }
  }
  return { scores, seen };
}

function walkPlain({ features, splits, yes, no }: Ensemble, root: number, block: Block): void {
  const { rows: { data, width }, start, size, leaves } = block;
  for (let i = 0; i < size; i++) {
    const base = (start + i) * width;
    let node = root;
    while (node >= 0) {
      node = data[base + features[node]!]! <= splits[node]! ? yes[node]! : no[node]!;
    }
    leaves[i] = ~node;
  }
}

function walkAny(ensemble: Ensemble, root: number, block: Block): void {
  const { features, splits, yes, no, kinds, missingIsYes, members } = ensemble;
  const { rows: { data, width }, start, size, leaves } = block;
  for (let i = 0; i < size; i++) {
    const base = (start + i) * width;
    let node = root;
    while (node >= 0) {
      const x = data[base + features[node]!]!, kind = kinds[node];
      const holds = x !== x
        ? missingIsYes[node] === 1
        : kind === ORDERED
        ? x <= splits[node]!
        : kind === EQUAL
        ? x === splits[node]
        : members.get(node)!.has(x);
      node = holds ? yes[node]! : no[node]!;
    }
    leaves[i] = ~node;
  }
}

function addWeights({ firstWeight, targets, weights, targetCount }: Ensemble, block: Block): void {
  const { start, size, leaves, scores, seen } = block;
  for (let i = 0; i < size; i++) {
    const base = (start + i) * targetCount, leaf = leaves[i]!, end = firstWeight[leaf + 1]!;
    for (let k = firstWeight[leaf]!; k < end; k++) {
      const at = base + targets[k]!;
      scores[at]! += weights[k]!;
      seen[at] = 1;
    }
  }
}

function keepBest(ensemble: Ensemble, block: Block, aggregate: string): void {
  const { firstWeight, targets, weights, targetCount } = ensemble;
  const { start, size, leaves, scores, seen } = block;
  const takesLeast = aggregate === "MIN";
  for (let i = 0; i < size; i++) {
    const base = (start + i) * targetCount, leaf = leaves[i]!, end = firstWeight[leaf + 1]!;
    for (let k = firstWeight[leaf]!; k < end; k++) {
      const at = base + targets[k]!, weight = weights[k]!, before = scores[at]!;
      if (seen[at] && !(takesLeast ? weight < before : weight > before)) continue;
      scores[at] = weight;
      seen[at] = 1;
    }
  }
}
