// Streamed weights in WASM memory (spec LF-8, LF-9): slots that loaders fill while the machine computes. The program of a
// plan is cut around the products that read them (lowering.ts); before one its weights are waited for, behind it their slots
// go to the weights that come next in them, those of the next step's first layers behind the last. A slot knows what it
// holds, so a step that fails half-way leaves nothing in disorder. What nobody waits for was hidden behind computing.

import type { Machine } from "../../../wasm/machine.ts";
import { createLoaders, type Loaders } from "../../../wasm/loaders.ts";
import {
  loadsInPieces,
  type Pieces,
  type PieceSource,
  writePieces,
} from "../../../wasm/load_pieces.ts";
import { type Packed, packedAt, packedBytes, placeWeight } from "../../../wasm/place_weight.ts";
import type { Node, Value } from "../../graph/graph.ts";
import type { StreamingFigures } from "../backend.ts";
import type { Plan } from "../../plan/plan.ts";
import { matrixSize } from "../plan_weights.ts";
import {
  type SlotKind,
  streamedIds,
  type StreamOptions,
  type StreamPlan,
} from "../streaming/slots.ts";
import { createStreamedFiles, type StreamedFiles } from "../streaming/files.ts";
import { createExpertCaches, type ExpertCaches, type ExpertUse } from "./expert_cache.ts";

/** Threads that load unless asked otherwise: while one packs, another reads. */
const DEFAULT_LOADERS = 2;

/** Weights that come and go. */
export interface WeightStream {
  /** Places of matrices, by value id; experts' are caches. */
  readonly matrices: ReadonlyMap<number, Packed>;
  /** Bytes of slots and caches. */
  readonly bytes: number;
  /** Experts that nodes choose from. */
  readonly experts: ExpertCaches;
  /** Weights of nodes that have to be waited for, in the order of the values. */
  weightsOf(nodes: readonly Node[]): readonly Value[];
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
  /** How an expert's product is computed. */
  expertUse(node: Node): ExpertUse | undefined;
  /** Figures since the last call. */
  take(): StreamingFigures;
  dispose(): void;
}

/** A place that several weights share. */
interface Slot {
  readonly place: Packed;
  /** What it holds, or is going to. */
  holder: Value | undefined;
  /** Addresses of its words. */
  readonly done: number;
  readonly bad: number;
  /** Pieces handed over so far. */
  pushed: number;
}

interface Placed {
  readonly value: Value;
  readonly slot: Slot;
  /** What comes into the slot behind it. */
  next: Value;
  pieces: readonly number[];
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
  const count = plan.kinds.reduce((sum, { slots }) => sum + slots, 0);
  const words = machine.allocate(8 * Math.max(1, count));
  machine.u32(words, 2 * Math.max(1, count)).fill(0);
  const placed = new Map<number, Placed>();
  const matrices = new Map<number, Packed>();
  let slots = 0;
  for (const kind of plan.kinds) {
    const own = placesOf(machine, kind, rounded).map((place): Slot => ({
      ...{ place, holder: undefined, pushed: 0 },
      ...{ done: words + 8 * slots, bad: words + 8 * slots++ + 4 },
    }));
    kind.weights.forEach((value, i) => {
      const slot = own[i % own.length]!;
      placed.set(value.id, { value, slot, next: value, pieces: [] });
      matrices.set(value.id, placeIn(slot.place, value, rounded));
    });
  }
  const experts = createExpertCaches(machine, { plan: graph, kinds: plan.experts });
  for (const [id, place] of experts.matrices) matrices.set(id, place);
  const bytes = machine.usedBytes - before;
  const moving = streamedIds(plan);
  const { loaders: threads = DEFAULT_LOADERS, bytesPerSecond } = options;
  const files = createStreamedFiles();
  let pieces: Pieces | undefined, loaders: Loaders | undefined;
  let waitedMs = 0, steps = 0, busyBefore = 0;

  function push(value: Value): void {
    const one = placed.get(value.id)!;
    one.slot.holder = value;
    for (const piece of one.pieces) loaders!.push(piece);
    one.slot.pushed += one.pieces.length;
  }

  function settle({ done, pushed }: Slot): void {
    const word = done >>> 2;
    if (machine.u32(done, 1)[0] === pushed) return;
    const begin = performance.now();
    loaders!.wait(word, pushed);
    waitedMs += performance.now() - begin;
  }

  function needOne(value: Value): void {
    const { slot, pieces: own } = placed.get(value.id)!;
    settle(slot);
    if (slot.holder !== value) {
      push(value);
      settle(slot);
    }
    const bad = machine.u32(slot.bad, 1);
    if (bad[0] === 0) return;
    bad[0] = 0;
    // Other threads may not read what this one may.
    if (own.reduce((sum, piece) => sum + loadHere(piece), 0) === 0) return;
    slot.holder = undefined;
    throw files.unreadable(value);
  }

  function loadHere(piece: number): number {
    machine.readFilesBy(pieces!.read);
    try {
      return machine.exports.packAlone!(piece, 0) as number;
    } finally {
      machine.readFilesBy(undefined);
    }
  }

