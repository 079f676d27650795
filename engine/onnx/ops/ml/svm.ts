// Support vector machines, as libsvm and liblinear make them and onnxruntime runs them (svmclassifier.cc): without
// support vectors the coefficients are a linear model. A classifier of libsvm compares every two classes and counts
// votes; with prob_a and prob_b it gives probabilities of classes (Wu, Lin and Weng 2004, method 2).

import {
  bigints,
  flag,
  floats,
  int,
  ints,
  type OnnxAttributesOf,
  required,
  text,
  texts,
} from "../../derivation/attributes.ts";
import type { HostValue } from "../../derivation/tensor.ts";
import { type HostCall, mlOp, type OnnxOp } from "../../derivation/op.ts";
import { type Labels, labelsOf, labelVector } from "./labels.ts";
import { type Linear, linearOf, multiplyRows } from "./linear.ts";
import { narrowRowsOf, type Rows, rowsOnHost } from "./rows.ts";
import { indexOfGreatest, logistic, postTransform, transformScores, writePair } from "./scores.ts";

const kernelAttributes = {
  coefficients: required(floats()),
  kernel_params: floats([]),
  kernel_type: text("LINEAR", { choices: ["LINEAR", "POLY", "RBF", "SIGMOID"] }),
  post_transform: postTransform,
  rho: required(floats()),
  support_vectors: floats([]),
};

/** Support vectors, and how a row is compared with them. */
interface Kernel {
  readonly type: string;
  readonly gamma: number;
  readonly coef0: number;
  readonly degree: number;
  /** Rows are the support vectors. */
  readonly vectors: Linear;
}

function kernelOf(
  { kernel_type: type, kernel_params: [gamma = 0, coef0 = 0, degree = 0], support_vectors }:
    OnnxAttributesOf<typeof kernelAttributes>,
  outputs: number,
): Kernel {
  return { type, gamma, coef0, degree, vectors: linearOf(support_vectors, { outputs }) };
}

/** What each support vector gives for each row: [N, vectors]. */
function compareRows(rows: Rows, kernel: Kernel): Float32Array {
  const { type, gamma, coef0, degree, vectors } = kernel;
  if (type === "RBF") return gaussians(rows, kernel);
  const values = multiplyRows(rows, vectors);
  if (type === "LINEAR") return values;
  for (let i = 0; i < values.length; i++) {
    const value = gamma * values[i]! + coef0;
    values[i] = type === "POLY" ? value ** degree : Math.tanh(value);
  }
  return values;
}

function gaussians(rows: Rows, { gamma, vectors: { matrix, features } }: Kernel): Float32Array {
  const count = matrix.length / features;
  const values = new Float32Array(rows.count * count);
  for (let row = 0, at = 0; row < rows.count; row++) {
    for (let vector = 0; vector < count; vector++) {
      let sum = 0;
      for (let i = 0; i < features; i++) {
        const difference = rows.data[row * features + i]! - matrix[vector * features + i]!;
        sum += difference * difference;
      }
      values[at++] = Math.exp(-gamma * sum);
    }
  }
  return values;
}

interface Classifier {
  readonly labels: Labels;
  readonly transform: string;
  readonly features: number;
  /** Of liblinear; else the rest is there. */
  readonly linear?: Linear;
  readonly kernel?: Kernel;
  /** Support vectors of each class: the first one, and the end of the last class's. */
  readonly starts: readonly number[];
  /** [classes - 1, vectors]. */
  readonly coefficients: Float32Array;
  readonly rho: readonly number[];
  readonly probA: readonly number[];
  readonly probB: readonly number[];
  readonly isAllPositive: boolean;
}

const classifierAttributes = {
  ...kernelAttributes,
  classlabels_ints: bigints(),
  classlabels_strings: texts(),
  prob_a: floats([]),
  prob_b: floats([]),
  vectors_per_class: ints([]),
};

