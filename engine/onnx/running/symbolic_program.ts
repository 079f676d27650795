// Runs of the top graph, derived once with symbolic shapes (variant.ts, spec TL-3): a run binds the symbols to the
// shapes that come and evaluates closures, nothing is derived again. It serves graphs that are one segment.
// A hint of the file that contradicts what comes makes a second variant without that hint; what cannot be
// derived with symbols at all is left to the program, and the reason is kept for reports.

import { FormatError } from "../../errors.ts";
import type { OnnxValueInfo } from "../file/model.ts";
import type { DimEnv } from "../../graph/dim/mod.ts";
import { exactText } from "../../ops/exact_text.ts";
import type { Graph } from "../../graph/graph.ts";
import type { HostTensor } from "../../ops/host_tensor.ts";
import type { PreparedGraph } from "../derivation/prepare.ts";
import type { InputShapes } from "../derivation/symbols.ts";
import { type HostValue, isHostTensor } from "../derivation/tensor.ts";
import { plan } from "../../plan/planner.ts";
import { constantNamed, type ProgramSurroundings } from "./program.ts";
import { decidingInputs } from "./deciding_inputs.ts";
import { likelyShapes } from "./likely_shapes.ts";
import {
  deviceGraph,
  type ProfileEntry,
  readySegment,
  type Runtime,
  type SegmentRun,
} from "./ready_segment.ts";
import { NotOneSegment } from "./variant.ts";
import { type Bound, createVariants, type Decision } from "./variants.ts";

/** Runs of one graph with symbols. */
export interface SymbolicProgram {
  /** Results, or undefined where symbols do not serve: the caller derives for the shapes at hand. */
  run(
    inputs: ReadonlyMap<string, HostValue>,
    outputs: readonly string[],
    how?: VariantRun["how"],
  ): Promise<Map<string, HostValue> | undefined>;
  /** Time by kernel since the last call. */
  profile(): ProfileEntry[];
  /**
   * Derives at likely sizes, so that what is not supported shows before anything runs; what is derived
   * serves later runs. Sizes that do not fit are an error here only where all are declared.
   *
   * @throws {UnsupportedError} Listing every node that has no translation.
   * @throws {FormatError | ResourceError} If declared sizes do not fit, or take too much memory.
   */
  check(inputs: readonly OnnxValueInfo[], outputs: readonly string[]): void;
  /** Inputs whose contents it looks at. */
  readonly deciding: readonly string[];
  /** Why symbols do not serve, if that came up. */
  readonly reasons: readonly string[];
  dispose(): void;
}

/** The shapes of a run, and what they came to. */
interface LastRun {
  readonly names: readonly string[];
  readonly shapes: readonly (readonly number[])[];
  readonly outputs: readonly string[];
  readonly decision: string;
  readonly bound: Bound;
}

/** Values of the inputs that decide an If, of which each is derived for itself. */
const MOST_DECISIONS = 8;
const NO_DECISION: Decision = { key: "", known: new Map() };

/** Declared sizes that do not fit are the file's fault: nobody has given any yet. */
function ofTheFile(error: RangeError, file: string): FormatError {
  const start = `${file}, `;
  const text = error.message.startsWith(start) ? error.message.slice(start.length) : error.message;
  return new FormatError(text, { file, cause: error });
}

/** Makes it; nothing is derived before the first run. */
export function createSymbolicProgram(
  prepared: PreparedGraph,
  surroundings: ProgramSurroundings,
): SymbolicProgram {
  const { runtime } = surroundings;
  const variants = createVariants(prepared, surroundings);
  const deciding = decidingInputs(prepared);
  const decisions = new Set<string>();
  // Most runs have the shapes of the one before: then nothing is looked up and no closure evaluated.
  let last: LastRun | undefined;

  /** Values of the inputs that decide, and their key; undefined: too many have come. */
  function decide(inputs: ReadonlyMap<string, HostValue>): Decision | undefined {
    if (deciding.length === 0) return NO_DECISION;
    const known = new Map<string, HostTensor>();
    for (const name of deciding) {
      const value = inputs.get(name);
      if (isHostTensor(value)) known.set(name, value);
    }
    const key = [...known].map(([name, { data }]) => `${name}=${exactText([...data])}`).join("\n");
    if (!decisions.has(key) && decisions.size >= MOST_DECISIONS) return undefined;
    decisions.add(key);
    return { key, known };
  }

  return {
    deciding,
    reasons: variants.reasons,
    check(inputs, outputs) {
      const shapes = likelyShapes(inputs);
      if (!shapes) return;
      const isFixed = inputs.every(({ type }) =>
        type?.kind === "tensor" && type.shape!.every((dim) => typeof dim === "number")
      );
      try {
        const found = variants.find({ shapes, outputs, decision: NO_DECISION });
        const graph = isFixed ? found?.variant.graph : undefined;
        if (graph) checkMemory(graph, runtime);
      } catch (error) {
        if (error instanceof NotOneSegment || (error instanceof RangeError && !isFixed)) return;
        throw error instanceof RangeError ? ofTheFile(error, surroundings.context.file) : error;
      }
    },
    async run(inputs, outputs, how = {}) {
      const decision = decide(inputs);
      if (!decision) return undefined;
      if (!last || !isAlike(last, { inputs, wanted: outputs, decided: decision.key })) {
        const shapes = shapesOf(inputs);
        if (!shapes) return undefined;
        const bound = variants.serve({ shapes, outputs, decision });
        if (!bound) return undefined;
        last = {
          names: [...shapes.keys()],
          shapes: [...shapes.values()].map((shape) => [...shape]),
          outputs: [...outputs],
          decision: decision.key,
          bound,
        };
      }
      return await runVariant(last.bound, runtime, { inputs, outputs, how });
    },
    profile: () => variants.all().flatMap(({ ready }) => ready?.segment.profile() ?? []),
    dispose() {
      for (const { ready } of variants.all()) ready?.segment.dispose();
      variants.clear();
      last = undefined;
    },
  };
}

