// The record that every op fills in: one file in records/, one line in mod.ts. It says what an op means: the
// shape rule, the scalar reference (the living definition, by which every kernel is judged), and what
// planning may know of it. How it is run stands in the kernel tables of the backends.

import type { AttributeRules } from "./attributes.ts";
import type { OpRules } from "../graph/op_rules.ts";
import type { DimEnv } from "../graph/dim/mod.ts";
import type { Attributes, HostData, Node } from "../graph/graph.ts";
import type { HostTensor } from "./host_tensor.ts";
import type { CaseInput, CaseRandom, OpCase, Tolerance } from "./op_case.ts";
import type { Moves } from "./moves.ts";
import type { Rowwise } from "./row_cut.ts";

export type { Attributes, CaseInput, CaseRandom, HostData, HostTensor, OpCase, Tolerance };

/** Everything a scalar reference may use. */
export interface ReferenceCall {
  /** `undefined` stands for an absent optional input. */
  readonly inputs: readonly (HostTensor | undefined)[];
  /** Zero-filled, shaped by the shape rule; an in-place output shares its input's data. */
  readonly outputs: readonly HostTensor[];
  /** Complete attributes of the node. */
  readonly attributes: Attributes;
  /** Values of the symbols. */
  readonly env: DimEnv;
  /**
   * States of one op call, by slot: a `state` input's HostTensor is a placeholder; the data of slot `s`
   * is `stateOf(inputIndex, s)`, shaped like the input.
   */
  stateOf(inputIndex: number, slot: number): HostTensor;
}

/** One op. */
export interface OpRecord extends OpRules {
  /** Name by which nodes refer to it; also the name of its file. */
  readonly name: string;
  /** One line: what it computes. */
  readonly summary: string;
  /** What each attribute may be, and its default. */
  readonly rules: AttributeRules;
  /** Plain loops, float64 accumulation, never optimised. */
  reference(call: ReferenceCall): void;
  /**
   * True if element i of the result follows from element i of each input, or from one that is repeated: it may be
   * written over an input of its own shape, since kernels and references read an element before they write it.
   */
  readonly elementwise?: boolean;
  /** True if each row of the result follows from the same row of its inputs, and of weights. */
  readonly byRows?: boolean;
  /** Inputs whose elements are only moved; the others (indices) say where to. */
  readonly movedInputs?: readonly number[] | "all";
  /** Where a node moves them, as boxes: backends have one kernel for all such ops. `undefined`: not this node. */
  moves?(node: Node): Moves | undefined;
  /** The input that kernels read packed, a matrix in a layout of their own. Others are read element by element. */
  readonly packedInput?: number;
  /** How a node works row by row, so that it can follow another one without a barrier; absent: it does not. */
  rowwise?(node: Node): Rowwise | undefined;
  /** Inputs to judge kernels by: sizes 0, 1, around SIMD widths and blocks, every attribute. */
  readonly cases?: (random: CaseRandom) => OpCase[];
  /** How far a kernel may be from the reference; the default is 1e-5 of the largest magnitude. */
  readonly tolerance?: Tolerance;
}