function readClassifier(given: OnnxAttributesOf<typeof classifierAttributes>): Classifier {
  const { coefficients, rho, prob_a: probA, prob_b: probB, vectors_per_class: counts } = given;
  const labels = labelsOf(given.classlabels_strings, given.classlabels_ints);
  const classes = labels.length, pairs = classes * (classes - 1) / 2;
  const starts = [0];
  for (const count of counts) {
    if (count < 0) throw new RangeError(`a class has ${count} support vectors`);
    starts.push(starts.at(-1)! + count);
  }
  const vectors = starts.at(-1)!;
  const shared = {
    ...{ labels, transform: given.post_transform, starts, rho, probA, probB },
    coefficients: Float32Array.from(coefficients),
    isAllPositive: coefficients.every((value) => value >= 0),
  };
  if (vectors === 0) {
    if (rho.length === 0) throw new RangeError("rho is empty");
    const intercepts = labels.map(() => rho[0]!);
    const linear = linearOf(coefficients, { outputs: classes, intercepts });
    return { ...shared, linear, features: linear.features };
  }
  const expected: readonly (readonly [string, number, number])[] = [
    ["vectors_per_class", counts.length, classes],
    ["coefficients", coefficients.length, (classes - 1) * vectors],
    ["rho", rho.length, pairs],
    ["prob_a", probA.length, probA.length === 0 ? 0 : pairs],
    ["prob_b", probB.length, probA.length],
  ];
  for (const [name, found, wanted] of expected) {
    if (found !== wanted) throw new RangeError(`${name} has ${found} entries: must have ${wanted}`);
  }
  const kernel = kernelOf(given, vectors);
  return { ...shared, kernel, features: kernel.vectors.features };
}

/** The scores of every two classes, and the votes that they come to. */
function compareClasses(values: Float32Array, classifier: Classifier) {
  const { labels: { length: classes }, starts, coefficients, rho } = classifier;
  const scores: number[] = [];
  const votes = new Int32Array(classes);
  for (let i = 0; i < classes - 1; i++) {
    for (let j = i + 1; j < classes; j++) {
      let sum = rho[scores.length]!;
      const ofFirst = (j - 1) * values.length, ofSecond = i * values.length;
      for (let k = starts[i]!; k < starts[i + 1]!; k++) {
        sum += coefficients[ofFirst + k]! * values[k]!;
      }
      for (let k = starts[j]!; k < starts[j + 1]!; k++) {
        sum += coefficients[ofSecond + k]! * values[k]!;
      }
      scores.push(sum);
      votes[sum > 0 ? i : j]!++;
    }
  }
  return { scores, votes };
}

/** Probabilities of classes from the scores of every two. */
function probabilities(scores: readonly number[], classifier: Classifier): Float32Array {
  const { labels: { length: classes }, probA, probB } = classifier;
  const pairs = Array.from({ length: classes }, () => new Float64Array(classes));
  for (let i = 0, at = 0; i < classes - 1; i++) {
    for (let j = i + 1; j < classes; j++, at++) {
      const likely = 1 - logistic(scores[at]! * probA[at]! + probB[at]!);
      pairs[i]![j] = Math.min(Math.max(likely, 1e-7), 1 - 1e-7);
      pairs[j]![i] = 1 - pairs[i]![j]!;
    }
  }
  return couple(pairs);
}

// Minimises the sum of (r_ji p_i - r_ij p_j)² over p by turns, as libsvm's multiclass_probability.
function couple(pairs: readonly Float64Array[]): Float32Array {
  const classes = pairs.length;
  const q = pairs.map((_, i) =>
    Float64Array.from(
      pairs,
      (row, j) =>
        i === j
          ? pairs.reduce((sum, other, k) => k === i ? sum : sum + other[i]! ** 2, 0)
          : -row[i]! * pairs[i]![j]!,
    )
  );
  const p = new Float64Array(classes).fill(1 / classes), qp = new Float64Array(classes);
  for (let trip = 0; trip < 100; trip++) {
    let pqp = 0;
    for (let i = 0; i < classes; i++) {
      qp[i] = q[i]!.reduce((sum, value, j) => sum + value * p[j]!, 0);
      pqp += p[i]! * qp[i]!;
    }
    if (qp.every((value) => Math.abs(value - pqp) < 0.005 / classes)) break;
    for (let i = 0; i < classes; i++) {
      const step = (pqp - qp[i]!) / q[i]![i]!, all = 1 + step;
      p[i]! += step;
      pqp = (pqp + step * (step * q[i]![i]! + 2 * qp[i]!)) / all / all;
      for (let j = 0; j < classes; j++) {
        qp[j] = (qp[j]! + step * q[i]![j]!) / all;
        p[j]! /= all;
      }
    }
  }
  return Float32Array.from(p);
}

