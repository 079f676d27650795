// One graph over several devices: each node goes to its device, values that others read are sent and received, and what the
// devices of a group share (split_roles.ts) becomes a node on each, on a share of heads or channels. What they make of a
// matrix that was cut by columns is a part of a sum: it is carried on through what is linear, and reduced where somebody
// reads it whole, behind which its bias is added. Norms and sums of the stream are computed by every device of a group.

import { UnsupportedError } from "../errors.ts";
import { createGraphBuilder } from "../graph/builder.ts";
import type { Attributes, Graph, HostData, Node, StateType, Value } from "../graph/graph.ts";
import { attentionInputs, attentionList } from "../ops/attention_inputs.ts";
import { getOp } from "../ops/mod.ts";
import type { Partition } from "../run/parts/cut.ts";
import type { StateShare, StateShares } from "../run/parts/part_states.ts";
import { type Share, shareOf, splitTensor } from "./split_weights.ts";
import { type SplitRole, splitRoles } from "./split_roles.ts";

/** Place of the sums over a group: whoever drives the devices. */
export const HOST = -1;

/** A graph in which every node has one device. */
export interface PlacedGraph {
  readonly graph: Graph;
  readonly partition: Partition<number>;
  readonly states: StateShares;
}

/** A value of the graph as it was, in the new one. */
type Form =
  | { readonly kind: "whole"; at(device: number): Value }
  /** By device of a group: its share, or its part of a sum. */
  | {
    readonly kind: "shares" | "parts";
    readonly group: readonly number[];
    readonly values: readonly Value[];
  };

/**
 * Places a graph.
 *
 * @param groups The devices of each node (rules.ts).
 * @throws {UnsupportedError} If a group cannot share what is placed on it; the message names the node.
 */
export function placeGraph(
  graph: Graph,
  groups: ReadonlyMap<Node, readonly number[]>,
): PlacedGraph {
  return new GraphPlacer(graph, groups).place();
}

class GraphPlacer {
  readonly #graph: Graph;
  readonly #groups: ReadonlyMap<Node, readonly number[]>;
  readonly #roles: ReadonlyMap<Node, SplitRole>;
  readonly #builder;
  readonly #forms = new Map<Value, Form>();
  /** Devices by id of a value in the new graph. */
  readonly #homes = new Map<number, number>();
  readonly #states = new Map<string, StateShare>();
  readonly #stateValues = new Map<string, Value>();
  /** Values that follow from inputs alone, without weights: every device makes its own. */
  readonly #free = new Set<Value>();

  constructor(graph: Graph, groups: ReadonlyMap<Node, readonly number[]>) {
    this.#graph = graph;
    this.#groups = groups;
    this.#roles = splitRoles(graph, groups);
    this.#builder = createGraphBuilder(graph.name, getOp);
  }

  place(): PlacedGraph {
    const { nodes, inputs, outputs } = this.#graph;
    for (const value of inputs) {
      const moved = this.#builder.input(value.name, value.shape, value.dtype);
      this.#forms.set(value, { kind: "whole", at: () => moved });
      this.#free.add(value);
    }
    for (const node of nodes) this.#add(node);
    for (const value of outputs) {
      const maker = nodes.find((node) => node.outputs.includes(value));
      this.#builder.output(
        value.name,
        this.#at(value, maker ? this.#groups.get(maker)![0]! : HOST),
      );
    }
    const graph = this.#builder.build();
    const partition = new Map(
      graph.nodes.map((node) => [node, this.#homes.get(node.outputs[0]!.id)!]),
    );
    return { graph, partition, states: this.#states };
  }

  #add(node: Node): void {
    const group = this.#groups.get(node)!, role = this.#roles.get(node);
    if (this.#isFree(node)) {
      for (const value of node.outputs) this.#free.add(value);
      this.#addWhole(node, undefined);
    } else if (role) this.#addShares(node, role, group);
    else if (!this.#carryParts(node, group)) {
      this.#addWhole(node, group);
      if (group.length === 1) node.outputs.forEach((value) => this.#at(value, group[0]!));
    }
  }

  #isFree({ inputs }: Node): boolean {
    return inputs.every((value) => !value || value.role === "constant" || this.#free.has(value));
  }

  /** A node as it is, on each of its devices where it is wanted; `group` undefined: on any. */
  #addWhole(node: Node, group: readonly number[] | undefined): void {
    const made = new Map<number, Value[]>();
    const make = (device: number) => {
      const values = made.get(device) ?? this.#emit(node.op, {
        inputs: node.inputs.map((value) => value && this.#at(value, device)),
        attributes: node.attributes,
        ...{ label: node.name, device },
      });
      made.set(device, values);
      return values;
    };
    node.outputs.forEach((value, i) =>
      this.#forms.set(value, this.#whole(group, (device) => make(device)[i]!))
    );
  }

