// A decoder of ONNX files as one PreparedPlan, so that sessions and all that is built on them need not know what
// they run on. A step is: feed the caches, write ids, positions and masks, run the files one after the other,
// keep the new rows. Rows of a step belong to one session: a graph has one past. What stands behind the last
// file with caches (norm and head of a split model) runs on the wanted rows alone.

import { DeviceError, UnsupportedError } from "../../errors.ts";
import type { HostData } from "../../graph/graph.ts";
import { elementCount, getElement } from "../../ops/host_tensor.ts";
import type { PreparedPlan } from "../../run/backend.ts";
import type { Executable } from "../../run/executable.ts";
import { ownRows } from "../../run/pages/cache_rows.ts";
import { type Step, WANTED } from "../../run/step.ts";
import { Caches } from "./caches.ts";
import { type BestPort, blocksOf, type CachePort } from "./ports.ts";
import type { PreparedDecoder } from "./prepare.ts";
import type { DecoderSource } from "./source.ts";
import { type DerivedStage, resultOf, runStage, type StageResult, WANTED_ROWS } from "./stage.ts";
import { heldRows, type StepSizes, totalOf, writeInputs } from "./step_sizes.ts";

/** A file that is ready on the device. */
export interface ReadyStage {
  readonly derived: DerivedStage;
  readonly executable: PreparedPlan;
}

/** Joins files to one executable. */
export function createDecoderExecutable(
  stages: readonly ReadyStage[],
  { source, ...prepared }: PreparedDecoder & {
    /** What the decoder reads first, if it does. */
    readonly source?: DecoderSource | undefined;
  },
): Executable {
  const { plan, vocabulary, limits } = prepared;
  const lastCached = stages.findLastIndex(({ derived }) => derived.ports.caches.length > 0);
  const body = stages.slice(0, lastCached + 1), tail = stages.slice(lastCached + 1);
  const { cached, caches, inputBytes } = cachesOf(body, prepared);
  const logits = new Float32Array(limits.logitRows * vocabulary);
  /** The first row that has logits, of the last step. */
  let first = 0;
  /** Sizes of the last step. */
  let sizes: StepSizes = { rows: 0, length: 0, held: 0 };
  let disposed = false;

  async function run(step: Step, signal?: AbortSignal): Promise<void> {
    if (disposed) throw new TypeError("Cannot run this model: it has been disposed");
    if (step.isSource) return await source!.read(step, signal);
    const { slot, length } = placeOf(step);
    const { tokens, count: rows } = step;
    first = firstWanted(step);
    const wanted = rows - first;
    source?.feed(step.sources[0]!, (name) => stages[lastCached]!.executable.input(name));
    const held = caches.feed(slot, length);
    const size: StepSizes = { rows, length, held, wanted: Math.max(1, wanted) };
    sizes = size;
    let hidden: StageResult | undefined;
    for (const stage of body) hidden = await runOne(stage, { size, tokens, hidden, vocabulary });
    caches.append(length, rows, (i) => {
      const { stage, port } = cached[i]!;
      return newRowsOf(stage, port, size);
    });
    if (wanted === 0) return;
    if (tail.length === 0) return takeLogits(logits, hidden!, { rows, wanted, vocabulary });
    hidden = lastRows(hidden!, hidden!.data.length / rows, wanted);
    const own: StepSizes = { rows: wanted, length: 0, held: 0 };
    for (const stage of tail) {
      hidden = await runOne(stage, { size: own, tokens, hidden, vocabulary });
    }
    takeLogits(logits, hidden, { rows: wanted, wanted, vocabulary });
  }

  const states = {
    readState: (slot: number, count: number) => caches.read(slot, count),
    writeState: (slot: number, count: number, bytes: Uint8Array) =>
      caches.write(slot, count, bytes),
  };
  return {
    plan,
    threads: stages[0]!.executable.threads ?? 1,
    notes: [...new Set(stages.flatMap(({ executable }) => executable.notes ?? []))],
    memory: {
      weights: sumOf(stages, "weights"),
      arena: sumOf(stages, "arena"),
      statePerSlot: caches.bytesPerSlot,
      states: caches.bytesPerSlot * limits.sessions,
      // The inputs are the cache of one session.
      other: Math.max(0, sumOf(stages, "other") - inputBytes),
    },
    openSlot() {
      const slot = caches.open();
      source?.forget(slot);
      return slot;
    },
    closeSlot: (slot) => caches.close(slot),
    ...states,
    ...source && { sourceLengths: source.lengths },
    rows: ownRows(states, { slots: limits.sessions, capacity: limits.contextLength }),
    run,
    isOfOneSlot: true,
    best: () => undefined,
    logits: (row, count = 1) =>
      logits.subarray((row - first) * vocabulary, (row - first + count) * vocabulary),
    output(name) {
      const { derived, executable } = stages[lastCached]!;
      return resultOf(derived, { executable, output: name, sizes }).data;
    },
    hidden() {
      throw new TypeError("An ONNX decoder gives out no hidden states");
    },
    leftLogits: () => undefined,
    dispose() {
      disposed = true;
      source?.dispose();
      for (const { executable } of stages) executable.dispose();
    },
  };
}

