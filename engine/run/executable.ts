// Steps of a language model on a prepared plan, of whatever backend: the one place that writes a step's table into the
// inputs of a graph, and the only one that knows how those are called. A graph takes
//
//   rows of texts     tokens, positions, slots i32[M]; logit_rows i32[L], the rows of which something is wanted
//   encoders          starts, ends i32[M], the rows of a row's text, or row_ends, those up to itself; types i32[M] where
//                     tokens have types
//   pictures          patches f32[M, …]; wanted_starts, wanted_ends i32[L], the patches of wanted pictures
//   sources           the same with `source_` in front, i32[E]: an encoder-decoder reads or writes in a step;
//                     of sound source_features f32[W, bands, 1, frames] in place of tokens, a window each
//   their readers     memory_slots, memory_ends i32[M]: whose source a row sees, and how long it is
//   adapters          adapter.0, adapter.1, … f32[M, 1], and source_adapter.0, … f32[E, 1]
//   long texts        spans i32[M]: how long a row's whole text is (spans.ts)
//   pictures          their rows, and where those stand (picture_inputs.ts)
//
// and gives `logits` or `scores` f32[L, …], `vectors` f32[L, …] and `hidden`, of the wanted rows or of all. What it does not have is left out.

import { type DimEnv, equal } from "../graph/dim/mod.ts";
import type { Value } from "../graph/graph.ts";
import type { HostData } from "../ops/op.ts";
import type { Plan } from "../plan/plan.ts";
import type { Loaded, PreparedPlan, PrepareOptions, RankedOutput, RankedWish } from "./backend.ts";
import { createLeftRows } from "./left_rows.ts";
import { type CacheRows, ownRows } from "./pages/cache_rows.ts";
import { pagesFor, type StateSizes } from "./pages/groups.ts";
import { createPagedRows } from "./pages/paged_rows.ts";
import { PICTURE_SYMBOL, type PictureRows, pictureWriter } from "./picture_inputs.ts";
import { inChunks } from "./row_chunks.ts";
import type { SpanKeeper, SpanParts } from "./spans.ts";
import { type Step, type StepLane, WANTED } from "./step.ts";

/** A language model made ready on a device: it runs steps. */
export interface Executable extends Loaded, StepLane {
  /**
   * Takes a free slot; throws ResourceError when all are taken.
   *
   * @param keep Given the row of logits of which the best were asked for, when another slot's step replaces it.
   */
  openSlot(keep?: (logits: Float32Array) => void): number;
  /** Any output of the last step, of all its rows: a view; absent: there are no others. */
  output?(name: string): HostData;
  /** The rows of the slots' caches. */
  readonly rows: CacheRows;
  /** Where several steps of different slots may be under way at once: one that runs them, for each. */
  readonly lanes?: readonly Executable[];
  /** See {@linkcode PreparedPlan.leastLanes}. */
  readonly leastLanes?: number;
  /** Whether a step of which nothing is wanted is queued: the device computes it while others are written. */
  readonly queues?: boolean;
  /** See {@linkcode PreparedPlan.readsAtOnce}. */
  readonly readsAtOnce?: boolean;
  /** See {@linkcode PreparedPlan.pauses}. */
  readonly pauses?: boolean;
  /** See {@linkcode PreparedPlan.picksAllowed}. */
  readonly picksAllowed?: boolean;
  /** Whether all rows of a step must be of one slot. */
  readonly isOfOneSlot?: boolean;
  /** Of encoder-decoders: tokens of the source that each slot holds; 0: none. */
  readonly sourceLengths?: Int32Array;
}

/** An executable on one prepared plan. */
export interface PlanExecutable<P extends PreparedPlan> extends Executable {
  readonly prepared: P;
}