/** Of liblinear: a score for each class. */
function judgeLinear(scores: Float32Array, { labels, isAllPositive }: Classifier): number {
  const best = indexOfGreatest(scores), most = scores[best]!;
  if (labels.length !== 2) return best;
  return (isAllPositive ? most >= 0.5 : most > 0) ? 1 : best;
}

function classify(call: HostCall<unknown>, classifier: Classifier): HostValue[] {
  const { labels, transform, linear, kernel, features, probA } = classifier;
  const rows = narrowRowsOf(call, { features });
  const classes = labels.length, pairs = classes * (classes - 1) / 2;
  const isPairs = kernel !== undefined && probA.length === 0;
  const width = isPairs ? Math.max(pairs, 2) : classes;
  const values = kernel ? compareRows(rows, kernel) : multiplyRows(rows, linear!);
  const perRow = rows.count && values.length / rows.count;
  const data = new Float32Array(rows.count * width), picks = new Int32Array(rows.count);
  for (let i = 0; i < rows.count; i++) {
    const row = values.subarray(i * perRow, (i + 1) * perRow);
    const to = data.subarray(i * width, (i + 1) * width);
    if (!kernel) {
      picks[i] = judgeLinear(row, classifier);
      to.set(row);
      transformScores(to, transform);
      continue;
    }
    const { scores, votes } = compareClasses(row, classifier);
    picks[i] = indexOfGreatest(votes);
    if (isPairs && classes <= 2) {
      writePair(to, { score: scores[0] ?? 0, transform, isOdds: transform === "NONE" });
      continue;
    }
    to.set(isPairs ? scores : probabilities(scores, classifier));
    transformScores(to, transform);
  }
  return [labelVector(labels, picks), { dtype: "f32", shape: [rows.count, width], data }];
}

/** Support vector machines. */
export const mlSvmOps: readonly OnnxOp[] = [
  mlOp("SVMClassifier", {
    attributes: classifierAttributes,
    prepare: readClassifier,
    build: (call) => rowsOnHost(call, call.attributes),
    evaluate: (call) => classify(call, call.attributes),
  }),
  /** SVMRegressor; `one_class`: whether a row is like those of the training. Its transform is not applied. */
  mlOp("SVMRegressor", {
    attributes: { ...kernelAttributes, n_supports: int(0), one_class: flag(false) },
    prepare(given) {
      const { coefficients, rho, n_supports: supports, one_class: isOneClass } = given;
      if (rho.length === 0) throw new RangeError("rho is empty");
      const kernel = supports > 0 ? kernelOf(given, supports) : undefined;
      const linear = linearOf(coefficients, { outputs: 1, intercepts: [rho[0]!] });
      if (kernel && linear.features !== supports) {
        throw new RangeError(`${linear.features} coefficients for ${supports} support vectors`);
      }
      return { kernel, linear, isOneClass, features: (kernel?.vectors ?? linear).features };
    },
    build: (call) => rowsOnHost(call, call.attributes),
    evaluate(call) {
      const { kernel, linear, isOneClass } = call.attributes;
      const rows = narrowRowsOf(call, call.attributes);
      const compared = kernel
        ? { count: rows.count, width: linear.features, data: compareRows(rows, kernel) }
        : rows;
      const sums = multiplyRows(compared, linear);
      const data = isOneClass ? sums.map((sum) => sum > 0 ? 1 : -1) : sums;
      return [{ dtype: "f32", shape: [rows.count, 1], data }];
    },
  }),
];
