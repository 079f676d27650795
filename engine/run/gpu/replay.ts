// Layers of a model are alike: what one node was lowered to is what the next one of the same kind is lowered to, on
// other memory. Lowering builds texts and symbolic sizes, milliseconds a node, so it is done once for each kind; for the
// others only the memory is looked up again. A lowering need not know: its ranges are told apart by identity.

import type { GpuSlice, GpuWeight } from "../../../gpu/kernel.ts";
import { formatDim } from "../../graph/dim/mod.ts";
import { exactText } from "../../ops/exact_text.ts";
import type { Node, Value } from "../../graph/graph.ts";
import type { JoinableDispatch } from "./join_norms.ts";
import type { PreparedWeights } from "./prepared_weights.ts";
import type { GpuTextures } from "./textures.ts";

type Dispatch = JoinableDispatch;
/** Finds for another node what a range was for the first one. */
type Place = (node: Node) => GpuSlice;

/** Where things lie. */
export interface GpuMemoryMap {
  slice(value: Value): GpuSlice;
  weight(value: Value): GpuWeight | undefined;
  state(value: Value): GpuSlice;
  scratch(bytes: number): GpuSlice;
  carried(bytes: number): GpuSlice;
  constant(data: ArrayBufferView): GpuSlice;
  /** Shared by nodes of a kind: what is in it is either scratch or told by the kind. */
  readonly texture: GpuTextures["texture"];
  /** Of one weight: a node that asks for it is not lowered like another one. */
  readonly prepared: PreparedWeights["prepared"];
}

/** Text that is equal for nodes of a kind. */
export function kindOf(kernel: string, { op, inputs, outputs, attributes }: Node): string {
  const describe = (value: Value | undefined) =>
    value && [
      value.role,
      value.dtype,
      value.shape.map(formatDim),
      value.tensor?.format,
      value.data ? value.id : undefined,
      inputs.indexOf(value),
    ];
  return exactText([kernel, op, attributes, inputs.map(describe), outputs.map(describe)]);
}

/** What is told apart by where it stands in a node. */
export type RecordedMemory = Omit<GpuMemoryMap, "scratch" | "carried" | "texture" | "prepared">;

/** Memory of a node that remembers which range was what. */
export interface Recorder extends RecordedMemory {
  /** To be called with what finds a range that is the same for all nodes of the kind. */
  keep(find: () => GpuSlice): GpuSlice;
  /** Gives the dispatches of another node; undefined if a range is of unknown origin. */
  replay(dispatches: readonly Dispatch[]): ((node: Node) => Dispatch[]) | undefined;
}

/** Records what a node's lowering asks for; `memory` may be another one by the time of a replay. */
export function createRecorder(first: Node, memory: RecordedMemory): Recorder {
  const places = new Map<GpuSlice, Place>();

  function note(slice: GpuSlice, place: Place): GpuSlice {
    const own = { ...slice };
    places.set(own, place);
    return own;
  }

  /** Which value of another node stands where this one stands in the first. */
  function counterpart(value: Value): ((node: Node) => Value) | undefined {
    const input = first.inputs.indexOf(value), output = first.outputs.indexOf(value);
    if (input >= 0) return (node) => node.inputs[input]!;
    return output >= 0 ? (node) => node.outputs[output]! : undefined;
  }

  function recorded(value: Value, find: (value: Value) => GpuSlice): GpuSlice {
    const other = counterpart(value);
    return other ? note(find(value), (node) => find(other(node))) : find(value);
  }

  return {
    slice: (value) => recorded(value, memory.slice),
    state: (value) => recorded(value, memory.state),
    weight(value) {
      const weight = memory.weight(value), other = counterpart(value);
      if (!weight || !other) return weight;
      return {
        ...weight,
        parts: weight.parts.map((part, p) => ({
          ...part,
          planes: part.planes.map((plane, q) =>
            note(plane, (node) => memory.weight(other(node))!.parts[p]!.planes[q]!)
          ),
        })),
      };
    },
    constant: (data) => note(memory.constant(data), () => memory.constant(data)),
    keep: (find) => note(find(), find),
    replay(dispatches) {
      const found = dispatches.map((dispatch) => ({
        dispatch,
        storage: Object.entries(dispatch.storage).map(([name, slice]) =>
          [name, places.get(slice)] as const
        ),
      }));
      if (found.some(({ storage }) => storage.some(([, place]) => !place))) return undefined;
      return (node) =>
        found.map(({ dispatch, storage }) => ({
          ...dispatch,
          storage: Object.fromEntries(storage.map(([name, place]) => [name, place!(node)])),
        }));
    },
  };
}
