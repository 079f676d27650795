// A segment made ready on a device: planned at the sizes at hand, weights loaded, inputs written, outputs
// copied out. A segment without any op that has a kernel runs on the reference: starting a device for it
// would cost more than the segment.

import type { OnnxNode } from "../file/model.ts";
import { type DimEnv, evaluate } from "../../graph/dim/mod.ts";
import type { DataType, Graph, HostData } from "../../graph/graph.ts";
import {
  elementCount,
  hostArray,
  hostElementBytes,
  type HostTensor,
  isStorageOf,
} from "../../ops/host_tensor.ts";
import type { Segment } from "../derivation/segment.ts";
import { type HostValue, isHostTensor } from "../derivation/tensor.ts";
import type { Backend } from "../../run/backend.ts";
import type { Device } from "../../run/devices.ts";
import {
  heldOf,
  heldTensor,
  type HeldTransfers,
  type HeldValue,
  type Holder,
  readTensor,
} from "../../run/held.ts";
import { absorbHeadLayout } from "../../plan/passes/absorb_head_layout.ts";
import { attendNewRows } from "../../plan/passes/attend_new_rows.ts";
import { commonSubexpressions } from "../../plan/passes/common_subexpressions.ts";
import { deadCode } from "../../plan/passes/dead_code.ts";
import { foldAffineAfter, foldAffineBefore } from "../../plan/passes/fold_affine.ts";
import { foldBatchNorm } from "../../plan/passes/fold_batch_norm.ts";
import { foldUpSampling } from "../../plan/passes/fold_up_sampling.ts";
import { fuseActivation } from "../../plan/passes/fuse_activation.ts";
import { fuseBias } from "../../plan/passes/fuse_bias.ts";
import { fuseFunction } from "../../plan/passes/fuse_function.ts";
import { fuseGated } from "../../plan/passes/fuse_gated.ts";
import { fuseNorm } from "../../plan/passes/fuse_norm.ts";
import { fuseNormBehind } from "../../plan/passes/fuse_norm_behind.ts";
import { fuseBranch, fuseResidual } from "../../plan/passes/fuse_residual.ts";
import { fuseElementwise } from "../../plan/passes/fuse_elementwise.ts";
import { fuseQuantized } from "../../plan/passes/fuse_quantized.ts";
import { joinAttentionProducts } from "../../plan/passes/join_attention_products.ts";
import { type Pass, type PassContext, runPasses } from "../../plan/passes/pass.ts";
import { quantizeActivations } from "../../plan/passes/quantize_activations.ts";
import { recognizeActivations } from "../../plan/passes/recognize_activations.ts";
import { recognizeAttention } from "../../plan/passes/recognize_attention.ts";
import { recognizeGroupNorm } from "../../plan/passes/recognize_group_norm.ts";
import { recognizeNorms } from "../../plan/passes/recognize_norms.ts";
import { ungroupHeads } from "../../plan/passes/ungroup_heads.ts";
import { widenHalf } from "../../plan/passes/widen_half.ts";
import { writeOutAttention } from "../../plan/passes/write_out_attention.ts";
import { plan } from "../../plan/planner.ts";

/** Where segments run. */
export interface Runtime {
  readonly device: Device;
  /** For segments that the device has no kernel for. */
  readonly reference: Backend;
  /** Most bytes of activations. */
  readonly maxBytes: number;
  /** Largest values of symbols. */
  readonly limits: DimEnv;
  /** Default `exact`; `fast`: activations and weights are rounded. */
  readonly precision?: "exact" | "fast" | undefined;
  /** Told of each ONNX node that the host evaluates itself. */
  readonly onHostNode?: ((node: OnnxNode) => void) | undefined;
  /** Told what the device has to say of each plan that was made ready on it. */
  readonly onNotes?: ((notes: readonly string[]) => void) | undefined;
  /** Runs graphs as they were derived, without any pass: what passes make is judged by that. */
  readonly withoutPasses?: boolean | undefined;
}

/** How a segment is run. */
export interface SegmentRun extends ResultPlaces {
  /** Default: it has no symbols. */
  readonly bindings?: DimEnv;
  /** As of a run of a plan ({@linkcode Lane.run}). */
  readonly signal?: AbortSignal | undefined;
}

/** A segment that can run. */
export interface ReadySegment {
  /** Results by name. */
  run(
    environment: ReadonlyMap<string, HostValue>,
    how?: SegmentRun,
  ): Promise<Map<string, HostTensor>>;
  /** Time by kernel since the last call, when the backend measures it. */
  profile(): readonly ProfileEntry[];
  dispose(): void;
}

