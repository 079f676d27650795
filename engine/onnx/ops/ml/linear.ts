// Linear models: a product with a matrix that lies in the attributes, and a number for each row of it.

import { bigints, flag, floats, int, required, texts } from "../../derivation/attributes.ts";
import { mlOp, type OnnxOp } from "../../derivation/op.ts";
import { labelsOf, labelVector } from "./labels.ts";
import { narrowRowsOf, type Rows, rowsOnHost } from "./rows.ts";
import { indexOfGreatest, postTransform, probit, transformScores, writePair } from "./scores.ts";

/** A matrix [outputs, features], and what is added to each output. */
export interface Linear {
  readonly matrix: Float32Array;
  readonly added: Float32Array;
  readonly features: number;
}

/**
 * A matrix of so many outputs.
 *
 * @throws {RangeError} If the coefficients are not whole rows, or another number of intercepts is given.
 */
export function linearOf(
  coefficients: readonly number[],
  { outputs, intercepts = [] }: {
    readonly outputs: number;
    readonly intercepts?: readonly number[] | undefined;
  },
): Linear {
  const features = coefficients.length / outputs;
  if (!(outputs >= 1) || !Number.isSafeInteger(features) || features === 0) {
    throw new RangeError(`${coefficients.length} coefficients for ${outputs} outputs`);
  }
  if (intercepts.length > 0 && intercepts.length !== outputs) {
    throw new RangeError(`${intercepts.length} intercepts for ${outputs} outputs`);
  }
  const added = new Float32Array(outputs);
  added.set(intercepts);
  return { matrix: Float32Array.from(coefficients), added, features };
}

/** rows · matrixᵀ + added, as [N, outputs]. */
export function multiplyRows(rows: Rows, { matrix, added, features }: Linear): Float32Array {
  const outputs = added.length;
  const products = new Float32Array(rows.count * outputs);
  for (let row = 0, at = 0; row < rows.count; row++) {
    const start = row * features;
    for (let output = 0; output < outputs; output++) {
      const column = output * features;
      let sum = added[output]!;
      for (let i = 0; i < features; i++) sum += rows.data[start + i]! * matrix[column + i]!;
      products[at++] = sum;
    }
  }
  return products;
}

/** Linear models. */
export const mlLinearOps: readonly OnnxOp[] = [
  /** LinearClassifier: one row of coefficients for two classes says how likely the second one is. */
  mlOp("LinearClassifier", {
    attributes: {
      classlabels_ints: bigints(),
      classlabels_strings: texts(),
      coefficients: required(floats()),
      intercepts: floats(),
      // Nothing depends on it.
      multi_class: flag(false),
      post_transform: postTransform,
    },
    prepare({ coefficients, intercepts, post_transform: transform, ...given }) {
      const labels = labelsOf(given.classlabels_strings, given.classlabels_ints);
      const outputs = intercepts?.length ?? labels.length;
      if (outputs !== labels.length && !(outputs === 1 && labels.length === 2)) {
        throw new RangeError(`${outputs} scores for ${labels.length} classes`);
      }
      return { labels, transform, linear: linearOf(coefficients, { outputs, intercepts }) };
    },
    build: (call) => rowsOnHost(call, call.attributes.linear),
    evaluate(call) {
      const { labels, transform, linear } = call.attributes;
      const rows = narrowRowsOf(call, linear);
      const products = multiplyRows(rows, linear);
      const outputs = linear.added.length, classes = labels.length;
      const data = new Float32Array(rows.count * classes), picks = new Int32Array(rows.count);
      for (let i = 0; i < rows.count; i++) {
        const scores = products.subarray(i * outputs, (i + 1) * outputs);
        const to = data.subarray(i * classes, (i + 1) * classes);
        if (outputs > 1) {
          picks[i] = indexOfGreatest(scores);
          to.set(scores);
          transformScores(to, transform);
          continue;
        }
        const score = scores[0]!;
        // A model of one class alone says 1 or 0.
        picks[i] = Number(score > 0);
        if (classes === 2) writePair(to, { score, transform });
        else to[0] = transform === "PROBIT" ? probit(score) : score;
      }
      const names = classes > 1 || typeof labels[0] === "string" ? labels : [0n, 1n];
      const shape = [rows.count, classes];
      return [labelVector(names, picks), { dtype: "f32", shape, data }];
    },
  }),
  /** LinearRegressor: one target has no transform but PROBIT. */
  mlOp("LinearRegressor", {
    attributes: {
      coefficients: required(floats()),
      intercepts: floats(),
      post_transform: postTransform,
      targets: int(1),
    },
    prepare: ({ coefficients, intercepts, targets, post_transform: transform }) => ({
      transform,
      linear: linearOf(coefficients, { outputs: targets, intercepts }),
    }),
    build: (call) => rowsOnHost(call, call.attributes.linear),
    evaluate(call) {
      const { transform, linear } = call.attributes;
      const rows = narrowRowsOf(call, linear);
      const data = multiplyRows(rows, linear), targets = linear.added.length;
      for (let at = 0; at < data.length; at += targets) {
        if (targets > 1) transformScores(data.subarray(at, at + targets), transform);
        else if (transform === "PROBIT") data[at] = probit(data[at]!);
      }
      return [{ dtype: "f32", shape: [rows.count, targets], data }];
    },
  }),
];
