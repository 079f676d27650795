// Builds the graph of a network from its spec, a config and tensors: reads the steps in order, and asks atoms for ops.
// Weights stay in the file until a backend asks for them. Tensors are found by name and held against the shapes that the
// config gives, so that a config of one model beside the weights of another is an error at the layer where they part.

import { FormatError } from "../../errors.ts";
import type { TensorInfo } from "../../formats/source.ts";
import { createGraphBuilder, type GraphBuilder } from "../../graph/builder.ts";
import type { Dim } from "../../graph/dim/mod.ts";
import type { Graph, Value } from "../../graph/graph.ts";
import { errorAt } from "../../graph/node_error.ts";
import { getOp } from "../../ops/mod.ts";
import { type LowRank, type Part, partOf, type Site, viewed } from "./atoms/atom.ts";
import { ATOMS } from "./atoms/mod.ts";
import { filledIn, type Known, type Names, valueOf } from "./expression.ts";
import type { Call, NetworkSpec, Step } from "./network_spec.ts";

/** Where tensors are found; a file's map, or what makes some up where a network is only planned. */
export interface TensorSource {
  get(name: string, shape: readonly number[]): TensorInfo | undefined;
}

/** What a network is built from. */
export interface NetworkParts {
  readonly spec: NetworkSpec;
  /** Which of the spec's networks. */
  readonly network: string;
  /** The config, complete. */
  readonly names: Names;
  readonly tensors: TensorSource;
  /** Path or URL of the weights, for messages. */
  readonly file: string;
  /** Sizes that a run has, by the names that inputs of the spec have for them. */
  readonly dims: Readonly<Record<string, Dim>>;
  /** What adapters add to a layer. */
  readonly lowRank?: ((path: string) => readonly LowRank[]) | undefined;
  /** Places whose first result is an output, too, for tests and tools. */
  readonly observe?: readonly string[] | undefined;
}

/** A graph, and the tensors that are in it. */
export interface BuiltNetwork {
  readonly graph: Graph;
  readonly used: ReadonlySet<string>;
}

/** Names and values of a block while its steps are read. */
interface Frame {
  readonly path: string;
  readonly names: Record<string, unknown>;
  readonly values: Map<string, Value>;
}

interface Surroundings extends NetworkParts {
  readonly builder: GraphBuilder;
  readonly used: Set<string>;
  /** Values under one name, the latest last; all blocks see them. */
  readonly piles: Map<string, Value[]>;
  /** Makes an input of the network, when its name is first spoken of. */
  input(name: string): Value | undefined;
}

/**
 * Builds a network.
 *
 * @throws {FormatError} If a tensor is missing or has another shape than the config says.
 * @throws {RangeError} If sizes do not fit.
 */
export function buildNetwork(parts: NetworkParts): BuiltNetwork {
  const { spec, network, names, dims, file } = parts;
  const rule = spec.networks[network];
  if (!rule) throw new TypeError(`${spec.name} has no network "${network}"`);
  const builder = createGraphBuilder(`${spec.name} ${network}`, getOp);
  const frame: Frame = { path: "", names: { ...names }, values: new Map() };
  const input = (name: string) => {
    const sizes = rule.inputs[name]?.map((size) =>
      dims[size] ?? valueOf(size, { names, place: name })
    );
    return sizes && builder.input(name, sizes as Dim[], "f32");
  };
  const all: Surroundings = { ...parts, builder, used: new Set(), piles: new Map(), input };
  runSteps(rule.steps, frame, all);
  for (const [name, value] of Object.entries(rule.outputs)) {
    builder.output(name, named(value, frame, all));
  }
  const graph = builder.build();
  if (graph.nodes.length === 0) throw new FormatError("has no steps", { file });
  return { graph, used: all.used };
}

function runSteps(steps: readonly Step[], frame: Frame, all: Surroundings): void {
  for (const step of steps) runStep(step, frame, all);
}

function runStep(step: Step, frame: Frame, all: Surroundings): void {
  const { names, path: place } = frame;
  if ("let" in step) {
    for (const [name, text] of Object.entries(step.let)) {
      names[name] = valueOf(text, { names, place });
    }
  } else if ("each" in step) {
    const count = valueOf(step.count, { names, place }) as number;
    for (let i = 0; i < count; i++) {
      names[step.each] = i;
      runSteps(step.steps, frame, all);
    }
  } else if ("if" in step) {
    if (valueOf(step.if, { names, place }) === true) runSteps(step.steps, frame, all);
  } else call(step, frame, all);
}