/** Arrays for results by name, each at least as long as its result. */
export type ResultArrays = ReadonlyMap<string, HostData>;

/** Where results go, by name; those that are in neither are fresh arrays. */
export interface ResultPlaces {
  readonly into?: ResultArrays | undefined;
  /** Those that stay on the device (run/held.ts). */
  readonly keep?: ReadonlySet<string> | undefined;
}

/** Time that one kernel took. */
export interface ProfileEntry {
  readonly name: string;
  readonly calls: number;
  readonly ms: number;
}

/** What a segment is made ready for. */
export interface ReadyOptions {
  /** The segment's graph after the passes; default: they are run. */
  readonly graph?: Graph;
  /** Largest value of every symbol in it; default: it has none. */
  readonly limits?: DimEnv;
  /** Stops loading. */
  readonly signal?: AbortSignal | undefined;
}

const CONTEXT: PassContext = { precision: "exact", hasKernel: () => false, takes: () => false };

/** Passes that change no number, whatever the device. */
const EXACT_PASSES: readonly Pass[] = [deadCode, commonSubexpressions, deadCode];

/** Passes that suit a device, in order. */
const DEVICE_PASSES: readonly Pass[] = [
  writeOutAttention,
  recognizeGroupNorm,
  // A sum may stand between a convolution and its batch norm, a factor behind that.
  foldAffineAfter,
  foldBatchNorm,
  foldAffineAfter,
  fuseBranch,
  fuseActivation,
  deadCode,
  foldAffineBefore,
  foldUpSampling,
  recognizeNorms,
  recognizeActivations,
  recognizeAttention,
  ungroupHeads,
  deadCode,
  absorbHeadLayout,
  attendNewRows, // may leave new rows behind a transpose
  deadCode,
  absorbHeadLayout,
  fuseBias,
  deadCode,
];

/** Passes that fuse what is left, at the end. */
const LAST_PASSES: readonly Pass[] = [
  joinAttentionProducts,
  deadCode,
  fuseGated,
  fuseFunction,
  fuseResidual,
  deadCode,
  fuseNorm,
  deadCode,
  fuseNormBehind,
  deadCode,
  fuseElementwise,
  deadCode,
];

/** Passes that round, for precision "fast": products of 8-bit activations and weights. */
const ROUNDING_PASSES: readonly Pass[] = [
  quantizeActivations,
  commonSubexpressions,
  fuseQuantized,
  deadCode,
];

/** Makes a segment ready. */
export async function readySegment(
  segment: Segment,
  runtime: Runtime,
  { graph: given, limits = {}, signal }: ReadyOptions = {},
): Promise<ReadySegment> {
  const { device, reference, maxBytes, onNotes } = runtime;
  const graph = deviceGraph(given ?? optimizeGraph(segment.graph!, runtime), device, runtime);
  const isComputed = await device.computesAny([...new Set(graph.nodes.map(({ op }) => op))]);
  const made = plan(graph, {
    limits,
    maxBytes,
    reuseInputs: device.reusesInputs || !isComputed,
  });
  const backend = isComputed ? device.backend : reference;
  const executable = await backend.prepare(made, {
    ...{ slots: 1, hostSteps: true },
    ...signal && { signal },
  });
  onNotes?.(executable.notes ?? []);
  // Callers give the same object for the same sizes.
  let sized: { readonly bindings: DimEnv; readonly results: readonly SizedResult[] } | undefined;
  return {
    async run(environment, { bindings = NO_BINDINGS, into, keep, signal } = {}) {
      const { holder } = executable;
      const held = new Map<string, HeldValue>();
      for (const { name } of graph.inputs) {
        const value = environment.get(name);
        if (!isHostTensor(value)) throw new TypeError(`Cannot feed ${name}: it is no tensor`);
        const place = heldOf(value);
        if (place && holder?.takes(name, place)) held.set(name, place);
        else {
          const { data } = place ? await readTensor(value) : value;
          write(executable.input(name) as Uint8Array, data as Uint8Array);
        }
      }
      if (sized?.bindings !== bindings) sized = { bindings, results: sizesOf(segment, bindings) };
      const kept = keep && holder ? await holdResults(sized.results, { keep, holder }) : NOTHING;
      try {
        if (holder && (held.size > 0 || kept.size > 0)) {
          await holder.run(bindings, transfersOf(held, kept), signal);
        } else await executable.run(bindings, undefined, signal);
      } catch (error) {
        for (const place of kept.values()) place.dispose();
        throw error;
      }
      const results = new Map<string, HostTensor>();
      for (const { name, output, dtype, shape, count } of sized.results) {
        const place = kept.get(output);
        if (place && keep?.has(name)) {
          results.set(name, heldTensor({ dtype, shape: shape.slice() }, place));
          continue;
        }
        const data = arrayFor(name, { dtype, count, given: into?.get(name) });
        write(data as Uint8Array, executable.output(output).subarray(0, count) as Uint8Array);
        results.set(name, { dtype, shape: shape.slice(), data });
      }
      return results;
    },
    profile: () => executable.profile?.() ?? [],
    dispose: () => executable.dispose(),
  };
}

