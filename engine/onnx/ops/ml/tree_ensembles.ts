// Decision trees, forests and boosted trees. Scores and labels are onnxruntime's (tree_ensemble_aggregator.h), also
// where the standard says nothing: one score for two classes, base values of classes that no leaf counts for.

import type { HostValue } from "../../derivation/tensor.ts";
import { hostArray, setElement } from "../../../ops/host_tensor.ts";
import { type HostCall, mlOp, type OnnxOp } from "../../derivation/op.ts";
import { type Labels, labelsOf, labelVector } from "./labels.ts";
import { rowsOf, rowsOnHost } from "./rows.ts";
import { indexOfGreatest, probit, transformScores, writePair } from "./scores.ts";
import {
  classifierAttributes,
  ensembleAttributes,
  listOf,
  readIndexedTrees,
  readNamedTrees,
  type ReadTrees,
  regressorAttributes,
} from "./tree_files.ts";
import { type Ensemble, scoreRows } from "./trees.ts";

function widthOf({ width }: Ensemble) {
  return { features: width, orMore: true };
}

interface Regressor extends ReadTrees {
  readonly base: ArrayLike<number>;
}

/** Scores of targets as [N, targets]. */
function regress(
  call: HostCall<unknown>,
  { ensemble, aggregate, transform, base }: Regressor,
): { readonly shape: readonly number[]; readonly data: Float32Array | Float64Array } {
  const rows = rowsOf(call, widthOf(ensemble));
  const { scores, seen } = scoreRows(ensemble, { rows, aggregate });
  const { targetCount: targets, roots } = ensemble;
  const divisor = aggregate === "AVERAGE" ? roots.length : 1;
  const shape = [rows.count, targets];
  if (targets === 1) {
    const origin = base[0] ?? 0;
    for (let i = 0; i < scores.length; i++) {
      scores[i] = scores[i]! / divisor;
      scores[i]! += origin;
      if (transform === "PROBIT") scores[i] = probit(scores[i]!);
    }
    return { shape, data: scores };
  }
  for (let i = 0; i < scores.length; i++) {
    const added = base.length === targets ? base[i % targets]! : 0;
    scores[i] = seen[i] ? scores[i]! / divisor + added : 0;
  }
  transformRows(scores, targets, transform);
  return { shape, data: scores };
}

function transformRows(
  scores: Float32Array | Float64Array,
  width: number,
  transform: string,
): void {
  if (transform === "NONE") return;
  for (let at = 0; at < scores.length; at += width) {
    const row = Float32Array.from(scores.subarray(at, at + width));
    transformScores(row, transform);
    scores.set(row, at);
  }
}

interface Classifier {
  readonly ensemble: Ensemble;
  readonly labels: Labels;
  readonly base: ArrayLike<number>;
  readonly transform: string;
  /** Two classes, and one score, which speaks for the second of them. */
  readonly isOneScore: boolean;
  /** No weight is negative: the score is a probability. */
  readonly isProbability: boolean;
}

/** What the scores of a row come to. */
interface Verdict {
  readonly label: number;
  /** Written as they are; fewer than the classes leave zeros. */
  readonly scores: Float32Array;
}

function judgeMany(scores: number[], seen: Uint8Array, { base, transform }: Classifier): Verdict {
  const there = Array.from(seen, (one, k) => one === 1 || k < base.length);
  const sums = scores.map((score, k) => score + (base[k] ?? 0));
  const label = indexOfGreatest(sums.map((sum, k) => there[k] ? sum : -Infinity));
  const row = Float32Array.from(sums, (sum, k) => there[k] ? sum : 0);
  transformScores(row, transform);
  return { label, scores: row };
}

function judgeTwo(
  [first, second]: readonly [number, number],
  [hasFirst, hasSecond]: Uint8Array,
  { base, transform, isOneScore, isProbability }: Classifier,
): Verdict {
  let [a, b] = [first, second];
  if (base.length === 2 && hasSecond) [a, b] = [-(base[1]! + a), base[1]! + a];
  else if (base.length === 2) [a, b] = [a + base[0]!, b + base[1]!];
  else if (base.length === 1) a += base[0]!;
  const score = hasSecond ? b : hasFirst ? a : 0;
  const label = Number(score > (isOneScore && isProbability ? 0.5 : 0));
  const row = new Float32Array(2);
  if (hasSecond || base.length === 2) {
    row.set([hasFirst ? a : 0, hasSecond ? b : 0]);
    transformScores(row, transform);
  } else if (isOneScore || base.length === 0) {
    writePair(row, { score: a, transform, isOdds: !(isOneScore && isProbability) });
  } else row[0] = transform === "PROBIT" ? probit(a) : a;
  return { label, scores: row };
}

