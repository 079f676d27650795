// One file of a decoder made ready to run: derived once for all sizes (spec TL-2), planned for the largest,
// prepared on the device. Of what the graph gives out as caches only the new rows are kept: the old ones lie
// in its inputs already. A graph that symbols do not serve is left to the general runner, which derives it for
// the sizes at hand.

import { UnsupportedError } from "../../errors.ts";
import type { OnnxGraph, OnnxModel } from "../file/model.ts";
import { type DimEnv, evaluate, symbol } from "../../graph/dim/mod.ts";
import type { DataType, Graph, HostData } from "../../graph/graph.ts";
import { elementCount, type HostTensor } from "../../ops/host_tensor.ts";
import { checkSupport } from "../derivation/opset.ts";
import { prepareGraph } from "../derivation/prepare.ts";
import type { InputShapes } from "../derivation/symbols.ts";
import { deviceGraph } from "../running/ready_segment.ts";
import { deriveFitting, NotOneSegment, usedSymbols, type Variant } from "../running/variant.ts";
import type { PreparedPlan } from "../../run/backend.ts";
import type { Device } from "../../run/devices.ts";
import { optimize } from "../../plan/passes.ts";
import type { PassContext } from "../../plan/passes/pass.ts";
import { deadCode } from "../../plan/passes/dead_code.ts";
import { newRowsOnly } from "../../plan/passes/new_rows_only.ts";
import { wantedRowsOnly } from "../../plan/passes/wanted_rows.ts";
import type { Plan } from "../../plan/plan.ts";
import { plan } from "../../plan/planner.ts";
import type { DecoderPorts } from "./ports.ts";
import { positionUse } from "./position_use.ts";
import { shapesAt, type StepSizes } from "./step_sizes.ts";

/** A file that was derived. */
export interface DerivedStage {
  readonly ports: DecoderPorts;
  /** Positions that its tables have rows for; undefined: it has none. */
  readonly positionLimit: number | undefined;
  /** After all passes. */
  readonly graph: Graph;
  /** Values of the symbols for a step. @throws {RangeError} If the graph does not fit the sizes. */
  bind(sizes: StepSizes): DimEnv;
  /** Shape of a result. */
  shapeOf(output: string, sizes: StepSizes): readonly number[];
  /** Output of the graph that holds a result. */
  outputOf(output: string): string;
  /** Element type of a result. */
  dtypeOf(output: string): DataType;
  /** Whether the rows of `rowsOf` are those that {@linkcode WANTED_ROWS} names. */
  readonly picksRows: boolean;
  /** Whether the result of a cache holds the new rows alone. */
  givesNewRows(present: string): boolean;
}

/** For what to derive. */
export interface DeriveOptions {
  /** Names of the results that are wanted, caches left out. */
  readonly results: readonly string[];
  /** The result of which a step may want some rows only. */
  readonly rowsOf: string | undefined;
  /** Steps are of one token each. */
  readonly oneToken: boolean;
  readonly device: Device;
  readonly passes: PassContext;
}

/** Input with the indices of the rows that are wanted. */
export const WANTED_ROWS = "wanted_rows";

// A prefill, a step behind a padded past, and a chunk behind an odd one.
const PROBES: readonly StepSizes[] = [
  { rows: 3, length: 0, held: 0 },
  { rows: 1, length: 8, held: 64 },
  { rows: 2, length: 5, held: 5 },
];

/**
 * Derives a file.
 *
 * @throws {UnsupportedError} Listing the nodes that are not served, or why it is not one graph.
 */