const NO_BINDINGS: DimEnv = {};
const NOTHING: ReadonlyMap<string, HeldValue> = new Map();

/** Memory on the device for results that stay there, by output; those of other devices are left out. */
async function holdResults(
  results: readonly SizedResult[],
  { keep, holder }: { readonly keep: ReadonlySet<string>; readonly holder: Holder },
): Promise<ReadonlyMap<string, HeldValue>> {
  const kept = new Map<string, HeldValue>();
  for (const { name, output, dtype, count } of results) {
    if (!keep.has(name) || !holder.keeps(output) || kept.has(output)) continue;
    kept.set(output, await holder.hold(count * hostElementBytes(dtype)));
  }
  return kept;
}

function transfersOf(
  inputs: ReadonlyMap<string, HeldValue>,
  kept: ReadonlyMap<string, HeldValue>,
): HeldTransfers {
  const outputs = new Map([...kept].map(([output, place]) => [output, [place]] as const));
  return { inputs, outputs, unread: new Set(kept.keys()) };
}

/** A result at some sizes. */
interface SizedResult {
  readonly name: string;
  /** Name of the graph's output. */
  readonly output: string;
  readonly dtype: DataType;
  readonly shape: readonly number[];
  readonly count: number;
}

function sizesOf({ fetches }: Segment, bindings: DimEnv): SizedResult[] {
  return [...fetches].map(([name, { output, tensor: { type } }]) => {
    const shape = type.shape.map((dim) => evaluate(dim, bindings));
    return { name, output, dtype: type.dtype, shape, count: elementCount(shape) };
  });
}

/**
 * The caller's array, so that a loop of runs allocates no results; a fresh one without.
 *
 * @throws {TypeError | RangeError} If it is of another kind, or too short.
 */
export function arrayFor(
  name: string,
  { dtype, count, given }: {
    readonly dtype: DataType;
    readonly count: number;
    readonly given: HostData | undefined;
  },
): HostData {
  if (!given) return hostArray(dtype, { count });
  if (!isStorageOf(dtype, given)) {
    throw new TypeError(`Cannot write result "${name}" (${dtype}) into that kind of array`);
  }
  if (given.length < count) {
    throw new RangeError(
      `Cannot write result "${name}": it has ${count} elements, the array ${given.length}`,
    );
  }
  return given.subarray(0, count) as HostData;
}

// Every storage of an element type is the same kind of array; the cast only picks one.
function write(target: Uint8Array, source: Uint8Array): void {
  target.set(source);
}

/** Runs the passes that change no number. */
export function optimizeGraph(graph: Graph, options: PassOptions = {}): Graph {
  const { observe = () => {}, withoutPasses } = options;
  observe("derived", graph);
  return withoutPasses
    ? graph
    : runPasses(graph, { passes: EXACT_PASSES, context: CONTEXT, observe });
}

/** Which passes run. */
export interface PassOptions extends Pick<Runtime, "precision" | "withoutPasses"> {
  /** Called with the graph as derived, and after each pass. */
  readonly observe?: ((pass: string, graph: Graph) => void) | undefined;
}

/** Runs the passes that suit a device: what it has no kernels for in another form, and what fuses. */
export function deviceGraph(
  graph: Graph,
  device: Device,
  { observe = () => {}, precision = "exact", withoutPasses }: PassOptions = {},
): Graph {
  if (withoutPasses) return graph;
  const { hasKernel, takes, wantsForms, fusesNeighbours } = device;
  const rounds = precision === "fast";
  const context: PassContext = {
    ...CONTEXT,
    ...rounds && { precision, roundsWeights: true },
    ...{ hasKernel, takes, fusesNeighbours },
  };
  // The reference needs no other form of anything; it rounds what devices round, and no more.
  const passes = [
    widenHalf,
    ...wantsForms ? DEVICE_PASSES : [],
    ...rounds ? ROUNDING_PASSES : [],
    ...wantsForms ? LAST_PASSES : [],
  ];
  return runPasses(graph, { passes, context, observe });
}
