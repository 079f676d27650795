// Ensembles as files describe them: TreeEnsembleClassifier and TreeEnsembleRegressor by lists of nodes with ids of
// their own, TreeEnsemble (version 5) by indices.

import { numbersOf } from "../../../ops/host_numbers.ts";
import {
  bigints,
  floats,
  int,
  ints,
  type OnnxAttributesOf,
  required,
  tensor,
  texts,
} from "../../derivation/attributes.ts";
import { readTensor } from "../../derivation/constants.ts";
import type { OnnxTensor } from "../../file/model.ts";
import {
  AGGREGATES,
  type Branch,
  createEnsemble,
  type Ensemble,
  type LeafWeight,
  NODE_MODES,
  type NodeMode,
} from "./trees.ts";
import { POST_TRANSFORMS, postTransform } from "./scores.ts";

type Numbers = ArrayLike<number>;

const since3 = { since: 3 };

/** Attributes of nodes in versions 1 and 3. */
const nodeAttributes = {
  base_values: floats(),
  base_values_as_tensor: tensor(undefined, since3),
  nodes_falsenodeids: ints([]),
  nodes_featureids: ints([]),
  // How often a node was come by while training: nothing depends on it.
  nodes_hitrates: floats(),
  nodes_hitrates_as_tensor: tensor(undefined, since3),
  nodes_missing_value_tracks_true: ints([]),
  nodes_modes: texts([]),
  nodes_nodeids: ints([]),
  nodes_treeids: ints([]),
  nodes_truenodeids: ints([]),
  nodes_values: floats(),
  nodes_values_as_tensor: tensor(undefined, since3),
  post_transform: postTransform,
};

/** Attributes of TreeEnsembleClassifier. */
export const classifierAttributes = {
  ...nodeAttributes,
  class_ids: ints([]),
  class_nodeids: ints([]),
  class_treeids: ints([]),
  class_weights: floats(),
  class_weights_as_tensor: tensor(undefined, since3),
  classlabels_int64s: bigints(),
  classlabels_strings: texts(),
};

/** Attributes of TreeEnsembleRegressor. */
export const regressorAttributes = {
  ...nodeAttributes,
  aggregate_function: { kind: "string", fallback: "SUM", choices: AGGREGATES } as const,
  n_targets: int(),
  target_ids: ints([]),
  target_nodeids: ints([]),
  target_treeids: ints([]),
  target_weights: floats(),
  target_weights_as_tensor: tensor(undefined, since3),
};

/** Attributes of TreeEnsemble. */
export const ensembleAttributes = {
  aggregate_function: int(1),
  leaf_targetids: required(ints()),
  leaf_weights: required(tensor()),
  membership_values: tensor(),
  n_targets: int(1),
  nodes_falseleafs: required(ints()),
  nodes_falsenodeids: required(ints()),
  nodes_featureids: required(ints()),
  nodes_hitrates: tensor(),
  nodes_missing_value_tracks_true: ints([]),
  nodes_modes: required(tensor()),
  nodes_splits: required(tensor()),
  nodes_trueleafs: required(ints()),
  nodes_truenodeids: required(ints()),
  post_transform: int(0),
  tree_roots: required(ints()),
};

/** Which leaf counts for which target by how much. */
export interface NamedWeights {
  readonly trees: Numbers;
  readonly nodes: Numbers;
  readonly targets: Numbers;
  readonly weights: Numbers;
  readonly targetCount: number;
}

/**
 * The numbers of an attribute that is a list or a tensor.
 *
 * @throws {RangeError} If both are given.
 */
export function listOf(list: Numbers | undefined, tensor: OnnxTensor | undefined): Numbers {
  if (list && tensor) throw new RangeError("a list is given twice, as numbers and as a tensor");
  return tensor ? numbersOf(readTensor(tensor)) : list ?? [];
}

function checkLengths(lists: Readonly<Record<string, Numbers>>): void {
  const [[first, { length }], ...others] = Object.entries(lists) as [
    [string, Numbers],
    ...[string, Numbers][],
  ];
  for (const [name, list] of others) {
    if (list.length === length) continue;
    throw new RangeError(`${first} has ${length} entries, ${name} ${list.length}`);
  }
}

// One flag for each node, or none at all.
function missingFlags(flags: readonly number[], count: number): readonly number[] {
  if (flags.length > 0) {
    checkLengths({ nodes: { length: count }, missing_value_tracks_true: flags });
  }
  return flags;
}