/** Whether a run has the shapes, the results and the deciding values of another. */
function isAlike(
  { names, shapes, outputs, decision }: LastRun,
  { inputs, wanted, decided }: {
    readonly inputs: ReadonlyMap<string, HostValue>;
    readonly wanted: readonly string[];
    readonly decided: string;
  },
): boolean {
  if (decided !== decision || inputs.size !== names.length) return false;
  if (wanted.length !== outputs.length || wanted.some((name, i) => name !== outputs[i])) {
    return false;
  }
  let i = 0;
  for (const [name, value] of inputs) {
    const shape = shapes[i]!;
    if (name !== names[i++] || !isHostTensor(value) || value.shape.length !== shape.length) {
      return false;
    }
    for (let axis = 0; axis < shape.length; axis++) {
      if (shape[axis] !== value.shape[axis]) return false;
    }
  }
  return true;
}

function checkMemory(graph: Graph, { device, maxBytes, ...options }: Runtime): void {
  const reuseInputs = device.reusesInputs;
  plan(deviceGraph(graph, device, options), { limits: {}, maxBytes, reuseInputs });
}

function shapesOf(inputs: ReadonlyMap<string, HostValue>): InputShapes | undefined {
  const shapes = new Map<string, readonly number[]>();
  for (const [name, value] of inputs) {
    if (!isHostTensor(value)) return undefined;
    shapes.set(name, value.shape);
  }
  return shapes;
}

interface VariantRun {
  readonly inputs: ReadonlyMap<string, HostValue>;
  readonly outputs: readonly string[];
  readonly how: Omit<SegmentRun, "bindings">;
}

async function runVariant(
  { variant, bindings }: Bound,
  runtime: Runtime,
  { inputs, outputs, how }: VariantRun,
): Promise<Map<string, HostValue>> {
  const { segment, graph } = variant;
  let results: Map<string, HostValue> = new Map();
  if (graph) {
    const before = variant.ready?.limits;
    if (!before || isBeyond(bindings, before)) {
      variant.ready?.segment.dispose();
      delete variant.ready; // there is none where the larger sizes are refused
      const limits = nextLimits(bindings, before, runtime.limits);
      const { signal } = how;
      variant.ready = {
        segment: await readySegment(segment, runtime, { graph, limits, signal }),
        limits,
      };
    }
    results = await variant.ready!.segment.run(inputs, { ...how, bindings });
  }
  const valueNamed = (name: string) => results.get(name) ?? inputs.get(name);
  for (const [name, source] of segment.copies) results.set(name, valueNamed(source)!);
  const wanted = new Map<string, HostValue>();
  for (const name of outputs) {
    wanted.set(name, valueNamed(name) ?? constantNamed(segment, name));
  }
  return wanted;
}

function isBeyond(bindings: DimEnv, limits: DimEnv): boolean {
  for (const name in bindings) if (bindings[name]! > limits[name]!) return true;
  return false;
}

// What comes first is planned as it is; what grows is given room, so that each step need not plan again.
function nextLimits(present: DimEnv, before: DimEnv | undefined, asked: DimEnv): DimEnv {
  return Object.fromEntries(
    Object.entries(present).map(([name, value]) => {
      const limit = before?.[name] ?? 0;
      const grown = before && value > limit ? Math.max(value, 2 * limit) : value;
      return [name, Math.max(grown, limit, askedLimit(name, asked))];
    }),
  );
}

// `H/8` stands for H where H must be a multiple of 8.
function askedLimit(name: string, asked: DimEnv): number {
  const [, base = name, unit = "1"] = /^(.*)\/(\d+)$/.exec(name) ?? [];
  return asked[name] ?? Math.floor((asked[base] ?? 0) / Number(unit));
}