  const read = () => {
    const loadMs = (loaders?.busyMs ?? 0) - busyBefore;
    return Math.max(0, loadMs / Math.max(1, loaders?.threads ?? 1));
  };
  return {
    ...{ matrices, bytes, experts },
    weightsOf: (nodes) =>
      nodes.flatMap(({ inputs }) =>
        inputs.filter((value) => value && placed.has(value.id)) as Value[]
      ),
    start(sequence) {
      const sources = [...placed.values()].map(({ value, slot }) =>
        sourceOf(value, slot, { rounded, files })
      );
      const all = [...sources, ...experts.sources];
      pieces = writePieces(machine, { sources: all, loaders: threads });
      [...placed.values()].forEach((one, i) => one.pieces = pieces!.of[i]!);
      loaders = createLoaders(machine, {
        ...{ threads, bytesPerSecond, read: pieces.read },
        pieces: pieces.of.reduce((sum, own) => sum + own.length, 0),
      });
      experts.connect({
        ...{ pieces, loaders, first: sources.length, loadHere },
        bytesOf: files.bytesOf,
        unreadable: files.unreadable,
      });
      const lines = Map.groupBy(sequence, ({ id }) => placed.get(id)!.slot);
      for (const line of lines.values()) {
        line.forEach((value, i) => placed.get(value.id)!.next = line[(i + 1) % line.length]!);
      }
      const first = new Set([...lines.values()].map(([value]) => value!));
      const early = sequence.filter((value) => first.has(value));
      early.forEach(push);
      early.forEach(needOne);
      const bytes = early.reduce((sum, { tensor }) => sum + tensor!.byteLength, 0);
      const seconds = Math.max(read(), 0.001) / 1000;
      [waitedMs, busyBefore] = [0, loaders.busyMs];
      return streamNote(plan, bytes / seconds);
    },
    refresh() {
      steps++;
      loaders?.refresh();
    },
    need(values) {
      for (const value of values) needOne(value);
    },
    release(values) {
      for (const value of values) {
        const { next } = placed.get(value.id)!;
        if (next !== value) push(next);
      }
    },
    expertUse: (node) => moving.has(node.inputs[1]?.id ?? -1) ? experts.useOf(node) : undefined,
    take() {
      const loadMs = read(), own = experts.take(), waited = waitedMs + own.waitedMs;
      const figures = {
        ...{ steps, loadMs, waitedMs: waited },
        hidden: loadMs > 0 ? Math.max(0, Math.min(1, 1 - waited / loadMs)) : 1,
        ...plan.experts.length > 0 && { experts: { hits: own.hits, misses: own.misses } },
      };
      [waitedMs, steps, busyBefore] = [0, 0, loaders?.busyMs ?? 0];
      return figures;
    },
    dispose() {
      loaders?.dispose();
      files.close();
    },
  };
}

/** What a step takes at least, at a measured rate. */
function streamNote({ stepBytes, expertBytes }: StreamPlan, bytesPerSecond: number): string {
  const gigabytes = (bytes: number) => `${(bytes / 1e9).toPrecision(3)} GB`;
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

/** Room for the largest weight of a kind, as often as it has slots. */
function placesOf(
  machine: Machine,
  { weights, slots }: SlotKind,
  rounded: ReadonlySet<number>,
): Packed[] {
  const shapes = weights.map((value) => shapeOf(value));
  const sizes = weights.map((value, i) =>
    packedBytes(shapes[i]!.format, { ...shapes[i]!, rounded: rounded.has(value.id) })
  );
  const largest = sizes.indexOf(Math.max(...sizes));
  const source = shapes[largest]!, isRounded = rounded.has(weights[largest]!.id);
  // Tables of other formats' points come into memory with a place of theirs.
  for (const [i, shape] of shapes.entries()) {
    if (shapes.findIndex(({ format }) => format === shape.format) !== i) continue;
    if (shape.format === source.format) continue;
    machine.release(placeWeight(machine, { source: { ...shape, rows: 1 } }).address);
  }
  return Array.from({ length: slots }, () => placeWeight(machine, { source, rounded: isRounded }));
}

function shapeOf(value: Value): { format: string; rows: number; columns: number } {
  const [rows, columns] = matrixSize(value);
  return { format: value.tensor!.format, rows, columns };
}

/** A weight as kernels find it at an address. */
function placeIn({ address }: Packed, value: Value, rounded: ReadonlySet<number>): Packed {
  return packedAt(address, { ...shapeOf(value), rounded: rounded.has(value.id) });
}

function sourceOf(
  value: Value,
  { place, done, bad }: Slot,
  { rounded, files }: { readonly rounded: ReadonlySet<number>; readonly files: StreamedFiles },
): PieceSource {
  const isRounded = rounded.has(value.id);
  return {
    ...{ bytes: files.bytesOf(value), shape: shapeOf(value), rounded: isRounded, done, bad },
    place: placeIn(place, value, rounded),
  };
}
