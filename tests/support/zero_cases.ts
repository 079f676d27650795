// Cases with nothing in them, made from the cases that an op offers: wherever a size occurs in the shapes of its
// inputs, it becomes 0 in all of them, for good or in the run only. Which of those an op takes, its own shape rule
// says; what it must give then, its reference.

import { type Dim, type DimEnv, evaluate, symbol } from "../../engine/graph/dim/mod.ts";
import type { Attribute, TensorType } from "../../engine/graph/graph.ts";
import { elementCount } from "../../engine/ops/host_tensor.ts";
import type { OpRecord } from "../../engine/ops/op.ts";
import type { CaseInput, OpCase } from "../../engine/ops/op_case.ts";
import { getFormat } from "../../quant/mod.ts";

/** Distinct cases of an op with sizes of 0, at most `most` of them. */
export function zeroCases(op: OpRecord, cases: readonly OpCase[], most: number): OpCase[] {
  const found = new Map<string, OpCase>();
  for (const opCase of cases) {
    for (const [emptied, known] of emptiedCases(opCase)) {
      const key = signature(emptied);
      if (!found.has(key) && isTaken(op, known) && isTaken(op, emptied)) found.set(key, emptied);
    }
  }
  const all = [...found.values()];
  // Evenly over all cases: they differ in what they are about.
  const step = Math.max(1, all.length / most);
  return Array.from({ length: Math.min(most, all.length) }, (_, i) => all[Math.floor(i * step)]!);
}

/** Cases, each with the same one whose sizes are known: what is refused when it is known is no case of a run. */
function emptiedCases(opCase: OpCase): (readonly [OpCase, OpCase])[] {
  const { inputs, attributes = {}, bindings = {}, name } = opCase;
  const shapes = inputs.flatMap((input) => input && input.role !== "state" ? [input.shape] : []);
  const sizes = new Set(shapes.flat().map((dim) => evaluate(dim, bindings)));
  const everywhere = [...sizes].filter((size) => size > 0).flatMap((size) => {
    const known = withoutSize(opCase, size, 0);
    return [
      ...known.map((one) => [one, one] as const),
      ...withoutSize(opCase, size, NOTHING).map((one, i) => [one, known[i]!] as const),
    ];
  });
  const single = inputs.flatMap((input, i) =>
    input?.role === "state" ? [] : input?.shape.flatMap((dim, axis) => {
      if (typeof dim !== "number") return [];
      const one = {
        name: `${name}, dim ${axis} of input ${i} is 0`,
        inputs: inputs.with(i, withShape(input, input.shape.with(axis, 0), bindings)),
        attributes,
        bindings,
      };
      return [[one, one] as const];
    }) ?? []
  );
  return [...everywhere, ...single];
}

/** A symbol that every run binds to 0. */
const NOTHING = symbol("nothing");

/** A case with one of its sizes gone, in attributes too and not there: which of them is a size, only the op knows. */
function withoutSize(
  { name, inputs, attributes = {}, bindings = {} }: OpCase,
  size: number,
  nothing: Dim,
): OpCase[] {
  const bound: Record<string, number> = typeof nothing === "number" ? {} : { nothing: 0 };
  for (const [key, value] of Object.entries(bindings)) bound[key] = value === size ? 0 : value;
  const emptied = inputs.map((input) =>
    input &&
    withShape(
      input,
      input.shape.map((dim) =>
        dim === size && canBeSymbol(input) ? nothing : dim === size ? 0 : dim
      ),
      bound,
    )
  );
  const replaced = (value: Attribute): Attribute =>
    Array.isArray(value)
      ? value.map((one) => one === size ? nothing : one) as Attribute
      : value === size
      ? nothing
      : value;
  const others = Object.fromEntries(
    Object.entries(attributes).map(([key, value]) => [key, replaced(value)]),
  );
  const kind = typeof nothing === "number" ? "0" : "0 in a run";
  return [attributes, others].map((given) => ({
    name: `${name}, ${size} is ${kind}${given === attributes ? "" : ", in attributes too"}`,
    inputs: emptied,
    attributes: given,
    bindings: bound,
  }));
}

function canBeSymbol({ role }: CaseInput): boolean {
  return role === "input" || role === "quantized";
}

function withShape(input: CaseInput, shape: readonly Dim[], bindings: DimEnv): CaseInput {
  const sizes = shape.map((dim) => evaluate(dim, bindings));
  const count = elementCount(sizes);
  if (input.role === "weight") {
    const { role, format } = input, { blockSize, blockBytes } = getFormat(format);
    return {
      ...{ role, format },
      shape: sizes,
      // Of weights with nothing in them nobody has to make any.
      get bytes() {
        return count === 0
          ? new Uint8Array()
          : input.bytes.subarray(0, count / blockSize * blockBytes);
      },
    };
  }
  if (input.role === "state") return input;
  return { ...input, shape, data: input.data.slice(0, count) };
}

function isTaken(op: OpRecord, { inputs, attributes = {} }: OpCase): boolean {
  const types = inputs.map((input): TensorType | undefined =>
    input && {
      dtype: input.role === "weight"
        ? "f32"
        : input.role === "quantized"
        ? input.isLow ? "q8_low" : "q8"
        : input.dtype as "f32",
      shape: input.shape,
    }
  );
  try {
    op.infer(types, op.attributes(attributes));
    return true;
  } catch {
    return false;
  }
}

function signature({ inputs, attributes, bindings }: OpCase): string {
  return JSON.stringify([
    inputs.map((input) =>
      input && [input.role, input.role === "weight" && input.format, input.shape]
    ),
    attributes,
    bindings,
  ]);
}