/** In front of the inputs for rows of sources. */
const SOURCE = "source_";
/** The input of a graph whose sources are sound. */
export const SOURCE_FEATURES = `${SOURCE}features`;
/** Logits are looked at by their best, and the best token is fed back one position further on. */
export const RANKED: RankedOutput = { output: "logits", fed: "tokens", counted: "positions" };
/** Outputs with a row for each wanted one. */
const HEADS = ["logits", "scores"];

/** Names of inputs with the scales of an adapter. */
const SCALES = /^(.*)adapter\.(\d+)$/;

/** Name of the input that has the scales of an adapter; the prefix is that of all inputs of these rows. */
export function adapterInput(adapter: number, prefix = ""): string {
  return `${prefix}adapter.${adapter}`;
}

/** A plan of a language model, and how it is made ready. */
export interface ExecutableOptions extends Omit<PrepareOptions, "ranked" | "pages"> {
  readonly plan: Plan;
  /** Rows of the caches of all slots together; default: as many as they hold at their longest. */
  readonly cacheTokens?: number | undefined;
  /** Rows of pictures, where the graph takes some. */
  readonly pictures?: PictureRows | undefined;
}

/** Makes a plan ready to run steps. */
export async function prepareExecutable<P extends PreparedPlan>(
  backend: { prepare(plan: Plan, options: PrepareOptions): Promise<P> },
  { plan, cacheTokens, pictures, ...options }: ExecutableOptions,
): Promise<PlanExecutable<P>> {
  const has = (name: string) => plan.graph.inputs.some((input) => input.name === name);
  const isRanked = plan.graph.outputs.some(({ name }) => name === "logits") && has("slots");
  const sizes = {
    slots: options.slots,
    pages: pagesFor(plan, { ...options, tokens: cacheTokens }),
  };
  const prepared = await backend.prepare(plan, {
    ...{ ...options, ...sizes },
    ...isRanked && { ranked: RANKED },
  });
  return await createExecutable(prepared, { ...sizes, pictures });
}

