// Runs a prepared ONNX graph: segment by segment, host nodes between them. What was derived for one set
// of shapes is kept and used again for the same shapes. A body of a Loop, If or Scan is a program of its
// own, which sees the values around it. Everything that crosses a segment is a value on the host.

import { FormatError } from "../../errors.ts";
import type { OnnxGraph } from "../file/model.ts";
import { errorAt } from "../../graph/node_error.ts";
import { exactText } from "../../ops/exact_text.ts";
import type { HostCall, HostResults } from "../derivation/op.ts";
import { findOp } from "../derivation/opset.ts";
import {
  bodiesOf,
  type ModelContext,
  namesReadBy,
  type PreparedGraph,
  prepareGraph,
  type ScopedNode,
} from "../derivation/prepare.ts";
import type { SegmentRequest } from "../derivation/derivation.ts";
import { constantEntries, deriveSegment, type Segment } from "../derivation/segment.ts";
import { constantTensor, valueOfEntry } from "../derivation/constants.ts";
import { type Entry, type HostValue, isConstant, isHostTensor } from "../derivation/tensor.ts";
import {
  type ProfileEntry,
  type ReadySegment,
  readySegment,
  type Runtime,
} from "./ready_segment.ts";

/** Values by name. */
export type Environment = ReadonlyMap<string, HostValue>;

/** What a run may ask for. */
export interface RunRequest {
  /** Names of the wanted results. */
  readonly outputs: readonly string[];
  readonly signal?: AbortSignal | undefined;
}

/** A graph that runs on host values. */
export interface Program {
  /** @throws {RangeError | TypeError | UnsupportedError} If shapes or types do not fit. */
  run(inputs: Environment, request: RunRequest): Promise<Map<string, HostValue>>;
  /** Time by kernel since the last call. */
  profile(): ProfileEntry[];
  /** Frees what was made ready. */
  dispose(): void;
}

interface Stage {
  readonly segment: Segment;
  ready?: ReadySegment;
  readonly next: Map<string, Stage>;
  readonly bodies: Map<OnnxGraph, Program>;
}

// More sets of shapes than this, and the oldest is derived again when it comes back.
const MOST_STAGES = 32;

/** Where a program is. */
export interface ProgramSurroundings {
  readonly context: ModelContext;
  readonly runtime: Runtime;
  /** Constants around a body. */
  readonly outer?: ReadonlyMap<string, Entry>;
}

/** Makes a program. */
export function createProgram(
  { graph, nodes }: PreparedGraph,
  { context, runtime, outer = new Map() }: ProgramSurroundings,
): Program {
  const constants = new Map<string, Entry>([...outer, ...constantEntries(graph)]);
  const first = new Map<string, Stage>();

  function derive(part: Pick<SegmentRequest, "nodes" | "entries" | "outputs">): Stage {
    const segment = deriveSegment({ context, name: graph.name || "graph", ...part });
    return { segment, next: new Map(), bodies: new Map() };
  }

  async function run(inputs: Environment, request: RunRequest): Promise<Map<string, HostValue>> {
    const environment = new Map<string, HostValue>(inputs);
    const { outputs, signal } = request;
    const key = `${outputs.join("\n")}\n\n${keyOf(inputs.keys(), environment)}`;
    let stage = take(first, key, () => {
      const entries = new Map([...constants, ...entriesOf(inputs.keys(), environment)]);
      return derive({ entries, nodes: neededNodes(nodes, outputs), outputs });
    });
    for (;;) {
      signal?.throwIfAborted();
      const fresh = await runStage({ context, runtime, stage, environment, signal });
      if (stage.segment.rest.length === 0) break;
      stage = nextStage(stage, { fresh, environment, outputs });
    }
    return new Map(outputs.map((name) => [name, valueNamed(stage, name, environment)]));
  }

  // The rest of the graph, now that the results of a stage are there, and the contents that it waited for.
  function nextStage(
    { segment, next }: Stage,
    { fresh, environment, outputs }: {
      readonly fresh: readonly string[];
      readonly environment: Environment;
      readonly outputs: readonly string[];
    },
  ): Stage {
    const { rest, contents, entries, fetches } = segment;
    const values = [...contents].map((name) => [name, contentKey(environment.get(name)!)]);
    return take(next, `${keyOf(fresh, environment)}\n${values.join("\n")}`, () => {
      if (fresh.length === 0 && contents.size === 0) {
        throw new FormatError(`cannot go on at node ${rest[0]!.node.name}`, { file: context.file });
      }
      const known = [...contents].map((name): [string, Entry] => [
        name,
        constantTensor(tensorOf(environment.get(name)!)),
      ]);
      const kept = [...fetches.keys()].filter((name) => !contents.has(name));
      const made = entriesOf([...fresh, ...kept], environment);
      return derive({ entries: new Map([...entries, ...made, ...known]), nodes: rest, outputs });
    });
  }

  return {
    run,
    profile: () => [...first.values()].flatMap(profileOf),
    dispose() {
      for (const stage of first.values()) disposeStage(stage);
      first.clear();
    },
  };
}

/** A stage on its way. */
interface StageRun {
  readonly context: ModelContext;
  readonly runtime: Runtime;
  readonly stage: Stage;
  /** Values so far; results go here. */
  readonly environment: Map<string, HostValue>;
  readonly signal: AbortSignal | undefined;
}