export function deriveStage(
  model: OnnxModel,
  declared: DecoderPorts,
  options: DeriveOptions,
): DerivedStage {
  let ports = declared;
  checkSupport(model, { graph: model.graph, opsets: model.opsets });
  const outputs = [...options.results, ...ports.caches.map(({ present }) => present)];
  const variant = derive(model, { ports, outputs, oneToken: options.oneToken });
  const { fetches, copies } = variant.segment;
  const missing = outputs.find((name) => !fetches.has(name));
  if (missing !== undefined || !variant.graph || copies.size > 0) {
    throw new UnsupportedError(`output "${missing ?? [...copies.keys()][0]}" computes nothing`, {
      file: model.file,
    });
  }
  const pasts = new Map(ports.caches.map(({ name, present, axis }) => [present, { name, axis }]));
  const { limit, isCompared } = positionUse(variant.graph, ports.positions?.name);
  if (isCompared && ports.past === "masked") ports = { ...ports, past: "exact" };
  const picked = options.rowsOf === undefined ? undefined : wantedRowsOnly(variant.graph, {
    result: fetches.get(options.rowsOf)!.output,
    input: WANTED_ROWS,
    count: symbol(WANTED_ROWS, { min: 1 }),
  });
  const optimized = optimizeStage(picked ?? variant.graph, options);
  const { graph: renamed, replaced } = newRowsOnly(optimized, pasts);
  const graph = deadCode.run(renamed, options.passes);
  const symbols = usedSymbols(graph);
  const bindAll = (sizes: StepSizes): DimEnv => {
    const env = variant.binder.bind(shapesAt(ports, sizes));
    if (typeof env !== "string") return { ...env, [WANTED_ROWS]: sizes.wanted ?? 1 };
    throw new RangeError(
      `Cannot run ${ports.file}: ${sizes.rows} tokens behind ${sizes.held} do not fit at ${env}`,
    );
  };
  return {
    ports,
    positionLimit: limit,
    graph,
    bind: (sizes) =>
      Object.fromEntries(Object.entries(bindAll(sizes)).filter(([name]) => symbols.has(name))),
    shapeOf(output, sizes) {
      const env = bindAll(sizes);
      const shape = fetches.get(output)!.tensor.type.shape.map((dim) => evaluate(dim, env));
      return picked && output === options.rowsOf ? [env[WANTED_ROWS]!, shape.at(-1)!] : shape;
    },
    picksRows: picked !== undefined,
    outputOf: (output) => fetches.get(output)!.output,
    dtypeOf: (output) => fetches.get(output)!.tensor.type.dtype,
    givesNewRows: (present) => replaced.has(present),
  };
}

function optimizeStage(graph: Graph, { device, passes }: DeriveOptions): Graph {
  const quantized = passes.precision === "fast" ? optimize(graph, { context: passes }) : graph;
  return deviceGraph(quantized, device);
}

// What a file declares may contradict a step: such a hint is not believed (symbols.ts).
function derive(
  model: OnnxModel,
  { ports, outputs, oneToken }: {
    readonly ports: DecoderPorts;
    readonly outputs: readonly string[];
    readonly oneToken: boolean;
  },
): Variant {
  const shapes = PROBES.map((sizes) => shapesAt(ports, oneToken ? { ...sizes, rows: 1 } : sizes));
  const graph = withOneSequence(model.graph, shapes);
  const prepared = prepareGraph(model, { graph, opsets: model.opsets });
  const remedy = "Run it with loadGraph()", { file } = model;
  try {
    const derived = deriveFitting(prepared, { context: model, shapes, outputs });
    if (!("conflict" in derived)) return derived.variant;
    const { conflict } = derived;
    throw new UnsupportedError(`cannot be a session: its sizes do not fit at ${conflict}`, {
      file,
      remedy,
    });
  } catch (error) {
    if (!(error instanceof NotOneSegment)) throw error;
    const message = `cannot be a session: ${error.message}`;
    throw new UnsupportedError(message, { file, remedy, cause: error });
  }
}

// What is 1 in every step is no symbol: rows of one sequence are simpler than those of some.
function withOneSequence(graph: OnnxGraph, shapes: readonly InputShapes[]): OnnxGraph {
  const inputs = graph.inputs.map(({ name, type }) => {
    if (type?.kind !== "tensor" || !type.shape || !shapes[0]!.has(name)) return { name, type };
    const shape = type.shape.map((dim, axis) =>
      shapes.every((some) => some.get(name)![axis] === 1) ? 1 : dim
    );
    return { name, type: { ...type, shape } };
  }) as OnnxGraph["inputs"];
  return { ...graph, inputs };
}

/** Plans a derived file for its largest step. */
export function planStage({ graph, bind }: DerivedStage, largest: StepSizes): Plan {
  return plan(graph, { limits: bind(largest) });
}

/** A result of a step: a view that the next step overwrites. */
export type StageResult = HostTensor;

/** Runs one step; results are read by `resultOf` until the next. */
export async function runStage(
  { bind }: DerivedStage,
  { executable, sizes }: { readonly executable: PreparedPlan; readonly sizes: StepSizes },
): Promise<void> {
  await executable.run(bind(sizes));
}

/** A result of the last step. */
export function resultOf(
  { shapeOf, dtypeOf, outputOf }: DerivedStage,
  { executable, output, sizes }: {
    readonly executable: PreparedPlan;
    readonly output: string;
    readonly sizes: StepSizes;
  },
): StageResult {
  const shape = shapeOf(output, sizes);
  const data = executable.output(outputOf(output));
  return { dtype: dtypeOf(output), shape, data: data.subarray(0, elementCount(shape)) as HostData };
}
