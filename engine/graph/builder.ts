// Builds a Graph value by value. Every op is inferred as it is added, so a wrong shape is reported at
// the node that made it, with the node's path; `build` freezes the result. A model spec, the ONNX
// importer and the passes all build through here.

import type { TensorInfo } from "../formats/source.ts";
import { type Dim, equal } from "./dim/mod.ts";
import type {
  Attributes,
  DataType,
  Graph,
  HostData,
  Node,
  StateType,
  TensorType,
  Value,
  ValueRole,
} from "./graph.ts";
import { errorAt } from "./node_error.ts";
import type { OpLookup } from "./op_rules.ts";
import { verifyBuilt } from "./verify.ts";

/** A graph in the making. */
export interface GraphBuilder {
  /** Data given for every run. */
  input(name: string, shape: readonly Dim[], dtype: DataType): Value;
  /**
   * A tensor of a model file; the same TensorInfo gives the same value.
   *
   * @param dtype f32 (the default): the numbers that the format stands for. Any other: elements of that
   *   type exactly as they lie in the file.
   */
  weight(name: string, tensor: TensorInfo, dtype?: DataType): Value;
  /**
   * Small host data.
   *
   * @param dtype Default f32 or i32, by the array.
   * @throws {RangeError} If the data does not fill the shape.
   */
  constant(
    name: string,
    data: ConstantData,
    shape?: readonly number[],
    dtype?: DataType,
  ): Value;
  /** Memory that outlives a run, one copy per session. */
  state(name: string, shape: readonly number[], dtype: StateType): Value;
  /**
   * Applies an op and returns its outputs.
   *
   * @param label Path of the node, e.g. `layers.3.attention.q`; its outputs are named after it.
   * @param types What the op infers, if the caller has asked it for these very inputs and attributes.
   * @throws {UnsupportedError} If there is no such op.
   * @throws {TypeError | RangeError} If inputs or attributes do not fit; the message has the path.
   */
  op(
    name: string,
    inputs: readonly (Value | undefined)[],
    attributes: Attributes,
    label: string,
    types?: readonly TensorType[],
  ): Value[];
  /** Makes a node's result an output of the graph under a name. */
  output(name: string, value: Value): void;
  /** The finished graph, verified and frozen; the builder must not be used afterwards. */
  build(): Graph;
}

/** What a constant may be made of. */
export type ConstantData = HostData;

type Draft<T> = { -readonly [K in keyof T]: T[K] };

/** A node that was inferred, and what it was given. */
interface Inferred {
  readonly given: Attributes;
  readonly inputs: readonly (Value | undefined)[];
  readonly attributes: Attributes;
  readonly types: readonly TensorType[];
}

/** Whether two attributes are one, or lists of the same sizes. */
function isSame(value: unknown, other: unknown): boolean {
  if (Object.is(value, other)) return true;
  return Array.isArray(value) && Array.isArray(other) && value.length === other.length &&
    value.every((item, i) =>
      Object.is(item, other[i]) ||
      typeof item === "object" && typeof other[i] === "object" && equal(item, other[i])
    );
}

/** Whether a node of the same op has the same attributes and inputs of the same types, so that the same is inferred. */
function isAlike(
  { given, inputs }: Inferred,
  attributes: Attributes,
  others: readonly (Value | undefined)[],
): boolean {
  const names = Object.keys(given);
  return inputs.length === others.length && names.length === Object.keys(attributes).length &&
    names.every((name) => isSame(given[name], attributes[name])) &&
    inputs.every((input, i) => {
      const other = others[i];
      if (!input || !other) return input === other;
      return input.dtype === other.dtype && input.shape.length === other.shape.length &&
        input.shape.every((dim, axis) => equal(dim, other.shape[axis]!));
    });
}