  /** A value that its devices make, and others receive from the first that has it. */
  #whole(group: readonly number[] | undefined, make: (device: number) => Value): Form {
    const values = new Map<number, Value>();
    let sent: Value | undefined;
    const at = (device: number): Value => {
      const known = values.get(device);
      if (known) return known;
      let value: Value;
      if (!group || group.includes(device)) value = make(device);
      else {
        const from = group.find((one) => values.has(one)) ?? group[0]!;
        sent ??= this.#transfer("send", at(from), { from });
        value = this.#transfer("recv", sent, { at: device });
      }
      values.set(device, value);
      return value;
    };
    return { kind: "whole", at };
  }

  #transfer(
    op: "send" | "recv",
    value: Value,
    attributes: Readonly<Record<string, number>>,
  ): Value {
    const device = Object.values(attributes)[0]!;
    return this.#emit(op, {
      inputs: [value],
      attributes,
      label: `${value.name}.${op}`,
      device,
    })[0]!;
  }

  #emit(
    op: string,
    { inputs, attributes = {}, label, device }: {
      readonly inputs: readonly (Value | undefined)[];
      readonly attributes?: Attributes;
      readonly label: string;
      readonly device: number;
    },
  ): Value[] {
    const values = this.#builder.op(op, inputs, attributes, label);
    for (const { id } of values) this.#homes.set(id, device);
    return values;
  }

  /** A value whole on a device. */
  #at(value: Value, device: number): Value {
    const form = this.#forms.get(value);
    if (!form) {
      const { name, tensor, data, dtype } = value;
      if (tensor) return this.#builder.weight(name, tensor, dtype);
      return data
        ? this.#constant(name, data as HostData, value)
        : this.#state(value, { index: 0, of: 1 });
    }
    if (form.kind === "whole") return form.at(device);
    if (form.kind === "parts") return this.#reduce(value, form).at(device);
    throw new UnsupportedError("is split over a group of devices, and something reads it whole", {
      place: value.name,
      remedy: 'Place whole layers instead, with ";" between devices',
    });
  }

  #constant(name: string, data: HostData, { shape, dtype }: Pick<Value, "shape" | "dtype">): Value {
    return this.#builder.constant(name, data, shape as readonly number[], dtype);
  }

  /** The share of a state, cut by heads. */
  #state({ name, shape, dtype }: Value, share: Share): Value {
    const own = share.of === 1 ? name : `${name} (${share.index + 1} of ${share.of})`;
    let value = this.#stateValues.get(own);
    if (!value) {
      const heads = shareOf(shape[1] as number, {
        ...share,
        what: "heads of keys and values",
        place: name,
      });
      const sizes = (shape as readonly number[]).with(1, heads.count);
      value = this.#builder.state(
        own,
        share.of === 1 ? shape as number[] : sizes,
        dtype as StateType,
      );
      this.#stateValues.set(own, value);
      this.#states.set(own, { name, ...share });
    }
    return value;
  }

  /** Adds up parts of a sum; from now on the value is whole. */
  #reduce(
    value: Value,
    { group, values }: Form & { kind: "parts" | "shares" },
  ): Form & { kind: "whole" } {
    const sent = values.map((part, i) => this.#transfer("send", part, { from: group[i]! }));
    const [sum] = this.#emit("all_reduce", {
      inputs: sent,
      ...{ label: `${value.name}.sum`, device: HOST },
    });
    const form = this.#whole([HOST], () => sum!) as Form & { kind: "whole" };
    this.#forms.set(value, form);
    return form;
  }

  #addShares(node: Node, role: SplitRole, group: readonly number[]): void {
    const [matrix, bias] = node.op === "matmul"
      ? [1, 2]
      : node.op === "expert_matmul"
      ? [1, 3]
      : [];
    const values = group.map((device, index) => {
      const share = { index, of: group.length };
      const inputs = node.inputs.map((value, i) => {
        if (!value) return undefined;
        const axis = value.shape.length === 3 ? 1 : 0;
        if (role === "rows" && i === matrix) return this.#piece(value, axis, share);
        // Those of all experts are one row.
        const groups = node.op === "expert_matmul" ? node.inputs[1]!.shape[0] as number : 1;
        if (role === "rows" && i === bias) return this.#piece(value, 0, { ...share, groups });
        if (role === "columns" && i === matrix) return this.#piece(value, axis + 1, share);
        // Behind the sum, or once.
        if (role === "columns" && i === bias) {
          return node.op === "matmul" || index > 0 ? undefined : this.#at(value, device);
        }
        return role === "rows"
          ? this.#at(value, device)
          : this.#shareOf(node, i, { device, share });
      });
      return this.#emit(node.op, {
        inputs: node.op === "attention" ? attentionList(attentionInputs(inputs)) : trimmed(inputs),
        attributes: sharedAttributes(node, share.of),
        ...{ label: node.name, device },
      })[0]!;
    });
    const [output] = node.outputs as [Value];
    this.#forms.set(output, { kind: role === "columns" ? "parts" : "shares", group, values });
    const added = role === "columns" && node.op === "matmul" ? node.inputs[2] : undefined;
    if (!added) return;
    const sum = this.#reduce(output, { kind: "parts", group, values });
    this.#forms.set(
      output,
      this.#whole(group, (device) =>
        this.#emit("binary", {
          inputs: [sum.at(device), this.#at(added, device)],
          attributes: { kind: "add" },
          ...{ label: `${node.name}.bias`, device },
        })[0]!),
    );
  }

  /** What a device reads of an input of a node that is shared. */
  #shareOf(
    node: Node,
    index: number,
    { device, share }: { readonly device: number; readonly share: Share },
  ): Value {
    const value = node.inputs[index]!;
    const form = this.#forms.get(value);
    if (form?.kind === "shares") return form.values[share.index]!;
    if (!form && value.role === "state") return this.#state(value, share);
    const isPerHead = node.op === "attention" || node.op === "binary";
    if (isPerHead && (value.role === "weight" || value.role === "constant")) {
      return this.#piece(value, 0, share);
    }
    return this.#at(value, device);
  }

  /** A share of a weight or constant along an axis, or of each of its groups there. */
  #piece(value: Value, axis: number, share: Share): Value {
    if (value.tensor) {
      const tensor = splitTensor(value.tensor, { axis, ...share });
      return this.#builder.weight(tensor.name, tensor, value.dtype);
    }
    const { start, count } = shareOf(value.shape[0] as number, {
      ...share,
      what: "entries",
      place: value.name,
    });
    const data = (value.data as Float32Array).slice(start, start + count);
    return this.#constant(`${value.name}[${share.index}]`, data, { ...value, shape: [count] });
  }

  /** Lets a linear node work on parts of a sum; whether it is one. */
  #carryParts(node: Node, group: readonly number[]): boolean {
    const forms = node.inputs.map((value) => value && this.#forms.get(value));
    const isPart = forms.map((form) =>
      form?.kind === "parts" && form.group.join() === group.join()
    );
    if (!isLinear(node, isPart)) return false;
    const values = group.map((device, i) =>
      this.#emit(node.op, {
        inputs: node.inputs.map((value, at) =>
          value && (isPart[at]
            ? (forms[at] as Form & { kind: "parts" }).values[i]!
            : this.#at(value, device))
        ),
        attributes: node.attributes,
        ...{ label: node.name, device },
      })[0]!
    );
    this.#forms.set(node.outputs[0]!, { kind: "parts", group, values });
    return true;
  }
}

/** Whether a node of which some inputs are parts of sums gives a part of the sum of its results. */
function isLinear({ op, attributes: { kind } }: Node, isPart: readonly boolean[]): boolean {
  const [first, second] = isPart;
  if (op === "weighted_sum") return first! && !second;
  if (op === "unary") return first! && kind === "scale";
  if (op !== "binary") return false;
  return kind === "add" ? first! && second! : kind === "mul" && first !== second;
}

/** Attributes of a node that works on a share: sizes in it are those of the share. */
function sharedAttributes({ name, op, attributes, outputs: [y] }: Node, of: number): Attributes {
  if (op !== "reshape") return attributes;
  const what = y!.shape.length === 3 ? "heads" : "channels";
  const { count } = shareOf(y!.shape[1] as number, { index: 0, of, what, place: name });
  return { ...attributes, shape: (attributes.shape as readonly string[]).with(1, String(count)) };
}

function trimmed<T>(inputs: readonly (T | undefined)[]): (T | undefined)[] {
  return inputs.slice(0, 1 + inputs.findLastIndex((value) => value !== undefined));
}
