// Einsum as products of matrices: operands are joined one by one, each pair as one batched product over
// the labels that both have and nobody needs any more. Repeated labels in an operand are diagonals.
// Dims under an ellipsis broadcast; they have labels "0", "1", … counted from the right.

import { type Dim, equal, mul, product } from "../../graph/dim/mod.ts";
import { required, text } from "../derivation/attributes.ts";
import { castTo } from "../derivation/elementwise.ts";
import { type OnnxCall, type OnnxOp, onnxOp } from "../derivation/op.ts";
import type { Tensor } from "../derivation/tensor.ts";
import { permuted } from "./layout.ts";
import { sliced } from "./slicing.ts";

interface Operand {
  readonly tensor: Tensor;
  /** One a dim. */
  readonly labels: readonly string[];
}

type Call = OnnxCall<unknown>;

function parse(
  equation: string,
  tensors: readonly Tensor[],
): { readonly terms: string[][]; readonly output: string[] } {
  const [left, right, ...rest] = equation.replaceAll(/\s/g, "").split("->");
  const texts = left!.split(",");
  if (rest.length > 0 || texts.length !== tensors.length) {
    throw new RangeError(`equation "${equation}" does not fit ${tensors.length} inputs`);
  }
  const terms = texts.map((term, i) => labelsOf(term, tensors[i]!.type.shape.length, equation));
  const broadcast = [...new Set(terms.flat().filter((label) => /\d/.test(label)))]
    .sort((a, b) => Number(b) - Number(a));
  const output = right === undefined
    ? [...broadcast, ...single(terms.flat())]
    : right.includes("...")
    ? right.split("...").flatMap((part, i) => i === 0 ? [...part, ...broadcast] : [...part])
    : [...right];
  if (!output.every((label) => terms.flat().includes(label))) {
    throw new RangeError(`equation "${equation}" has an output label that no input has`);
  }
  return { terms, output };
}

function labelsOf(term: string, rank: number, equation: string): string[] {
  const [before, after, ...rest] = term.split("...");
  const named = [...before!, ...after ?? ""];
  const hidden = after === undefined ? 0 : rank - named.length;
  if (
    rest.length > 0 || hidden < 0 || named.length + hidden !== rank ||
    !/^[a-zA-Z]*$/.test(named.join(""))
  ) {
    throw new RangeError(`term "${term}" of equation "${equation}" does not fit ${rank} dims`);
  }
  const middle = Array.from({ length: hidden }, (_, i) => String(hidden - 1 - i));
  return [...before!, ...middle, ...after ?? ""];
}

/** Labels that occur once, in alphabetical order: the output where none is written. */
function single(labels: readonly string[]): string[] {
  return labels.filter((label) =>
    /\D/.test(label) && labels.indexOf(label) === labels.lastIndexOf(label)
  ).sort();
}

/** Dims with the same label become one. */
function diagonal(call: Call, operand: Operand): Operand {
  const { labels, tensor } = operand;
  const first = labels.findIndex((label, axis) => labels.indexOf(label, axis + 1) >= 0);
  if (first < 0) return operand;
  const second = labels.indexOf(labels[first]!, first + 1);
  const others = labels.map((_, axis) => axis).filter((axis) => axis !== first && axis !== second);
  const moved = permuted(call, { x: tensor, perm: [...others, first, second] });
  const size = tensor.type.shape[first]!;
  if (typeof size !== "number") throw new RangeError("a diagonal needs a known size");
  const shape = others.map((axis) => tensor.type.shape[axis]!);
  const flat = call.one("reshape", [moved], { shape: [...shape, mul(size, size)] });
  const cut = { start: 0, size, step: size + 1 };
  return diagonal(call, {
    tensor: sliced(call, { x: flat, cuts: new Map([[others.length, cut]]) }),
    labels: [...others.map((axis) => labels[axis]!), labels[first]!],
  });
}

/** Sums over the labels that nobody needs. */
function sumOut(call: Call, { tensor, labels }: Operand, needed: ReadonlySet<string>): Operand {
  const axes = labels.flatMap((label, axis) => needed.has(label) ? [] : [axis]);
  if (axes.length === 0) return { tensor, labels };
  return {
    tensor: call.one("reduce", [tensor], { kind: "sum", axes, keep: false }),
    labels: labels.filter((label) => needed.has(label)),
  };
}