/** Puts steps on a plan that is ready. */
async function createExecutable<P extends PreparedPlan>(
  prepared: P,
  { slots: slotCount, pages, pictures }: StateSizes & {
    readonly pages: readonly number[];
    readonly pictures: PictureRows | undefined;
  },
): Promise<PlanExecutable<P>> {
  const { limits, graph: { states } } = prepared.plan;
  const capacity = (states[0]?.shape[0] ?? 0) as number;
  const paged = prepared.pages && capacity > 0
    ? createPagedRows({ plan: prepared.plan, pages: prepared.pages }, {
      ...{ slots: slotCount, pages },
      isSource: ({ positions }) => positions?.name.startsWith(SOURCE) ?? false,
    })
    : undefined;
  const rows = inputsOf(prepared, "", pictures), sources = inputsOf(prepared, SOURCE);
  // Who runs a text again, or reads sources, does so in order.
  const readsSources = "E" in limits || "W" in limits;
  const isInOrder = readsSources ||
    prepared.plan.graph.inputs.some(({ name }) => name === "spans");
  const sourceLengths = readsSources ? new Int32Array(slotCount) : undefined;
  const results = createResults(prepared);
  const left = createLeftRows(prepared, { slotCount, ...results });
  const spans = await spansOf(prepared.plan, { adapters: rows.scales.length, compute });

  function compute(step: Step, signal?: AbortSignal): void | Promise<void> {
    paged?.cover(step);
    if (paged && step.feedback > 0) step.feedback = paged.coverAhead(step);
    left.makeWay(step);
    const inputs = step.isSource ? sources : rows;
    const pictured = writeRows(inputs, step);
    if (step.features) (prepared.input(SOURCE_FEATURES) as Float32Array).set(step.features);
    if (step.isSource) countSources(sourceLengths!, step, 0);
    else if (inputs.memory_ends) writeMemoryEnds(inputs.memory_ends, step, sourceLengths!);
    spans?.write(inputs.spans!, step);
    const wanted = results.choose(step);
    const bindings = bindingsOf(limits, step, { wanted, pictured });
    const done = prepared.run(bindings, results.wishOf(step, wanted), signal);
    if (done) return done.then(() => finish(step));
    finish(step);
  }

  function finish(step: Step): void {
    if (step.isSource) countSources(sourceLengths!, step, 1);
    else left.note(step, results.best);
  }

  const executable: PlanExecutable<P> = {
    ...prepared,
    prepared,
    lanes: [],
    rows: withSpans(paged ?? ownRows(prepared, { slots: slotCount, capacity }), spans),
    ...sourceLengths && { sourceLengths },
    ...rows.patches && { patches: rows.patches },
    run: spans?.run ?? compute,
    best: results.best,
    logits: results.logits,
    ...results.vectors && { vectors: results.vectors },
    hidden: results.hidden,
    leftLogits: left.of,
    openSlot(keep) {
      const slot = prepared.openSlot();
      left.reset(slot, keep);
      spans?.open(slot);
      sourceLengths?.fill(0, slot, slot + 1);
      return slot;
    },
    closeSlot(slot) {
      left.reset(slot);
      spans?.close(slot);
      paged?.close(slot);
      prepared.closeSlot(slot);
    },
    async readState(slot, count) {
      await spans?.beforeRead(slot, count);
      return await prepared.readState(slot, count);
    },
    async writeState(slot, count, bytes) {
      if (paged?.restore(slot, count) === false) throw paged.full();
      await prepared.writeState(slot, count, bytes);
      spans?.restored(slot, count);
    },
  };
  if (!prepared.lanes || isInOrder) return withoutLanes(executable);
  const made = [prepared.lanes, prepared.chunkLanes ?? []].map((lanes) =>
    lanes.map((lane) => createLane({ ...prepared, ...lane }, pictures))
  );
  // Texts of encoders, and pictures, are not cut.
  const [own, helpers] = [made[0]!, rows.starts || rows.writePictures ? [] : made[1]!];
  const lanes = inChunks(own, helpers).map((lane): Executable => ({
    ...{ ...executable, ...lane },
    run(step, signal) {
      paged?.cover(step);
      return lane.run(step, signal);
    },
  }));
  return { ...executable, lanes };
}

function withoutLanes<P extends PreparedPlan>(
  { lanes: _, ...executable }: PlanExecutable<P>,
): PlanExecutable<P> {
  return executable;
}

/** One of several that run steps of their own slots at the same time: with inputs and results of its own. */
function createLane(prepared: PreparedPlan, pictures: PictureRows | undefined): StepLane {
  const { limits } = prepared.plan;
  const rows = inputsOf(prepared, "", pictures), results = createResults(prepared);
  return {
    ...results,
    ...rows.patches && { patches: rows.patches },
    leftLogits: () => undefined,
    run(step, signal) {
      const pictured = writeRows(rows, step);
      const wanted = results.choose(step);
      const bindings = bindingsOf(limits, step, { wanted, pictured });
      return prepared.run(bindings, results.wishOf(step, wanted), signal);
    },
  };
}

/** For graphs that look at the length of texts; what few models need is read for them. */
async function spansOf(
  plan: Plan,
  parts: Omit<SpanParts, "beyond">,
): Promise<SpanKeeper | undefined> {
  const reader = plan.graph.nodes.find(({ inputs }) =>
    inputs.some((value) => value?.name === "spans")
  );
  if (!reader) return undefined;
  const { createSpanKeeper } = await import("./spans.ts");
  return createSpanKeeper(plan, { beyond: reader.attributes.beyond as number, ...parts });
}

/** Rows whose rotations hang on the length of the whole text are not those of another one. */
function withSpans(rows: CacheRows, spans: SpanKeeper | undefined): CacheRows {
  if (!spans) return rows;
  return {
    ...rows,
    get freeTokens() {
      return rows.freeTokens;
    },
    fork(from, to) {
      spans.fork(from.slot, to);
      return rows.fork(from, to);
    },
    sharesTexts: false,
    adopt: () => 0,
    note: () => {},
  };
}

