// Streamed weights in WASM memory (spec LF-8, LF-9): slots that loaders fill while the machine computes. The program of a
// plan is cut around the products that read them (lowering.ts); before one its weights are waited for, behind it their slots
// go to the weights that come next in them, those of the next step's first layers behind the last. What nobody
// waits for was hidden behind computing.

import { createLoaders, type Loaders } from "../../../wasm/loaders.ts";
import { loadsInPieces, writePieces } from "../../../wasm/load_pieces.ts";
import type { Machine } from "../../../wasm/machine.ts";
import type { Packed } from "../../../wasm/place_weight.ts";
import type { Node, Value } from "../../graph/graph.ts";
import type { Plan } from "../../plan/plan.ts";
import type { StreamingFigures } from "../backend.ts";
import { matrixSize } from "../plan_weights.ts";
import type { StreamOptions, StreamPlan } from "../streaming/slots.ts";
import { createExpertUses, type ExpertUse } from "./expert_use.ts";
import { WeightSlots } from "./weight_slots.ts";

/**
 * Threads that load unless asked otherwise. Each packs what it has read before it reads on, and a disk gives most to several
 * readers; with a third it gave a tenth more, at the price of some 14 MB, which are little only beside large slots.
 */
const DEFAULT_LOADERS = 2, LOADERS_OF_LARGE = 3;
/** Bytes of slots that are large. */
const LARGE_SLOTS = 256 * 2 ** 20;

/** Weights that come and go. */
export interface WeightStream {
  /** Places of matrices, by value id; experts' are caches. */
  readonly matrices: ReadonlyMap<number, Packed>;
  /** Bytes of slots, caches and tables. */
  readonly bytes: number;
  /** Weights of nodes that have to be waited for. */
  weightsOf(nodes: readonly Node[]): readonly Value[];
  /** How a node is computed whose experts come and go. */
  expertUse(node: Node): ExpertUse | undefined;
  /**
   * Begins to load, in the order in which steps will need weights, and waits until all slots are full.
   *
   * @returns How long steps will take at least, from how long that took.
   */
  start(sequence: readonly Value[]): string;
  /** To be called before a step. */
  refresh(): void;
  /** Waits for weights. @throws {DeviceError | FormatError} If one cannot be read any more, or holds no numbers. */
  need(values: readonly Value[]): void;
  /** Gives their slots to what comes next in them. */
  release(values: readonly Value[]): void;
  /** Figures since the last call. */
  take(): StreamingFigures;
  dispose(): void;
}

/** Whether the threads of a machine can load a weight beside the rest. */
export function loadsAside({ tensor, ...value }: Value, rounded: boolean): boolean {
  if (tensor?.source.file === undefined) return false;
  const [rows, columns] = matrixSize(value);
  return loadsInPieces({ format: tensor.format, rows, columns }, rounded);
}

/** Gives slots their places; nothing is loaded before `start`. */
export function createWeightStream(
  machine: Machine,
  { graph, plan, options, rounded }: {
    /** What is run. */
    readonly graph: Plan;
    readonly plan: StreamPlan;
    readonly options: StreamOptions;
    readonly rounded: ReadonlySet<number>;
  },
): WeightStream {
  const before = machine.usedBytes;
  const slots = new WeightSlots(machine, { kinds: plan.kinds, rounded });
  const experts = createExpertUses(machine, { plan: graph, kinds: plan.experts });
  const places = [slots.places, ...experts.caches.map(({ places }) => places)];
  const matrices = new Map(slots.matrices);
  for (const { kind: { stacks }, matrix } of experts.caches) {
    for (const { id } of stacks) matrices.set(id, matrix);
  }
  const bytes = machine.usedBytes - before;
  const isLarge = plan.slotBytes > LARGE_SLOTS, { bytesPerSecond } = options;
  const threads = options.loaders ?? (isLarge ? LOADERS_OF_LARGE : DEFAULT_LOADERS);
  let loaders: Loaders | undefined;
  let steps = 0, busyBefore = 0;

  /** Milliseconds that loading has taken since the last call. */
  function takeLoadMs(): number {
    if (!loaders) return 0;
    const { busyMs } = loaders, own = busyMs - busyBefore;
    busyBefore = busyMs;
    return own / Math.max(1, loaders.threads);
  }

  return {
    ...{ matrices, bytes, expertUse: experts.of },
    weightsOf: (nodes) =>
      nodes.flatMap(({ inputs }) => inputs.filter((value) => value && slots.has(value)) as Value[]),
    start(sequence) {
      const sources = [...slots.sources, ...experts.caches.flatMap((cache) => cache.sources)];
      const pieces = writePieces(machine, { sources, loaders: threads, bytesPerSecond });
      loaders = createLoaders(machine, {
        ...{ threads, bytesPerSecond, read: pieces.read, loaded: pieces.loaded },
        pieces: pieces.of.reduce((sum, own) => sum + own.length, 0),
      });
      for (const one of places) one.connect(pieces, loaders);
      let first = slots.sources.length;
      for (const cache of experts.caches) {
        cache.connect(pieces, first);
        first += cache.sources.length;
      }
      const early = slots.connect(pieces, sequence), begin = performance.now();
      for (const value of early) slots.push(value);
      for (const value of early) slots.need(value);
      const ms = performance.now() - begin;
      // What this took is no step's.
      takeLoadMs();
      for (const one of places) one.takeWaitedMs();
      const read = early.reduce((sum, { tensor }) => sum + tensor!.byteLength, 0);
      return streamNote(plan, 1000 * read / Math.max(1, ms));
    },
    refresh() {
      steps++;
      loaders?.refresh();
    },
    need(values) {
      for (const value of values) slots.need(value);
    },
    release(values) {
      for (const value of values) slots.release(value);
    },
    take() {
      const loadMs = takeLoadMs();
      const waitedMs = places.reduce((sum, one) => sum + one.takeWaitedMs(), 0);
      const counts = experts.caches.map((cache) => cache.takeCounts());
      const figures = {
        ...{ steps, loadMs, waitedMs },
        hidden: loadMs > 0 ? Math.max(0, 1 - waitedMs / loadMs) : 1,
        ...counts.length > 0 && {
          experts: {
            hits: counts.reduce((sum, { hits }) => sum + hits, 0),
            misses: counts.reduce((sum, { misses }) => sum + misses, 0),
          },
        },
      };
      steps = 0;
      return figures;
    },
    dispose: () => loaders?.dispose(),
  };
}

/** What a step takes at least, at a measured rate. */
function streamNote({ stepBytes, expertBytes }: StreamPlan, bytesPerSecond: number): string {
  const gigabytes = (bytes: number) =>
    bytes < 1e8 ? `${(bytes / 1e6).toPrecision(3)} MB` : `${(bytes / 1e9).toPrecision(3)} GB`;
  const parts = [
    ...stepBytes > 0 ? [`${gigabytes(stepBytes)} of weights`] : [],
    ...expertBytes > 0 ? [`up to ${gigabytes(expertBytes)} of experts`] : [],
  ];
  const what = `weights are streamed: every step reads ${parts.join(" and ")} from their files`;
  if (stepBytes === 0) return what;
  const seconds = (stepBytes + expertBytes) / bytesPerSecond;
  return `${what}, which takes ${seconds.toPrecision(2)} s at the ${gigabytes(bytesPerSecond)}/s ` +
    "that were measured now";
}