/** One batched matrix product. */
function contract(
  call: Call,
  { a, b, needed }: {
    readonly a: Operand;
    readonly b: Operand;
    readonly needed: ReadonlySet<string>;
  },
): Operand {
  const left = sumOut(call, a, new Set([...needed, ...b.labels]));
  const right = sumOut(call, b, new Set([...needed, ...a.labels]));
  const shared = left.labels.filter((label) => right.labels.includes(label));
  const batch = shared.filter((label) => needed.has(label));
  const inner = shared.filter((label) => !needed.has(label));
  const rows = left.labels.filter((label) => !shared.includes(label));
  const columns = right.labels.filter((label) => !shared.includes(label));
  const sizes = new Map<string, Dim>();
  for (const { labels, tensor } of [left, right]) {
    labels.forEach((label, axis) => {
      const size = tensor.type.shape[axis]!, known = sizes.get(label);
      if (known === undefined || equal(known, 1)) sizes.set(label, size);
    });
  }
  const x = grouped(call, spread(call, { operand: left, labels: inner, sizes }), [
    batch,
    rows,
    inner,
  ]);
  const y = grouped(call, spread(call, { operand: right, labels: inner, sizes }), [
    batch,
    inner,
    columns,
  ]);
  const multiplied = call.one("matmul_nd", [x, y]);
  const labels = [...batch, ...rows, ...columns];
  const shape = labels.map((label) => sizes.get(label)!);
  return { tensor: call.one("reshape", [multiplied], { shape }), labels };
}

/** Repeats dims of size 1 that are summed over together with longer ones. */
function spread(
  call: Call,
  { operand, labels, sizes }: {
    readonly operand: Operand;
    readonly labels: readonly string[];
    readonly sizes: ReadonlyMap<string, Dim>;
  },
): Operand {
  const { shape } = operand.tensor.type;
  const full = shape.map((dim, axis) => {
    const label = operand.labels[axis]!;
    return labels.includes(label) ? sizes.get(label)! : dim;
  });
  if (full.every((dim, axis) => equal(dim, shape[axis]!))) return operand;
  return { ...operand, tensor: call.one("expand", [operand.tensor], { shape: full }) };
}

/** Batch dims one by one, the dims of the two groups behind as one each. */
function grouped(
  call: Call,
  { tensor, labels }: Operand,
  [batch, first, second]: readonly [readonly string[], readonly string[], readonly string[]],
): Tensor {
  const order = [...batch, ...first, ...second].map((label) => labels.indexOf(label));
  const sizes = (group: readonly string[]) =>
    group.map((label) => tensor.type.shape[labels.indexOf(label)]!);
  const shape = [...sizes(batch), product(sizes(first)), product(sizes(second))];
  return call.one("reshape", [permuted(call, { x: tensor, perm: order })], { shape });
}

/** Einsum. */
export const einsumOps: readonly OnnxOp[] = [
  onnxOp("Einsum", {
    versions: [12],
    attributes: { equation: required(text()) },
    build(call) {
      const tensors = call.inputs.map((_, index) => call.input(index));
      const { terms, output } = parse(call.attributes.equation, tensors);
      const { dtype } = tensors[0]!.type;
      // Products exist for floats and wide integers.
      const computed = ["i8", "u8", "i16", "u16"].includes(dtype) ? "i32" : dtype;
      const operands = tensors.map((tensor, i) =>
        diagonal(call, { tensor: castTo(call, { x: tensor, to: computed }), labels: terms[i]! })
      );
      const joined = operands.reduce((left, right, i) => {
        const needed = new Set([...output, ...terms.slice(i + 1).flat()]);
        return contract(call, { a: left, b: right, needed });
      });
      const summed = sumOut(call, joined, new Set(output));
      const perm = output.map((label) => summed.labels.indexOf(label));
      return [castTo(call, { x: permuted(call, { x: summed.tensor, perm }), to: dtype })];
    },
  }),
];