/** Inputs that take a column as it is. */
const COLUMNS = {
  tokens: "tokens",
  positions: "positions",
  slots: "slots",
  types: "types",
  memory_slots: "sources",
} as const;
/** Inputs that follow from the columns. */
const DERIVED = ["starts", "ends", "row_ends", "memory_ends", "spans"] as const;

/** Inputs of a graph for rows of one kind. */
interface RowInputs
  extends Readonly<Partial<Record<keyof typeof COLUMNS | typeof DERIVED[number], Int32Array>>> {
  /** With the columns that they take. */
  readonly columns: readonly (readonly [Int32Array, typeof COLUMNS[keyof typeof COLUMNS]])[];
  /** With the adapter that they are of. */
  readonly scales: readonly (readonly [Float32Array, number])[];
  /** What writes the rows of pictures among the tokens. */
  readonly writePictures: ReturnType<typeof pictureWriter>;
  readonly patches: Float32Array | undefined;
}

function inputsOf(
  prepared: PreparedPlan,
  prefix: string,
  pictures?: PictureRows | undefined,
): RowInputs {
  const names = new Set(prepared.plan.graph.inputs.map(({ name }) => name));
  const found = (wanted: readonly string[]) =>
    wanted.filter((name) => names.has(prefix + name))
      .map((name) => [name, prepared.input(prefix + name)] as const);
  const scales = prepared.plan.graph.inputs.flatMap(({ name }) => {
    const [, place, adapter] = SCALES.exec(name) ?? [];
    if (place !== prefix) return [];
    return [[prepared.input(name) as Float32Array, Number(adapter)] as const];
  });
  const columns = found(Object.keys(COLUMNS)).map(([name, input]) =>
    [input as Int32Array, COLUMNS[name as keyof typeof COLUMNS]] as const
  );
  const writePictures = pictureWriter(prepared, pictures), patches = patchesOf(prepared);
  return { ...Object.fromEntries(found(DERIVED)), columns, scales, writePictures, patches };
}

/** Writes the table; gives how many of its rows are of pictures among tokens. */
function writeRows(inputs: RowInputs, step: Step): number {
  const { columns, scales, starts, ends, row_ends, writePictures } = inputs;
  for (const [input, name] of columns) copyRows(input, step[name], step.count);
  for (const [input, adapter] of scales) copyRows(input, step.scales[adapter]!, step.count);
  if (writePictures) return writePictures(step);
  if (!starts) return 0;
  const { slots, count } = step;
  for (let from = 0, to = 0; from < count; from = to) {
    while (to < count && slots[to] === slots[from]) to++;
    starts.fill(from, from, to);
    ends?.fill(to, from, to);
    for (let row = from; row_ends && row < to; row++) row_ends[row] = row + 1;
  }
  return 0;
}

function patchesOf(prepared: PreparedPlan): RowInputs["patches"] {
  const hasPatches = prepared.plan.graph.inputs.some(({ name }) => name === "patches");
  return hasPatches ? prepared.input("patches") as Float32Array : undefined;
}

function copyRows<T extends Int32Array | Float32Array>(target: T, source: T, count: number): void {
  for (let row = 0; row < count; row++) target[row] = source[row]!;
}

/** Forgets the sources of a step's slots, and counts 1 for each of its rows when they are computed. */
function countSources(lengths: Int32Array, { slots, count }: Step, each: 0 | 1): void {
  for (let row = 0; row < count; row++) lengths[slots[row]!] = each && lengths[slots[row]!]! + 1;
}

/** @throws {TypeError} If a row looks at a slot that holds no source. */
function writeMemoryEnds(ends: Int32Array, { sources, count }: Step, lengths: Int32Array): void {
  for (let row = 0; row < count; row++) {
    ends[row] = lengths[sources[row]!]!;
    if (ends[row]! > 0) continue;
    throw new TypeError("Cannot compute: this session has no source text yet; call encode first");
  }
}