/** Starts an empty graph of ops that `ops` knows. */
export function createGraphBuilder(name: string, ops: OpLookup): GraphBuilder {
  const values: Draft<Value>[] = [];
  const nodes: Node[] = [];
  const inputs: Value[] = [];
  const states: Value[] = [];
  const outputs: Value[] = [];
  const weights = new Map<TensorInfo, Value>();
  // By op and label without numbers: a node of a layer is inferred as its twin in the layer before was.
  const twins = new Map<string, Inferred>();

  function addValue(valueName: string, role: ValueRole, type: TensorType): Draft<Value> {
    const { dtype, shape } = type;
    const value = { id: values.length, name: valueName, role, dtype, shape: Object.freeze(shape) };
    values.push(value);
    return value;
  }

  function checkOwn(value: Value): void {
    if (values[value.id] !== value) {
      throw new TypeError(
        `Cannot use value ${value.name} in graph ${name}: it is of another graph`,
      );
    }
  }

  function addNode(
    opName: string,
    { nodeInputs, given, label, inferred }: {
      readonly nodeInputs: readonly (Value | undefined)[];
      readonly given: Attributes;
      readonly label: string;
      readonly inferred?: readonly TensorType[] | undefined;
    },
  ): Value[] {
    const op = ops(opName);
    nodeInputs.forEach((value) => value && checkOwn(value));
    const key = inferred ? "" : `${opName} ${label.replace(/\d+/g, "")}`, known = twins.get(key);
    const twin = known && isAlike(known, given, nodeInputs) ? known : undefined;
    const attributes = twin?.attributes ?? op.attributes(given);
    const types = inferred ?? twin?.types ?? op.infer(nodeInputs, attributes);
    if (!inferred && !twin) twins.set(key, { given, inputs: nodeInputs, attributes, types });
    const inPlace = op.inPlace?.(attributes);
    const results = types.map((type, i) => {
      const source = nodeInputs[inPlace?.[i] ?? -1];
      const role = source?.role === "state" ? "state" : "activation";
      return addValue(types.length === 1 ? label : `${label}.${i}`, role, type);
    });
    nodes.push({
      id: nodes.length,
      op: opName,
      name: label,
      inputs: Object.freeze([...nodeInputs]),
      outputs: Object.freeze([...results]),
      attributes,
    });
    return results;
  }

  return {
    input(inputName, shape, dtype) {
      const value = addValue(inputName, "input", { dtype, shape: [...shape] });
      inputs.push(value);
      return value;
    },
    weight(weightName, tensor, dtype = "f32") {
      const known = weights.get(tensor);
      if (known?.dtype === dtype) return known;
      // Kernels see the numbers a weight stands for; how they are stored is the tensor's format.
      const value = addValue(weightName, "weight", { dtype, shape: [...tensor.shape] });
      value.tensor = tensor;
      weights.set(tensor, value);
      return value;
    },
    constant(constantName, data, shape = [data.length], given) {
      const count = shape.reduce((product, size) => product * size, 1);
      if (count !== data.length) {
        throw new RangeError(
          `Cannot make constant ${constantName}: ${data.length} values for [${shape.join(", ")}]`,
        );
      }
      const dtype = given ?? (data instanceof Int32Array ? "i32" : "f32");
      const value = addValue(constantName, "constant", { dtype, shape: [...shape] });
      value.data = data;
      return value;
    },
    state(stateName, shape, dtype) {
      const value = addValue(stateName, "state", { dtype, shape: [...shape] });
      states.push(value);
      return value;
    },
    op(opName, nodeInputs, attributes, label, types) {
      try {
        return addNode(opName, { nodeInputs, given: attributes, label, inferred: types });
      } catch (error) {
        throw errorAt(error, `Cannot add ${opName} at ${label}`);
      }
    },
    output(outputName, value) {
      checkOwn(value);
      if (value.role !== "activation" || outputs.includes(value)) {
        throw new TypeError(
          `Cannot make ${value.name} the output ${outputName}: it is ${
            value.role === "activation" ? "an output already" : `a graph ${value.role}`
          }`,
        );
      }
      values[value.id]!.name = outputName;
      outputs.push(value);
    },
    build() {
      values.forEach(Object.freeze);
      nodes.forEach(Object.freeze);
      const lists = { nodes, inputs, states, outputs };
      Object.values(lists).forEach(Object.freeze);
      const graph: Graph = Object.freeze({ name, ...lists });
      verifyBuilt(graph, ops);
      return graph;
    },
  };
}