/** Runs a stage's graph and its host nodes. Names of what the host made. */
async function runStage(running: StageRun): Promise<string[]> {
  const { stage, environment, runtime, signal } = running;
  const { segment } = stage;
  if (segment.graph) {
    stage.ready ??= await readySegment(segment, runtime, { signal });
    const results = await stage.ready.run(environment, { signal });
    for (const [name, value] of results) environment.set(name, value);
  }
  for (const [name, source] of segment.copies) environment.set(name, environment.get(source)!);
  const fresh: string[] = [];
  for (const scoped of segment.hostNodes) {
    const results = await evaluate(running, scoped);
    scoped.node.outputs.forEach((name, i) => {
      if (name === "") return;
      const result = results[i];
      if (!result) throw new TypeError(`${scoped.node.name} gives no output ${i}`);
      environment.set(name, result);
      fresh.push(name);
    });
  }
  return fresh;
}

async function evaluate(running: StageRun, scoped: ScopedNode): Promise<HostResults> {
  const { context, runtime, stage, environment, signal } = running;
  const { node } = scoped;
  const { op, version } = findOp(context, scoped);
  const values = node.inputs.map((name) =>
    name === "" ? undefined : valueNamed(stage, name, environment)
  );
  const call: HostCall = {
    node,
    version,
    attributes: op.read(node, version),
    inputs: values.slice(0, values.findLastIndex((value) => value !== undefined) + 1),
    wanted: node.outputs.map((name) => name !== ""),
    tensor(index) {
      const value = values[index];
      if (isHostTensor(value)) return value;
      throw new TypeError(`input ${index} of ${node.name} must be a tensor of numbers`);
    },
    run: (body, inputs) => runBody(running, { scoped, body, inputs }),
    signal,
  };
  runtime.onHostNode?.(node);
  try {
    return await op.evaluate!(call);
  } catch (error) {
    // What is wrong in a body names its own node.
    if (bodiesOf(node).length > 0) throw error;
    throw errorAt(error, `${context.file}, node ${node.name} (${node.opType})`);
  }
}

async function runBody(
  { context, runtime, stage, environment, signal }: StageRun,
  { scoped: { node, opsets }, body, inputs }: {
    readonly scoped: ScopedNode;
    readonly body: OnnxGraph;
    readonly inputs: readonly HostValue[];
  },
): Promise<HostValue[]> {
  const { entries } = stage.segment;
  const captured = new Map<string, HostValue>();
  for (const name of namesReadBy(node)) {
    const value = environment.get(name);
    if (value) captured.set(name, value);
  }
  let program = stage.bodies.get(body);
  if (!program) {
    const outer = new Map(
      [...entries].filter(([name, entry]) => !captured.has(name) && isKnown(entry)),
    );
    const names = new Set([...entries.keys(), ...environment.keys()]);
    const prepared = prepareGraph(context, { graph: body, opsets, outer: names });
    program = createProgram(prepared, { context, runtime, outer });
    stage.bodies.set(body, program);
  }
  body.inputs.forEach(({ name }, i) => inputs[i] && captured.set(name, inputs[i]));
  const outputs = body.outputs.map(({ name }) => name);
  const results = await program.run(captured, { outputs, signal });
  return outputs.map((name) => results.get(name)!);
}

function profileOf({ ready, bodies, next }: Stage): ProfileEntry[] {
  return [
    ...ready?.profile() ?? [],
    ...[...bodies.values()].flatMap((body) => body.profile()),
    ...[...next.values()].flatMap(profileOf),
  ];
}

function disposeStage(stage: Stage): void {
  stage.ready?.dispose();
  for (const body of stage.bodies.values()) body.dispose();
  for (const next of stage.next.values()) disposeStage(next);
}

function take(stages: Map<string, Stage>, key: string, make: () => Stage): Stage {
  const known = stages.get(key) ?? make();
  // The one used last stands last.
  stages.delete(key);
  stages.set(key, known);
  if (stages.size > MOST_STAGES) {
    const [oldest, stage] = stages.entries().next().value!;
    stages.delete(oldest);
    disposeStage(stage);
  }
  return known;
}

/** The nodes that the wanted results depend on. */
export function neededNodes(
  nodes: readonly ScopedNode[],
  outputs: readonly string[],
): ScopedNode[] {
  const needed = new Set(outputs);
  const kept = nodes.toReversed().filter(({ node }) => {
    if (!node.outputs.some((name) => needed.has(name))) return false;
    for (const name of namesReadBy(node)) needed.add(name);
    return true;
  });
  return kept.reverse();
}

function valueNamed(
  { segment }: Stage,
  name: string,
  environment: ReadonlyMap<string, HostValue>,
): HostValue {
  return environment.get(name) ?? constantNamed(segment, name);
}

/** What a segment knows by itself. @throws {TypeError} If a run makes it. */
export function constantNamed({ entries }: Segment, name: string): HostValue {
  const constant = valueOfEntry(entries.get(name));
  if (constant) return constant;
  throw new TypeError(`Cannot find the value of "${name}"`);
}

function isKnown(entry: Entry): boolean {
  return entry.kind === "object" ? entry.value !== undefined : isConstant(entry);
}

function entriesOf(names: Iterable<string>, environment: Environment): [string, Entry][] {
  return [...names].map((name) => {
    const value = environment.get(name)!;
    if (!isHostTensor(value)) return [name, { kind: "object" }];
    const { dtype, shape } = value;
    return [name, { kind: "tensor", type: { dtype, shape } }];
  });
}

function keyOf(names: Iterable<string>, environment: Environment): string {
  return [...names].map((name) => {
    const value = environment.get(name)!;
    return `${name} ${value.dtype}${"shape" in value ? `[${value.shape}]` : ""}`;
  }).join("\n");
}

function contentKey(value: HostValue): string {
  return isHostTensor(value) ? `${value.dtype}[${value.shape}] ${exactText([...value.data])}` : "";
}

function tensorOf(value: HostValue) {
  if (isHostTensor(value)) return value;
  throw new TypeError("Cannot look at the contents of what is no tensor of numbers");
}