function call(step: Call, frame: Frame, all: Surroundings): void {
  const path = pathOf(step, frame);
  const inputs = step.of.map((operand) =>
    typeof operand === "number"
      ? all.builder.constant(`${path}.${operand}`, Float32Array.of(operand))
      : named(operand, frame, all)
  );
  const given = Object.fromEntries(
    Object.entries(step.parameters).map(([key, value]) => [key, known(value, frame)]),
  );
  const results = all.spec.blocks[step.do]
    ? runBlock(step, { path, inputs, given, frame }, all)
    : runAtom(step, { path, inputs, given, frame }, all);
  step.as.forEach((name, i) => {
    const value = results[i];
    if (!value) throw new FormatError(`${step.do} gives no ${i + 1}th value`, { place: path });
    if (name.startsWith("+")) {
      const pile = all.piles.get(name.slice(1)) ?? [];
      all.piles.set(name.slice(1), [...pile, value]);
    } else frame.values.set(name, value);
  });
  if (step.at !== undefined && all.observe?.includes(path)) all.builder.output(path, results[0]!);
}

/** An atom's or block's surroundings. */
interface Calling {
  readonly path: string;
  readonly inputs: readonly Value[];
  readonly given: Readonly<Record<string, Known>>;
  readonly frame: Frame;
}

function runBlock(
  step: Call,
  { path, inputs, given }: Calling,
  all: Surroundings,
): readonly Value[] {
  const block = all.spec.blocks[step.do]!;
  const frame: Frame = {
    path,
    names: { ...all.names, ...given },
    values: new Map(block.takes.map((name, i) => [name, inputs[i]!])),
  };
  runSteps(block.steps, frame, all);
  return block.gives.map((name) => named(name, frame, all));
}

function runAtom(
  step: Call,
  { path, inputs, given }: Calling,
  all: Surroundings,
): readonly Value[] {
  const atom = ATOMS[step.do]!, { builder, file } = all;
  const complete: Record<string, Known> = {};
  for (const [key, value] of Object.entries({ ...atom.parameters, ...given })) {
    if (value === undefined) {
      throw new FormatError(`${step.do} needs "${key}"`, { file, place: path });
    }
    complete[key] = value;
  }
  const label = step.at === undefined ? join(path, step.do) : path;
  const site: Site = {
    builder,
    path: label,
    given: complete,
    results: step.as.length,
    op: (name, values, attributes = {}) => builder.op(name, values, attributes, label)[0]!,
    weight(name, shape, part) {
      const found = site.find(name, shape, part);
      if (found) return found;
      throw new FormatError(`is missing: needed with shape [${shape}]`, {
        file,
        place: `tensor ${join(path, name)}`,
      });
    },
    find: (name, shape, part = WHOLE) => tensorAt({ name: join(path, name), shape, part }, all),
    lowRank: () => all.lowRank?.(path) ?? [],
  };
  try {
    return [atom.build(site, inputs)].flat() as Value[];
  } catch (error) {
    throw error instanceof FormatError ? error : errorAt(error, path);
  }
}

const WHOLE: Part = [0, 1];

interface Wanted {
  readonly name: string;
  readonly shape: readonly number[];
  readonly part: Part;
}

function tensorAt(
  { name, shape: [rows, ...rest], part }: Wanted,
  { tensors, used, builder, spec }: Surroundings,
): Value | undefined {
  const shape = [rows! * part[1], ...rest];
  const older = Object.entries(spec.renamed ?? {})
    .reduce((text, [now, before]) => text.replace(now, before), name);
  const tensor = tensors.get(name, shape) ?? tensors.get(older, shape);
  if (!tensor) return undefined;
  used.add(tensor.name);
  const taken = partOf(viewed(tensor, shape), part);
  return builder.weight(taken.name, taken);
}

function known(value: unknown, { names, path }: Frame): Known {
  return typeof value === "string" ? valueOf(value, { names, place: path }) : value as Known;
}

function named(name: string, { values, path }: Frame, { piles, input }: Surroundings): Value {
  const isTaken = name.startsWith("-"), pile = piles.get(isTaken ? name.slice(1) : name);
  const known = (isTaken ? pile?.pop() : pile?.at(-1)) ?? values.get(name);
  const value = known ?? (path === "" ? input(name) : undefined);
  if (value) {
    if (!known) values.set(name, value);
    return value;
  }
  throw new FormatError(`has no value "${name}"`, { place: path });
}

function pathOf({ at }: Call, { path, names }: Frame): string {
  return at === undefined ? path : join(path, filledIn(at, { names, place: path }));
}

function join(path: string, name: string): string {
  return path === "" ? name : name === "" ? path : `${path}.${name}`;
}
