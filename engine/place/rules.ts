// Placement as data: rules say which nodes of a graph belong to which devices. What they match is words apart by blanks,
// all of which must hold: `*` any node; `first` and `last` what stands before and behind the layers; `layers.3` or
// `layers.3-9` those layers; `op:matmul` nodes of an op; anything else the beginning of a node's name, such as
// `layers.3.attention`. Of several rules the last one counts.

import type { Graph, Node } from "../graph/graph.ts";
import { checkOptionKeys, type OptionKeys } from "../option_keys.ts";
import { getOp } from "../ops/mod.ts";
import { type DeviceGroup, layerRanges, parseGroups } from "./grammar.ts";

/** Nodes, and the devices that compute them: several share them by heads and channels. */
export interface PlacementRule {
  readonly nodes: string;
  /** Indices into the list of devices. */
  readonly devices: readonly number[];
}

/** Where everything is computed. */
export interface Placement {
  /** By name, see device_list.ts. */
  readonly devices: readonly string[];
  readonly rules: readonly PlacementRule[];
}

/**
 * The JSON form.
 * @category Models
 */
export interface PlacementJson {
  /** Their names. */
  readonly devices: readonly string[];
  /** By nodes, number or name of a device, or several. */
  readonly place: Readonly<Record<string, number | string | readonly (number | string)[]>>;
}

const JSON_KEYS: OptionKeys<PlacementJson> = { devices: true, place: true };

/** Layer of a node; undefined if it has none. */
export function layerOf({ name }: Pick<Node, "name">): number | undefined {
  const [, layer] = /(?:^|\.)layers\.(\d+)(?:\.|$)/.exec(name) ?? [];
  return layer === undefined ? undefined : Number(layer);
}

/** Layers that a graph's nodes belong to. */
export function countLayers({ nodes }: Pick<Graph, "nodes">): number {
  return 1 + nodes.reduce((most, node) => Math.max(most, layerOf(node) ?? -1), -1);
}

/**
 * The rules of a text: groups of devices that share the layers.
 *
 * @param nameOf The device that a number means.
 * @throws {RangeError} As `parseGroups` and `layerRanges`.
 */
export function groupRules(
  text: string,
  { layers, nameOf }: { readonly layers: number; readonly nameOf: (written: string) => string },
): Placement {
  const groups = parseGroups(text), devices: string[] = [];
  const numbers = groups.map(({ devices: own }) =>
    own.map((written) => devices.push(nameOf(written)) - 1)
  );
  return { devices, rules: layerRules(groups, { layers, numbers }) };
}

function layerRules(
  groups: readonly DeviceGroup[],
  { layers, numbers }: {
    readonly layers: number;
    readonly numbers: readonly (readonly number[])[];
  },
): PlacementRule[] {
  const own = layerRanges(groups, layers).flatMap(([from, to], i): PlacementRule[] =>
    to > from ? [{ nodes: `layers.${from}-${to - 1}`, devices: numbers[i]! }] : []
  );
  return [...aroundLayers(numbers[0]!, numbers.at(-1)!), ...own];
}

/** Rules, in front of those of layers, of what stands before and behind them; encoders may have nothing behind. */
export function aroundLayers(
  before: readonly number[],
  behind: readonly number[],
): PlacementRule[] {
  return [{ nodes: "*", devices: behind }, { nodes: "first", devices: before }];
}

/**
 * Reads the JSON form.
 *
 * @throws {RangeError} Naming what is wrong with it.
 */
export function jsonRules(json: PlacementJson): Placement {
  const fail = (why: string) => new RangeError(`Cannot use placement: ${why}`);
  checkOptionKeys(json, { of: "placement", known: JSON_KEYS });
  const { devices, place } = json ?? {};
  if (!Array.isArray(devices) || devices.some((name) => typeof name !== "string")) {
    throw fail('"devices" must be a list of names');
  }
  if (typeof place !== "object" || place === null || Array.isArray(place)) {
    throw fail('"place" must say on which devices nodes are computed');
  }
  const numberOf = (device: number | string): number => {
    const index = typeof device === "number" ? device : devices.indexOf(device);
    if (Number.isInteger(index) && index >= 0 && index < devices.length) return index;
    throw fail(`device ${JSON.stringify(device)} is not there; there are ${devices.join(", ")}`);
  };
  const rules = Object.entries(place).map(([nodes, given]): PlacementRule => ({
    nodes,
    devices: (Array.isArray(given) ? given : [given]).map(numberOf),
  }));
  return { devices, rules };
}

/**
 * The devices of each node. What is only another view of a value stays with it.
 *
 * @throws {RangeError} If nodes are of no device: the message names their layers; if a rule is of no node.
 */
export function placeNodes(
  graph: Graph,
  rules: readonly PlacementRule[],
): ReadonlyMap<Node, readonly number[]> {
  const end = graph.nodes.findLastIndex((node) => layerOf(node) !== undefined);
  const matchers = rules.map(({ nodes }) => matcherOf(nodes));
  const idle = new Set(rules);
  const placed = new Map<Node, readonly number[]>(), homes = new Map<number, readonly number[]>();
  const lost: Node[] = [];
  graph.nodes.forEach((node, at) => {
    const place = { layer: layerOf(node), isLast: at > end };
    const own = rules.filter((_, i) => matchers[i]!(node, place));
    for (const rule of own) idle.delete(rule);
    const view = getOp(node.op).view ? homes.get(node.inputs[0]?.id ?? -1) : undefined;
    const devices = view ?? own.at(-1)?.devices;
    if (!devices) return void lost.push(node);
    placed.set(node, devices);
    for (const { id } of node.outputs) homes.set(id, devices);
  });
  if (lost.length > 0) {
    throw new RangeError(`Cannot place the model: ${describe(lost)} on no device`);
  }
  const [unused] = idle;
  if (unused) throw new RangeError(`Cannot place the model: nothing of it is "${unused.nodes}"`);
  return placed;
}

function describe(lost: readonly Node[]): string {
  const layers = [...new Set(lost.flatMap((node) => layerOf(node) ?? []))];
  if (layers.length === 0) return `${lost[0]!.name} is`;
  return `layer${layers.length > 1 ? "s" : ""} ${layers.join(", ")} ${
    layers.length > 1 ? "are" : "is"
  }`;
}

interface NodePlace {
  readonly layer: number | undefined;
  /** Behind all layers. */
  readonly isLast: boolean;
}

type Matcher = (node: Node, place: NodePlace) => boolean;

function matcherOf(pattern: string): Matcher {
  const words = pattern.trim().split(/\s+/).map(wordOf);
  return (node, place) => words.every((word) => word(node, place));
}

function wordOf(word: string): Matcher {
  if (word === "*") return () => true;
  if (word === "first") return (_, { layer, isLast }) => layer === undefined && !isLast;
  if (word === "last") return (_, { layer, isLast }) => layer === undefined && isLast;
  const [, from, to] = /^layers\.(\d+)(?:-(\d+))?$/.exec(word) ?? [];
  if (from !== undefined) {
    const first = Number(from), last = Number(to ?? from);
    return (_, { layer }) => layer !== undefined && layer >= first && layer <= last;
  }
  const [, op] = /^op:(\w+)$/.exec(word) ?? [];
  if (op !== undefined) return (node) => node.op === op;
  return ({ name }) => name === word || name.startsWith(`${word}.`);
}
