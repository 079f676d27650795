// Tensors of a derivation to values of the engine graph, made when an op needs them: a constant or a
// weight, an input for what the caller or an earlier segment gives, a node for dims that are read as
// numbers.

import type { TensorInfo } from "../../formats/source.ts";
import type { GraphBuilder } from "../../graph/builder.ts";
import type { Value } from "../../graph/graph.ts";
import type { HostData } from "../../ops/op.ts";
import { storedInfo } from "./constants.ts";
import type { Entry, Tensor } from "./tensor.ts";

/** The values of one segment. */
export interface Values {
  /**
   * The engine value of a tensor.
   *
   * @param packed The op reads it as a weight, in the layout that its kernel wants.
   */
  valueOf(tensor: Tensor, packed?: boolean): Value;
  /** A tensor that is a value of the graph. */
  adopt(value: Value): Tensor;
  /** Name of a tensor that was there before the segment. */
  sourceOf(tensor: Tensor): string | undefined;
}

/** Starts without any value. */
export function createValues(builder: GraphBuilder, entries: ReadonlyMap<string, Entry>): Values {
  const values = new Map<Tensor, Value>();
  const packedValues = new Map<Tensor, Value>();
  const infos = new Map<Tensor, TensorInfo>();
  const names = new Map<Tensor, string>();
  for (const [name, entry] of entries) {
    if (entry.kind === "tensor" && !names.has(entry)) names.set(entry, name);
  }
  let count = 0;

  function infoOf(tensor: Tensor, name: string): TensorInfo {
    const info = infos.get(tensor) ?? storedInfo(name, tensor);
    infos.set(tensor, info);
    return info;
  }

  function make(tensor: Tensor, packed: boolean): Value {
    const { type, known, stored, dims } = tensor;
    const name = names.get(tensor) ?? `constant.${count++}`;
    if (known && !packed) {
      return builder.constant(name, known.data as HostData, known.shape, known.dtype);
    }
    if (known || stored) return builder.weight(name, infoOf(tensor, name), type.dtype);
    if (dims) {
      const shape = type.shape as readonly number[];
      return builder.op("from_dims", [], { values: dims, shape, dtype: type.dtype }, name)[0]!;
    }
    return builder.input(name, type.shape, type.dtype);
  }

  return {
    valueOf(tensor, packed = false) {
      const made = packed && tensor.known ? packedValues : values;
      const value = made.get(tensor) ?? make(tensor, packed);
      made.set(tensor, value);
      return value;
    },
    adopt(value) {
      const { dtype, shape } = value;
      const tensor: Tensor = { kind: "tensor", type: { dtype, shape } };
      values.set(tensor, value);
      return tensor;
    },
    sourceOf(tensor) {
      const given = names.get(tensor);
      return given !== undefined && !tensor.dims ? given : undefined;
    },
  };
}