function bindingsOf(
  limits: DimEnv,
  { count, isSource }: Step,
  { wanted, pictured }: { readonly wanted: number; readonly pictured: number },
): DimEnv {
  const M = isSource ? 0 : count;
  if (PICTURE_SYMBOL in limits) return { M, L: wanted, [PICTURE_SYMBOL]: pictured };
  if ("E" in limits) return { M, L: wanted, E: isSource ? count : 0 };
  if ("W" in limits) return { M, L: wanted, W: isSource ? 1 : 0 };
  return "L" in limits ? { M, L: wanted } : { M };
}

/** What of a step is wanted, and where it lies. */
interface Results extends Pick<Executable, "best" | "logits" | "vectors" | "hidden"> {
  /** Whether nothing is left of a row but its best logits. */
  isGone(row: number): boolean;
  /** Tells the graph which rows are wanted; their number. */
  choose(step: Step): number;
  /** Undefined: all logits, and no step follows. */
  wishOf(step: Step, wanted: number): RankedWish | undefined;
}

function createResults(prepared: PreparedPlan): Results {
  const { graph: { inputs, outputs }, limits } = prepared.plan;
  const rows = inputs.find(({ name }) => name === "logit_rows");
  const logitRows = rows && prepared.input(rows.name) as Int32Array;
  const patches = inputs.some(({ name }) => name === "wanted_starts")
    ? {
      starts: prepared.input("wanted_starts") as Int32Array,
      ends: prepared.input("wanted_ends") as Int32Array,
    }
    : undefined;
  const head = outputs.find(({ name }) => HEADS.includes(name));
  const vectors = outputs.find(({ name }) => name === "vectors");
  const state = outputs.find(({ name }) => name === "hidden");
  const isStateOfWanted = rows && state && equal(rows.shape[0]!, state.shape[0]!);
  const places = new Int32Array(limits.M!);
  const wish: { -readonly [K in keyof RankedWish]: RankedWish[K] } = {
    ...{ best: new Int32Array(limits.L ?? 0), repeats: 0, allowed: undefined },
  };

  function view(output: Value | undefined, place: number, count: number): Float32Array {
    if (!output) throw new TypeError(`${prepared.plan.graph.name} does not give that out`);
    const width = output.shape.at(-1) as number;
    const all = prepared.output(output.name, { first: place, count }) as Float32Array;
    return all.subarray(place * width, (place + count) * width);
  }

  return {
    choose({ wanted, count, slots, leading }) {
      let chosen = 0;
      for (let row = 0; logitRows && row < count; row++) {
        const what = wanted[row]!;
        if (what === WANTED.nothing || what === WANTED.hidden && !isStateOfWanted) continue;
        logitRows[chosen] = row;
        wish.best[chosen] = what;
        if (patches) {
          let end = row + 1;
          while (end < count && slots[end] === slots[row]) end++;
          patches.starts[chosen] = row + leading;
          patches.ends[chosen] = end;
        }
        places[row] = chosen++;
      }
      return chosen;
    },
    wishOf({ feedback, count, allowed }, wanted) {
      wish.repeats = wanted === count ? feedback : 0;
      wish.allowed = wanted === 1 && count === 1 ? allowed : undefined;
      if (wish.repeats > 0) return wish;
      for (let place = 0; place < wanted; place++) if (wish.best[place]! > 0) return wish;
      return undefined;
    },
    best: (row) => prepared.best?.(places[row]!),
    isGone: (row) => prepared.isGone?.(places[row]!) ?? false,
    logits: (row, count = 1) => view(head, places[row]!, count),
    ...vectors && { vectors: (row, count = 1) => view(vectors, places[row]!, count) },
    hidden: (row, count = 1) => view(state, isStateOfWanted ? places[row]! : row, count),
  };
}
