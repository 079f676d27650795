// The record of an ONNX op: names, versions and attribute rules as data, and how it becomes engine ops.
// `build` translates one node while the graph is derived; `evaluate` computes on the host at run time and
// serves what no engine graph can hold (strings, sequences) or size (NonZero). An op may have both: it is
// built where that is possible. Records live in ops/, one family a file.

import type { OnnxGraph, OnnxNode } from "../file/model.ts";
import type { Dim } from "../../graph/dim/mod.ts";
import type { Attributes, DataType } from "../../graph/graph.ts";
import type { HostTensor } from "../../ops/host_tensor.ts";
import {
  type OnnxAttributeRules,
  type OnnxAttributesOf,
  readOnnxAttributes,
} from "./attributes.ts";
import { moveStrings } from "./string_codes.ts";
import type { HostValue, Tensor } from "./tensor.ts";

/** What a node's translation may ask and do. */
export interface OnnxCall<A = Readonly<Record<string, unknown>>> {
  /** The node. */
  readonly node: OnnxNode;
  /** The entry of `versions` in force. */
  readonly version: number;
  /** Checked, with defaults. */
  readonly attributes: A;
  /** `undefined` stands for an absent optional input; trailing ones are left out. */
  readonly inputs: readonly (Tensor | undefined)[];
  /** Which outputs are named, and so wanted. */
  readonly wanted: readonly boolean[];
  /** Input `index`. @throws {TypeError} If it is absent. */
  input(index: number): Tensor;
  /** The first inputs: so many that must be there, and so many that may be. @throws {TypeError} As `input`. */
  take(required: number, optional?: number): (Tensor | undefined)[];
  /**
   * Applies an engine op. The result is computed at once when all inputs are known and it is small, as
   * dims when they are shapes, and becomes a node otherwise.
   */
  op(name: string, inputs: readonly (Tensor | undefined)[], attributes?: Attributes): Tensor[];
  /** As `op`, for the only output. */
  one(name: string, inputs: readonly (Tensor | undefined)[], attributes?: Attributes): Tensor;
  /** A constant. */
  constant(data: HostTensor): Tensor;
  /** A constant without dims. */
  scalar(dtype: DataType, value: number): Tensor;
  /** An integer tensor whose elements are dims; a vector unless a shape is given. */
  fromDims(dims: readonly Dim[], dtype?: DataType, shape?: readonly number[]): Tensor;
  /**
   * Elements of integer input `index` as dims.
   *
   * @throws {NeedsContents} If they are not known: the plan is split, and the node built again with them.
   */
  dims(index: number): readonly Dim[];
  /** Elements of input `index` as plain numbers. @throws {NeedsContents} As `dims`. */
  numbers(index: number): readonly number[];
  /** All elements of input `index`. @throws {NeedsContents} As `dims`. */
  contents(index: number): HostTensor;
  /**
   * Derives a body in place: its inputs are `inputs`, names around it are visible.
   *
   * @throws {NeedsHost} If it cannot be derived whole.
   */
  inline(body: OnnxGraph, inputs: readonly Tensor[]): Tensor[];
  /** Leaves the node to `evaluate` at run time. */
  onHost(): never;
  /** Refuses the node; collected with all others before anything runs. */
  unsupported(detail: string): never;
}

/** What an evaluation on the host sees. */
export interface HostCall<A = Readonly<Record<string, unknown>>> {
  readonly node: OnnxNode;
  readonly version: number;
  readonly attributes: A;
  readonly inputs: readonly (HostValue | undefined)[];
  readonly wanted: readonly boolean[];
  /** Input `index`, a tensor of numbers. @throws {TypeError} If it is absent or something else. */
  tensor(index: number): HostTensor;
  /** Runs a body of the node on its inputs. */
  run(body: OnnxGraph, inputs: readonly HostValue[]): Promise<HostValue[]>;
  /** Stops long loops. */
  readonly signal?: AbortSignal | undefined;
}

/** What an evaluation gives: one entry an output. */
export type HostResults = readonly (HostValue | undefined)[];

