// Random tensors. A seed that is a whole number draws what NumPy's RandomState draws from it; a node
// without a seed draws from one made of its name, because the same model must give the same answer.

import type { Dim } from "../../graph/dim/mod.ts";
import type { DataType } from "../../graph/graph.ts";
import { getElement } from "../../ops/host_tensor.ts";
import { float, int, ints, required } from "../derivation/attributes.ts";
import { applyBinary, applyUnary, castTo } from "../derivation/elementwise.ts";
import { type OnnxCall, type OnnxOp, onnxOp } from "../derivation/op.ts";
import type { Tensor } from "../derivation/tensor.ts";
import { elementType } from "./casts.ts";

interface Draw {
  readonly kind: "uniform" | "normal";
  readonly shape: readonly Dim[];
  readonly dtype: DataType;
  readonly offset?: number;
  readonly scale?: number;
  readonly seed: number | undefined;
}

function draw(call: OnnxCall<unknown>, { dtype, seed, ...rest }: Draw): Tensor {
  const drawn = ["f32", "f16", "bf16", "f64"].includes(dtype) ? dtype : "f32";
  const attributes = { ...rest, dtype: drawn, seed: wholeSeed(seed, call.node.name) };
  return castTo(call, { x: call.one("random", [], attributes), to: dtype });
}

function wholeSeed(seed: number | undefined, name: string): number {
  if (seed === undefined) {
    let hash = 0;
    for (const character of name) hash = Math.imul(hash, 31) + character.codePointAt(0)! | 0;
    return hash >>> 0;
  }
  if (Number.isInteger(seed) && seed >= 0 && seed < 2 ** 32) return seed;
  return new Uint32Array(Float32Array.of(seed).buffer)[0]!;
}

/** What the two parameters are called; their defaults are 0 and 1. */
const DISTRIBUTIONS = {
  Normal: { kind: "normal", offset: "mean", scale: "scale" },
  Uniform: { kind: "uniform", offset: "low", scale: "high" },
} as const;

function generator(distribution: keyof typeof DISTRIBUTIONS, like: boolean): OnnxOp {
  const { kind, offset, scale } = DISTRIBUTIONS[distribution];
  return onnxOp(`Random${distribution}${like ? "Like" : ""}`, {
    versions: [1],
    attributes: {
      dtype: int(),
      seed: float(),
      shape: like ? ints(undefined, { since: Infinity }) : required(ints()),
      [offset]: float(0),
      [scale]: float(1),
    },
    build(call) {
      const given = call.attributes as Readonly<Record<string, unknown>>;
      const from = given[offset] as number, to = given[scale] as number;
      const dtype = given.dtype as number | undefined;
      const source = like ? call.input(0).type : undefined;
      return [draw(call, {
        kind,
        shape: source?.shape ?? given.shape as readonly number[],
        dtype: dtype === undefined ? source?.dtype ?? "f32" : elementType(call, dtype),
        offset: from,
        scale: kind === "uniform" ? to - from : to,
        seed: given.seed as number | undefined,
      })];
    },
  });
}

/** Ops that draw random numbers. */
export const randomOps: readonly OnnxOp[] = [
  onnxOp("Bernoulli", {
    versions: [15],
    attributes: { dtype: int(), seed: float() },
    build(call) {
      const probabilities = call.input(0);
      const { dtype, shape } = probabilities.type;
      const { seed, dtype: to } = call.attributes;
      const drawn = draw(call, { kind: "uniform", shape, dtype, seed });
      const hit = applyBinary(call, { kind: "less", a: drawn, b: probabilities });
      return [castTo(call, { x: hit, to: to === undefined ? dtype : elementType(call, to) })];
    },
  }),
  /** Dropout: the input itself but in training, which version 12 asks for and the first two assume. */
  onnxOp("Dropout", {
    versions: [1, 6, 7, 10, 12],
    attributes: {
      consumed_inputs: ints(undefined, { until: 5 }),
      is_test: int(0, { until: 6 }),
      ratio: float(0.5, { until: 11 }),
      seed: int(undefined, { since: 12 }),
    },
    build(call) {
      const x = call.input(0);
      const { dtype, shape } = x.type;
      const training = call.version < 7
        ? call.attributes.is_test === 0
        : call.inputs[2] !== undefined && getElement(call.contents(2), 0) !== 0;
      const ratio = call.inputs[1] ? getElement(call.contents(1), 0) : call.attributes.ratio;
      const maskType = call.version < 10 ? dtype : "bool";
      if (!training || ratio === 0) {
        if (!call.wanted[1]) return [x];
        const one = call.scalar("u8", 1);
        return [x, castTo(call, { x: call.one("expand", [one], { shape }), to: maskType })];
      }
      const drawn = draw(call, {
        kind: "uniform",
        shape,
        dtype: "f64",
        seed: call.attributes.seed,
      });
      const kept = applyBinary(call, {
        kind: "greater_equal",
        a: drawn,
        b: call.scalar("f64", ratio),
      });
      const factor = call.scalar(dtype, 1 / (1 - ratio));
      const scaled = applyBinary(call, { kind: "mul", a: x, b: factor });
      const dropped = call.one("where", [kept, scaled, call.scalar(dtype, 0)]);
      return [dropped, call.wanted[1] ? castTo(call, { x: kept, to: maskType }) : undefined];
    },
  }),
  generator("Normal", false),
  generator("Normal", true),
  generator("Uniform", false),
  generator("Uniform", true),
  /** Multinomial: the largest of log-probability plus Gumbel noise is a sample of the distribution. */
  onnxOp("Multinomial", {
    versions: [7],
    attributes: { dtype: int(6), sample_size: int(1), seed: float() },
    build(call) {
      const x = castTo(call, { x: call.input(0), to: "f32" });
      const [batch, classes] = x.type.shape as [Dim, Dim];
      const { dtype, sample_size: samples, seed } = call.attributes;
      const shape = [batch, samples, classes];
      const drawn = draw(call, { kind: "uniform", shape, dtype: "f32", seed });
      const spread = applyUnary(call, {
        kind: "neg",
        x: applyUnary(call, { kind: "log", x: drawn }),
      });
      const noise = applyUnary(call, {
        kind: "neg",
        x: applyUnary(call, { kind: "log", x: spread }),
      });
      const lines = call.one("reshape", [x], { shape: [batch, 1, classes] });
      const scores = applyBinary(call, { kind: "add", a: noise, b: lines });
      const best = call.one("arg_reduce", [scores], { kind: "max", axis: 2, keep: false });
      return [castTo(call, { x: best, to: elementType(call, dtype) })];
    },
  }),
];