function judgeOne(score: number, { base, transform }: Classifier): Verdict {
  const sum = score + (base.length === 2 ? base[1]! : base[0] ?? 0);
  const row = Float32Array.of(sum);
  if (base.length === 2) {
    const pair = Float32Array.of(-sum, sum);
    transformScores(pair, transform);
    row[0] = pair[0]!;
  } else if (transform === "PROBIT") row[0] = probit(sum);
  return { label: Number(sum > 0), scores: row };
}

function classify(call: HostCall<unknown>, classifier: Classifier): HostValue[] {
  const { ensemble, labels, isOneScore } = classifier;
  const rows = rowsOf(call, widthOf(ensemble));
  const { scores, seen } = scoreRows(ensemble, { rows, aggregate: "SUM" });
  const classes = labels.length;
  const data = new Float32Array(scores.length), picks = new Int32Array(rows.count);
  for (let i = 0, at = 0; i < rows.count; i++, at += classes) {
    const row = Array.from(scores.subarray(at, at + classes));
    const has = seen.subarray(at, at + classes);
    const verdict = classes > 2
      ? judgeMany(row, has, classifier)
      : classes === 2
      ? judgeTwo(row as [number, number], has, classifier)
      : judgeOne(row[0]!, classifier);
    picks[i] = verdict.label;
    data.set(verdict.scores, at);
  }
  // onnxruntime calls two classes with a score each 0 and 1, unless their labels are strings.
  const isNamed = classes > 2 || isOneScore || typeof labels[0] === "string";
  const names = isNamed ? labels : [0n, 1n];
  return [labelVector(names, picks), { dtype: "f32", shape: [rows.count, classes], data }];
}

function checkBase(base: ArrayLike<number>, targets: number): ArrayLike<number> {
  if ([0, 1, 2, targets].includes(base.length) && base.length <= Math.max(targets, 2)) return base;
  throw new RangeError(`${base.length} base values for ${targets} targets`);
}

/** Ensembles of trees. */
export const mlTreeOps: readonly OnnxOp[] = [
  mlOp("TreeEnsemble", {
    versions: [5],
    attributes: ensembleAttributes,
    prepare: readIndexedTrees,
    build: (call) => rowsOnHost(call, widthOf(call.attributes.ensemble)),
    evaluate(call) {
      const { shape, data } = regress(call, { ...call.attributes, base: [] });
      const { dtype } = call.tensor(0);
      if (dtype === "f32" || dtype === "f64") return [{ dtype, shape, data }];
      const narrow = { dtype, shape, data: hostArray(dtype, { count: data.length }) };
      data.forEach((value, index) => setElement(narrow, { index, value }));
      return [narrow];
    },
  }),
  mlOp("TreeEnsembleClassifier", {
    versions: [1, 3],
    attributes: classifierAttributes,
    prepare(given): Classifier {
      const labels = labelsOf(given.classlabels_strings, given.classlabels_int64s);
      const weights = listOf(given.class_weights, given.class_weights_as_tensor);
      const ensemble = readNamedTrees(given, {
        trees: given.class_treeids,
        nodes: given.class_nodeids,
        targets: given.class_ids,
        weights,
        targetCount: labels.length,
      });
      const base = listOf(given.base_values, given.base_values_as_tensor);
      return {
        ensemble,
        labels,
        base: checkBase(base, labels.length),
        transform: given.post_transform,
        isOneScore: labels.length === 2 && new Set(given.class_ids).size === 1,
        isProbability: Array.from(weights).every((weight) => weight >= 0),
      };
    },
    build: (call) => rowsOnHost(call, widthOf(call.attributes.ensemble)),
    evaluate: (call) => classify(call, call.attributes),
  }),
  mlOp("TreeEnsembleRegressor", {
    versions: [1, 3],
    attributes: regressorAttributes,
    prepare(given): Regressor {
      const targetCount = given.n_targets ?? 1;
      const ensemble = readNamedTrees(given, {
        trees: given.target_treeids,
        nodes: given.target_nodeids,
        targets: given.target_ids,
        weights: listOf(given.target_weights, given.target_weights_as_tensor),
        targetCount,
      });
      const base = listOf(given.base_values, given.base_values_as_tensor);
      return {
        ensemble,
        base: checkBase(base, targetCount),
        aggregate: given.aggregate_function,
        transform: given.post_transform,
      };
    },
    build: (call) => rowsOnHost(call, widthOf(call.attributes.ensemble)),
    evaluate(call) {
      const { shape, data } = regress(call, call.attributes);
      return [{ dtype: "f32", shape, data: Float32Array.from(data) }];
    },
  }),
];
