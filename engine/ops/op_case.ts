// What an op offers to test its kernels with. A case is one node and its inputs; the self-test
// (engine/run/kernel_checks.ts) runs it on a backend and on the reference and compares. Cases come from a
// seeded generator, so a failure can be repeated from its seed.

import { type Dim, type DimEnv, formatDim } from "../graph/dim/mod.ts";
import type { Attributes, DataType, HostData, StateType } from "../graph/graph.ts";

/** A seeded source of test data. */
export interface CaseRandom {
  /** Uniform integer, both ends included. */
  integer(min: number, max: number): number;
  /** `count` values of a normal distribution times `scale` (default 1). */
  normal(count: number, scale?: number): Float32Array;
  /** An f32 input of normal values; symbols in the shape take their value from `bindings`. */
  input(shape: readonly Dim[], bindings?: DimEnv): CaseInput;
  /** An i32 input of given values. */
  indices(values: readonly number[]): CaseInput;
  /** A vector of given values in any element type; 64-bit integers may be bigint. */
  typed(dtype: DataType, values: readonly (number | bigint)[]): CaseInput;
  /** A bool input, evenly 0 and 1. */
  truths(shape: readonly number[]): CaseInput;
  /** An input of 8-bit codes, evenly over all of them. */
  codes(dtype: "u8" | "i8", shape: readonly number[]): CaseInput;
  /** A weight of normal values, in any number format. */
  weight(format: string, shape: readonly number[]): CaseInput;
}

/** An input of a case, by how it reaches the node. */
export type CaseInput =
  | {
    /** `quantized` goes through `quantize` first. */
    readonly role: "input" | "constant" | "quantized";
    /** The rows of a quantised one have low sums. */
    readonly isLow?: boolean;
    readonly dtype: DataType;
    readonly shape: readonly Dim[];
    readonly data: HostData;
  }
  | {
    readonly role: "weight";
    /** Name of a record in quant/. */
    readonly format: string;
    readonly shape: readonly number[];
    readonly bytes: Uint8Array;
  }
  | {
    readonly role: "state";
    readonly dtype: StateType;
    readonly shape: readonly number[];
    /** Contents before the run, one array a slot. */
    readonly slots: readonly Float32Array[];
  };

/** One application of an op to given data. */
export interface OpCase {
  /** What is special about it, e.g. `width 33, no weight`. */
  readonly name: string;
  /** The node's inputs; `undefined` for an absent one. */
  readonly inputs: readonly (CaseInput | undefined)[];
  /** The node's attributes; default none. */
  readonly attributes?: Attributes;
  /** Values of the symbols in the inputs' shapes; plans are made for larger ones. */
  readonly bindings?: DimEnv;
  /** How far a kernel may be from the reference here; default: what the op says. */
  readonly tolerance?: Tolerance;
}

/** A case as an op writes it: without a name it is called after its inputs and attributes. */
export type CaseDraft = Omit<OpCase, "name"> & { readonly name?: string };

/** The case with its name, e.g. `f32[N, 4], i32[2]; axis 1; N = 3`. */
export function namedCase(draft: CaseDraft): OpCase {
  const inputs = draft.inputs.map((input) => {
    if (!input) return "none";
    const type = input.role === "weight" ? input.format : input.dtype;
    return `${type}[${input.shape.map(formatDim).join(", ")}]`;
  });
  const attributes = Object.entries(draft.attributes ?? {})
    .map(([name, value]) => `${name} ${typeof value === "string" ? value : JSON.stringify(value)}`);
  const bindings = Object.entries(draft.bindings ?? {}).map(([name, value]) =>
    `${name} = ${value}`
  );
  return {
    name: [inputs, attributes, bindings].map((list) => list.join(", ")).join("; "),
    ...draft,
  };
}

/** A bound on |actual - expected|. */
export interface Tolerance {
  /** Part of the largest magnitude of the expected output. */
  readonly ofLargest: number;
  /** Why it is not the default. */
  readonly reason: string;
}