/** An ensemble of version 1 or 3. @throws {RangeError} If lists or ids do not fit one another. */
export function readNamedTrees(
  given: OnnxAttributesOf<typeof nodeAttributes>,
  named: NamedWeights,
): Ensemble {
  const {
    nodes_treeids: trees,
    nodes_nodeids: nodes,
    nodes_featureids: features,
    nodes_modes: modes,
    nodes_truenodeids: yes,
    nodes_falsenodeids: no,
  } = given;
  const values = listOf(given.nodes_values, given.nodes_values_as_tensor);
  checkLengths({
    nodes_nodeids: nodes,
    nodes_treeids: trees,
    nodes_featureids: features,
    nodes_modes: modes as unknown as Numbers,
    nodes_truenodeids: yes,
    nodes_falsenodeids: no,
    nodes_values: values,
  });
  const missing = missingFlags(given.nodes_missing_value_tracks_true, nodes.length);
  const places = new Map<number, Map<number, number>>();
  const roots: number[] = [];
  let branchCount = 0, leafCount = 0;
  nodes.forEach((node, i) => {
    const place = modes[i] === "LEAF" ? ~leafCount++ : branchCount++;
    let tree = places.get(trees[i]!);
    if (!tree) {
      // The first node of a tree is its root.
      places.set(trees[i]!, tree = new Map());
      roots.push(place);
    }
    if (tree.has(node)) throw new RangeError(`node ${node} of tree ${trees[i]} is there twice`);
    tree.set(node, place);
  });
  const placeOf = (tree: number, node: number) => {
    const place = places.get(tree)?.get(node);
    if (place === undefined) throw new RangeError(`tree ${tree} has no node ${node}`);
    return place;
  };
  const branches: Branch[] = [];
  modes.forEach((mode, i) => {
    if (mode === "LEAF") return;
    branches.push({
      mode: modeNamed(mode),
      feature: features[i]!,
      split: values[i]!,
      yes: placeOf(trees[i]!, yes[i]!),
      no: placeOf(trees[i]!, no[i]!),
      missingIsYes: missing[i] === 1,
    });
  });
  const weights = weightsOf(named, placeOf);
  return createEnsemble({ roots, branches, leafCount, weights, targetCount: named.targetCount });
}

function modeNamed(mode: string): NodeMode {
  // Only TreeEnsemble has lists of members.
  if (mode !== "BRANCH_MEMBER" && NODE_MODES.includes(mode as NodeMode)) return mode as NodeMode;
  throw new RangeError(`a node is of mode "${mode}"`);
}

function weightsOf(
  { trees, nodes, targets, weights }: NamedWeights,
  placeOf: (tree: number, node: number) => number,
): LeafWeight[] {
  checkLengths({ "nodes with weights": nodes, "their trees": trees, targets, weights });
  const found: LeafWeight[] = [];
  for (let i = 0; i < weights.length; i++) {
    const place = placeOf(trees[i]!, nodes[i]!);
    // Old converters gave weights to branches too; nobody counts them.
    if (place < 0) found.push({ leaf: ~place, target: targets[i]!, weight: weights[i]! });
  }
  return found;
}

/** An ensemble of version 5, and what becomes of its scores. */
export interface ReadTrees {
  readonly ensemble: Ensemble;
  readonly aggregate: string;
  readonly transform: string;
}

/** An ensemble of version 5. @throws {RangeError} If lists or indices do not fit one another. */
export function readIndexedTrees(given: OnnxAttributesOf<typeof ensembleAttributes>): ReadTrees {
  const { nodes_truenodeids: yes, nodes_falsenodeids: no, nodes_featureids: features } = given;
  const { nodes_trueleafs: yesIsLeaf, nodes_falseleafs: noIsLeaf, leaf_targetids: targets } = given;
  const splits = listOf(undefined, given.nodes_splits);
  const modes = listOf(undefined, given.nodes_modes);
  const weights = listOf(undefined, given.leaf_weights);
  checkLengths({
    nodes_featureids: features,
    nodes_splits: splits,
    nodes_modes: modes,
    nodes_truenodeids: yes,
    nodes_trueleafs: yesIsLeaf,
    nodes_falsenodeids: no,
    nodes_falseleafs: noIsLeaf,
  });
  checkLengths({ leaf_targetids: targets, leaf_weights: weights });
  const missing = missingFlags(given.nodes_missing_value_tracks_true, features.length);
  const members = membersByNode(modes, listOf(undefined, given.membership_values));
  const nodeAt = (index: number) => within(index, features.length, "node");
  const childAt = (index: number, isLeaf: number | undefined) =>
    isLeaf ? ~within(index, weights.length, "leaf") : nodeAt(index);
  const branches = features.map((feature, i): Branch => ({
    mode: named(NODE_MODES, modes[i]!, "mode of a node"),
    feature,
    split: splits[i]!,
    ...members.has(i) && { members: members.get(i)! },
    yes: childAt(yes[i]!, yesIsLeaf[i]),
    no: childAt(no[i]!, noIsLeaf[i]),
    missingIsYes: missing[i] === 1,
  }));
  const ensemble = createEnsemble({
    roots: given.tree_roots.map(nodeAt),
    branches,
    leafCount: weights.length,
    weights: Array.from(weights, (weight, leaf) => ({ leaf, target: targets[leaf]!, weight })),
    targetCount: given.n_targets,
  });
  return {
    ensemble,
    aggregate: named(AGGREGATES, given.aggregate_function, "aggregate function"),
    transform: named(POST_TRANSFORMS, given.post_transform, "post_transform"),
  };
}

function within(index: number, count: number, what: string): number {
  if (index >= 0 && index < count) return index;
  throw new RangeError(`there is no ${what} ${index}: there are ${count}`);
}

function named<T extends string>(names: readonly T[], number: number, what: string): T {
  const found = names[number];
  if (found !== undefined) return found;
  throw new RangeError(`${number} is no ${what}: it is below ${names.length}`);
}

// A NaN ends the members of each such node.
function membersByNode(modes: Numbers, values: Numbers): Map<number, ReadonlySet<number>> {
  const members = new Map<number, ReadonlySet<number>>();
  let at = 0;
  for (let node = 0; node < modes.length; node++) {
    if (NODE_MODES[modes[node]!] !== "BRANCH_MEMBER") continue;
    const set = new Set<number>();
    for (; at < values.length && !Number.isNaN(values[at]!); at++) set.add(values[at]!);
    at++;
    members.set(node, set);
  }
  return members;
}
