// recognize_activations: functions that exporters write out of sums and products become one `unary`, which
// is one pass over memory, and which precision "fast" joins with the rounding behind it (spec TL-8):
//   x · ½ · (1 + erf(x · √½))                                → gelu, factors in any order
//   x · ½ · (1 + tanh(√(2/π) · (x + 0.044715 · x³)))         → gelu_tanh
//   x · sigmoid(x)                                           → silu
// Constants may differ by what float32 leaves of them.

import type { Node, Value } from "../../graph/graph.ts";
import type { UnaryName } from "../../../functions/unary.ts";
import { makerOf, type MatchContext, nameOf, sameShape, singleNumber } from "./match.ts";
import { defineReplacement, type Pass } from "./pass.ts";

/** Makes one op of an activation that is written out. */
export const recognizeActivations: Pass = defineReplacement({
  name: "recognize_activations",
  reads: { binary: ["kind"], unary: ["kind"] },
  match(node, seen) {
    const [result] = node.outputs;
    const found = result?.dtype === "f32" ? matchNode(node, seen) : undefined;
    return found && sameShape(found.x, result!) ? found : undefined;
  },
  replace: ({ node, op, moved }, { kind, x }) => op("unary", [moved(x)], { kind }, node.name),
});

interface Found {
  readonly kind: UnaryName;
  readonly x: Value;
}

/** A table of forms: what is left of a product of x and this factor when numbers are taken off. */
const FACTORS: readonly {
  readonly kind: UnaryName;
  /** The number in front. */
  readonly scale: number;
  matches(factor: Value, x: Value, context: MatchContext): boolean;
}[] = [
  { kind: "gelu", scale: 0.5, matches: isOnePlusErf },
  { kind: "gelu_tanh", scale: 0.5, matches: isOnePlusTanh },
  { kind: "silu", scale: 1, matches: isSigmoid },
];

function matchNode(node: Node, context: MatchContext): Found | undefined {
  if (nameOf(node) !== "mul") return undefined;
  const { factors: [a, b, ...more], scale } = factorsOf(node.outputs[0]!, context, true);
  if (!a || !b || more.length > 0) return undefined;
  for (const [x, factor] of [[a, b], [b, a]] as const) {
    const form = FACTORS.find((form) =>
      isNear(scale, form.scale) && form.matches(factor, x, context)
    );
    if (form) return { kind: form.kind, x };
  }
  return undefined;
}

/** A product as its factors, numbers multiplied; inner products only where nothing else reads them. */
function factorsOf(
  value: Value,
  context: MatchContext,
  isRoot = false,
): { readonly factors: readonly Value[]; readonly scale: number } {
  const number = singleNumber(value);
  if (number !== undefined) return { factors: [], scale: number };
  const node = context.made.get(value);
  const isInner = isRoot || context.uses.get(value) === 1;
  if (!node || !isInner) return { factors: [value], scale: 1 };
  const [a, b] = node.inputs;
  if (nameOf(node) === "mul") {
    const left = factorsOf(a!, context), right = factorsOf(b!, context);
    return { factors: [...left.factors, ...right.factors], scale: left.scale * right.scale };
  }
  const divisor = nameOf(node) === "div" ? singleNumber(b!) : undefined;
  if (divisor === undefined) return { factors: [value], scale: 1 };
  const { factors, scale } = factorsOf(a!, context);
  return { factors, scale: scale / divisor };
}

/** `scale` where a value is x times that number. */
function multipleOf(value: Value, x: Value, context: MatchContext): number | undefined {
  if (value === x) return 1;
  const { factors, scale } = factorsOf(value, context, true);
  return factors.length === 1 && factors[0] === x ? scale : undefined;
}

/** The other summand of a sum with 1. */
function withoutOne(value: Value, context: MatchContext): Value | undefined {
  const [a, b] = makerOf(value, "add", context)?.inputs ?? [];
  if (!a || !b) return undefined;
  if (singleNumber(b) === 1) return a;
  return singleNumber(a) === 1 ? b : undefined;
}

function isOnePlusErf(factor: Value, x: Value, context: MatchContext): boolean {
  const inner = unaryOf(withoutOne(factor, context), "erf", context);
  return inner !== undefined && isNear(multipleOf(inner, x, context), Math.SQRT1_2);
}

function isOnePlusTanh(factor: Value, x: Value, context: MatchContext): boolean {
  const inner = unaryOf(withoutOne(factor, context), "tanh", context);
  if (!inner) return false;
  const { factors: [sum, ...more], scale } = factorsOf(inner, context, true);
  const [a, b] = sum && more.length === 0 ? makerOf(sum, "add", context)?.inputs ?? [] : [];
  if (!a || !b || !isNear(scale, Math.sqrt(2 / Math.PI))) return false;
  return [[a, b], [b, a]].some(([first, cubes]) =>
    first === x && isNear(cubeScale(cubes!, x, context), 0.044715)
  );
}

/** `scale` where a value is x³ times that number. */
function cubeScale(value: Value, x: Value, context: MatchContext): number | undefined {
  const { factors, scale } = factorsOf(value, context, true);
  if (factors.length === 3 && factors.every((factor) => factor === x)) return scale;
  const power = factors.length === 1 ? makerOf(factors[0]!, "pow", context) : undefined;
  const isCube = power?.inputs[0] === x && singleNumber(power.inputs[1]!) === 3;
  return isCube ? scale : undefined;
}

function isSigmoid(factor: Value, x: Value, context: MatchContext): boolean {
  return unaryOf(factor, "sigmoid", context) === x;
}

/** What a function is applied to. */
function unaryOf(value: Value | undefined, kind: string, context: MatchContext): Value | undefined {
  return value && makerOf(value, kind, context)?.inputs[0];
}

function isNear(value: number | undefined, wanted: number): boolean {
  return value !== undefined && Math.abs(value - wanted) < 1e-6 * wanted;
}