/** The caches of the files that have some; every file of a split model has the same past. */
function cachesOf(stages: readonly ReadyStage[], { limits, padTo }: PreparedDecoder) {
  const { sessions: slots, contextLength: capacity } = limits;
  const cached = stages.flatMap((stage) =>
    stage.derived.ports.caches.map((port) => ({
      ...{ stage, port, ...blocksOf(port), dtype: port.dtype },
      data: stage.executable.input(port.name),
    }))
  );
  const { ports } = stages.at(-1)!.derived;
  const heldFor = (length: number) => heldRows(ports, { length, padTo });
  return {
    cached,
    caches: new Caches(cached, { slots, capacity, heldFor }),
    inputBytes: cached.reduce((sum, { data }) => sum + data.byteLength, 0),
  };
}

/** @throws {UnsupportedError} If rows are of several slots, or not behind each other. */
function placeOf({ slots, positions, count }: Step): { slot: number; length: number } {
  const slot = slots[0]!, length = positions[0]!;
  for (let row = 0; row < count; row++) {
    if (slots[row] === slot && positions[row] === length + row) continue;
    throw new UnsupportedError("a step of an ONNX decoder holds consecutive rows of one session");
  }
  return { slot, length };
}

function firstWanted({ wanted, count }: Step): number {
  let row = 0;
  while (row < count && wanted[row] === WANTED.nothing) row++;
  return row;
}

/** Runs a file on what the one before it gave. */
async function runOne(
  { derived, executable }: ReadyStage,
  { size, tokens, hidden, vocabulary }: {
    readonly size: StepSizes;
    readonly tokens: Int32Array;
    readonly hidden: StageResult | undefined;
    readonly vocabulary: number;
  },
): Promise<StageResult> {
  const { ports } = derived;
  const input = (name: string) => executable.input(name);
  writeInputs(ports, { sizes: size, tokens, input });
  if (derived.picksRows) {
    const first = size.rows - size.wanted!;
    const rows = input(WANTED_ROWS) as Int32Array;
    for (let row = 0; row < size.wanted!; row++) rows[row] = first + row;
  }
  if (ports.hidden) put(input(ports.hidden.name), hidden!.data);
  await runStage(derived, { executable, sizes: size });
  const { result, best } = ports;
  return result === undefined
    ? bestRows({ derived, executable }, { port: best!, size, vocabulary })
    : resultOf(derived, { executable, output: result, sizes: size });
}

/** Keeps logits of the last rows; a graph gives those of all its rows, or of the last one. */
function takeLogits(
  target: Float32Array,
  { dtype, data, shape }: StageResult,
  { rows, wanted, vocabulary }: Record<"rows" | "wanted" | "vocabulary", number>,
): void {
  const given = elementCount(shape) / vocabulary;
  const first = given - wanted;
  if (first < 0) {
    throw new DeviceError(`the graph gives logits of ${given} of ${rows} rows, ${wanted} wanted`);
  }
  const count = wanted * vocabulary, from = first * vocabulary;
  if (data instanceof Float32Array) {
    target.set(data.subarray(from, from + count));
    return;
  }
  const source = { dtype, shape, data };
  for (let i = 0; i < count; i++) target[i] = getElement(source, from + i);
}

function sumOf(stages: readonly ReadyStage[], use: "weights" | "arena" | "other"): number {
  return stages.reduce((sum, { executable }) => sum + executable.memory[use], 0);
}

// Every storage of one element type is the same kind of array.
function put(target: HostData, source: HostData): void {
  (target as Uint8Array).set(source as Uint8Array);
}

// Behind the past where the graph gives out old rows too.
function newRowsOf(
  { derived, executable }: ReadyStage,
  { present, axis }: CachePort,
  sizes: StepSizes,
) {
  const { data, shape } = resultOf(derived, { executable, output: present, sizes });
  const { ports } = derived;
  const stride = derived.givesNewRows(present) ? sizes.rows : shape[axis]!;
  const from = derived.givesNewRows(present)
    ? 0
    : ports.past === "buffered"
    ? sizes.length
    : totalOf(ports, sizes) - sizes.rows;
  return { data, stride, from };
}

function lastRows({ dtype, data, shape }: StageResult, width: number, wanted: number): StageResult {
  return { dtype, data: data.subarray(data.length - wanted * width) as HostData, shape };
}

// Logits that are known of the best tokens alone: the others cannot be taken.
function bestRows(
  { derived, executable }: ReadyStage,
  { port: { values, ids }, size, vocabulary }: {
    readonly port: BestPort;
    readonly size: StepSizes;
    readonly vocabulary: number;
  },
): StageResult {
  const found = resultOf(derived, { executable, output: ids, sizes: size });
  const given = values === undefined
    ? undefined
    : resultOf(derived, { executable, output: values, sizes: size });
  const k = values === undefined ? 1 : found.shape.at(-1)!;
  const rows = found.data.length / k;
  const data = new Float32Array(rows * vocabulary).fill(-Infinity);
  for (let i = 0; i < rows * k; i++) {
    const id = Number(found.data[i]);
    const value = given ? getElement(given, i) : 0;
    data[Math.floor(i / k) * vocabulary + id] = value;
  }
  return { dtype: "f32", data, shape: [rows, vocabulary] };
}