/** An ONNX op. */
export interface OnnxOp {
  /** As files write it. */
  readonly name: string;
  /** "" (the default) for ai.onnx. */
  readonly domain?: string;
  /**
   * Versions of the operator set that gave the op a meaning or signature of its own, ascending; the
   * greatest that is not above the model's is in force. An op before the first is unsupported.
   */
  readonly versions: readonly number[];
  /** Attributes of all versions. */
  readonly attributes: OnnxAttributeRules;
  /**
   * Checked attributes of a node, or what the op makes of them.
   *
   * @throws {TypeError} As `readOnnxAttributes`. @throws {RangeError} If they do not fit one another.
   */
  read(node: OnnxNode, version: number): Readonly<Record<string, unknown>>;
  /** Translates a node; one entry an output, `undefined` for what is not wanted. */
  readonly build?: (call: OnnxCall) => readonly (Tensor | undefined)[];
  /** Computes a node on the host. */
  readonly evaluate?: (call: HostCall) => HostResults | Promise<HostResults>;
}

/** What an op's file writes; `P` is what its calls have as `attributes`. */
export interface OnnxOpDefinition<R extends OnnxAttributeRules, P = OnnxAttributesOf<R>> {
  readonly domain?: string;
  readonly versions: readonly number[];
  readonly attributes?: R;
  /** Results hold elements of inputs as they are: strings may be among them. */
  readonly moves?: true;
  /**
   * What the attributes of a node come to, made once a node, before anything runs: an ensemble of trees, a table of
   * labels.
   *
   * @throws {RangeError} If the attributes do not fit one another.
   */
  readonly prepare?: (attributes: OnnxAttributesOf<R>, version: number) => P;
  readonly build?: (call: OnnxCall<P>) => readonly (Tensor | undefined)[];
  readonly evaluate?: (call: HostCall<P>) => HostResults | Promise<HostResults>;
}

/** An op of ai.onnx, or of another domain: a record of a definition with typed attributes. */
export function onnxOp<const R extends OnnxAttributeRules, P = OnnxAttributesOf<R>>(
  name: string,
  definition: OnnxOpDefinition<R, P>,
): OnnxOp {
  const { attributes: rules = {} as R, prepare, moves, ...rest } = definition;
  const prepared = new WeakMap<OnnxNode, P>();
  function read(node: OnnxNode, version: number): OnnxAttributesOf<R> | P {
    const known = prepared.get(node);
    if (known !== undefined) return known;
    const given = readOnnxAttributes(rules, { given: node.attributes, version });
    if (!prepare) return given;
    const made = prepare(given, version);
    prepared.set(node, made);
    return made;
  }
  const onStrings = moves && { evaluate: moveStrings };
  return Object.freeze({ name, ...onStrings, ...rest, attributes: rules, read } as OnnxOp);
}

/** An op of com.microsoft, where all are of version 1. */
export function contribOp<const R extends OnnxAttributeRules, P = OnnxAttributesOf<R>>(
  name: string,
  definition: Omit<OnnxOpDefinition<R, P>, "domain" | "versions">,
): OnnxOp {
  return onnxOp<R, P>(name, { domain: "com.microsoft", versions: [1], ...definition });
}

/** An op of ai.onnx.ml, of version 1 unless others are given. */
export function mlOp<const R extends OnnxAttributeRules, P = OnnxAttributesOf<R>>(
  name: string,
  definition: Omit<OnnxOpDefinition<R, P>, "domain" | "versions"> & {
    readonly versions?: readonly number[];
  },
): OnnxOp {
  return onnxOp<R, P>(name, { domain: "ai.onnx.ml", versions: [1], ...definition });
}

/** Thrown by `OnnxCall.dims` and its like: input `index` must be computed before the node can be built. */
export class NeedsContents extends Error {
  /** Which input. */
  readonly index: number;

  constructor(index: number) {
    super(`the contents of input ${index} are not known`);
    this.index = index;
  }
}

/** Thrown by `OnnxCall.onHost`. */
export class NeedsHost extends Error {}

/** Thrown by `OnnxCall.unsupported`. */
export class NotSupported extends Error {}
