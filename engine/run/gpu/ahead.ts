// Steps ahead of their reader. While answers are greedy, the next token is the most probable one, and the GPU knows it
// first: it feeds the token back by itself and goes on, several steps in one submission, and results are
// fetched in batches. To the host nothing changes: it asks for a step as ever, and if that is the one which was
// foreseen, its logits are there. If it asks for another (a sampler decided otherwise, a stop, another
// session), what was computed ahead is forgotten: it lies behind the end of the session, where it will be overwritten.
// Where the host looks at the best logits only (logits.ts), those are all that is fetched; the rows are kept on the
// GPU as long as the host may still ask for them.
//
// Steps are foreseen only after the host has taken the most probable token several times in a row.

import { type GpuMemory, STORAGE_USAGE } from "../../../gpu/gpu.ts";
import type { Program } from "../../../gpu/program.ts";
import { type CopySource, createReadback, type Readback } from "../../../gpu/readback.ts";
import type { DimEnv } from "../../graph/dim/mod.ts";
import type { StepWish } from "../backend.ts";
import type { GpuLogits, LogitsKind } from "./logits.ts";
import { type GpuOutput, ONE_ROW, rowOf } from "./outputs.ts";
import type { Reach } from "./cache_reach.ts";
import type { GpuValues } from "./values.ts";
import type { Plan } from "../../plan/plan.ts";

/** Greedy choices in a row that make the next ones likely. */
const CONFIDENCE = 3;
/** Steps of the first submission. */
const FIRST_STEPS = 2;
const INPUTS = ["tokens", "positions", "slots", "logit_rows"];

/** Steps that may have been computed before they are asked for. */
export interface StepsAhead {
  /**
   * Gives the outputs of a step if it was foreseen.
   *
   * @returns False if it must be computed; a promise where results cannot be taken at once.
   */
  take(bindings: DimEnv, wish?: StepWish): boolean | Promise<void>;
  /** To be called after a step that was computed because it was not foreseen. */
  learn(bindings: DimEnv): void;
  /** To be called when states are changed otherwise than by steps. */
  forget(): void;
  /** Steps that were given without being computed when they were asked for. */
  readonly count: number;
}

/** A step that may come. */
interface Expected {
  readonly token: number | undefined;
  readonly position: number;
  readonly slot: number;
}

const NOTHING: Expected = { token: undefined, position: -1, slot: -1 };

/** Steps that wait to be submitted. */
interface Encoded {
  readonly position: number;
  readonly slot: number;
  /** Steps that may be added. */
  readonly most: number;
  readonly bindings: DimEnv;
  readonly kind: LogitsKind;
  readonly turn: number;
  readonly commands: GPUCommandBuffer[];
}

/** A submission of several steps. */
interface Batch {
  readonly readback: Readback;
  readonly kind: LogitsKind;
  readonly turn: number;
  readonly size: number;
  /** Position of the first of them, and its token, as far as it is known. */
  readonly position: number;
  readonly slot: number;
  first: number;
  /** What was fetched of each step, and the tokens that follow them. */
  readonly results: Uint32Array<ArrayBuffer>;
  readonly tokens: Uint32Array;
  isFetched: boolean;
}

/**
 * Steps ahead for graphs that they make sense for: one row a token, logits as the only output. `undefined` for others.
 *
 * @param depth Most steps of one submission; a stop discards at most twice as many.
 */
export async function createStepsAhead(
  { scope, plan, values, program, outputs, reach, logits, depth }: {
    readonly scope: GpuMemory;
    readonly plan: Plan;
    readonly values: GpuValues;
    readonly program: Program<DimEnv>;
    readonly outputs: readonly GpuOutput[];
    readonly reach: Reach;
    readonly logits: GpuLogits | undefined;
    readonly depth: number;
  },
): Promise<StepsAhead | undefined> {
  const { graph, limits } = plan;
  const inputs = new Map(graph.inputs.map((value) => [value.name, value]));
  const [output] = outputs;
  const fits = depth > 0 && logits && inputs.size === INPUTS.length &&
    INPUTS.every((name) => inputs.has(name)) &&
    Object.keys(limits).sort().join() === "L,M" && graph.states.length > 0;
  if (!fits) return undefined;
  const { vocabulary, feedback } = logits;
  const capacity = Math.min(...graph.states.map(({ shape }) => shape[0] as number));
  const [tokens, positions, slots, logitRows] = INPUTS.map((name) =>
    values.input(inputs.get(name)!) as Int32Array
  ) as [Int32Array, Int32Array, Int32Array, Int32Array];
  const row = rowOf(output!);
  // Behind a row comes the entry that was fed back; the best few begin with it.
  const [entry, entries] = [logits.source("best")!, logits.source("top")!];
  const sources: Readonly<Record<LogitsKind, readonly CopySource[]>> = {
    row: [row, entry],
    best: [entry],
    top: [entries],
  };
  const stepBytes: Readonly<Record<LogitsKind, number>> = {
    row: row.bytes + entry.bytes,
    best: entry.bytes,
    top: entries.bytes,
  };
  /** Where among a step's results the id stands that follows it, in words. */
  const idAt: Readonly<Record<LogitsKind, number>> = { row: vocabulary + 1, best: 1, top: 1 };
  const mostBytes = depth * Math.max(...Object.values(stepBytes));
  const readbacks = await Promise.all([0, 1].map(() => createReadback(scope, mostBytes)));
  const memory = readbacks.map(() => ({
    results: new Uint32Array(mostBytes / 4),
    tokens: new Uint32Array(depth),
  }));
  const kept = scope.createBuffer("logits ahead", 2 * depth * row.bytes, STORAGE_USAGE);
  /** Where the row of a step is kept. */
  const keptRow = (turn: number, index: number): CopySource => ({
    ...{ buffer: kept, offset: (turn * depth + index) * row.bytes, bytes: row.bytes },
  });

  /** What is being served, and what the GPU works on meanwhile. */
  let current: Batch | undefined;
  let next: Batch | undefined;
  /** What is encoded for the batch after that. */
  let ready: Encoded | undefined;
  /** Steps of `current` that were served. */
  let served = 0;
  /** Best tokens that were taken in a row. */
  let streak = 0;
  /** What a greedy host asks for next; no token: the best by the outputs, looked for when the host asks. */
  let expected: Expected = NOTHING;
  /** Whether the host asked for it. */
  let isFollowed = false;
  let turn = 0;
  let count = 0;
  /** What the host last looked at. */
  let wished: LogitsKind = "row";

  function prepare(position: number, slot: number): Encoded | undefined {
    const most = Math.min(depth, capacity - position);
    if (most <= 0) return undefined;
    turn = 1 - turn;
    // One reach for all: sizes must not change between what is encoded and what is submitted.
    const bindings = reach.of(ONE_ROW, position + most - 1);
    return { position, slot, most, bindings, kind: wished, turn, commands: [] };
  }

  /** Encodes steps until there are so many. */
  function encode(batch: Encoded, size: number): void {
    const { commands, bindings, most, kind, turn } = batch;
    if (commands.length >= Math.min(size, most)) return;
    program.bind(bindings);
    while (commands.length < Math.min(size, most)) {
      const index = commands.length;
      const encoder = scope.device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      program.encode(pass);
      feedback.encode(pass);
      if (kind === "top") logits!.top.encode(pass);
      pass.end();
      if (kind !== "row") {
        const { buffer, offset, bytes } = keptRow(turn, index);
        encoder.copyBufferToBuffer(row.buffer, row.offset, buffer, offset, bytes);
      }
      readbacks[turn]!.copy(encoder, sources[kind], index * stepBytes[kind]);
      commands.push(encoder.finish());
    }
  }

  function submit({ position, slot, turn, kind, commands, bindings }: Encoded): Batch {
    const readback = readbacks[turn]!;
    program.bind(bindings);
    readback.stamp();
    scope.device.queue.submit(commands);
    const size = commands.length;
    const place = { position, slot, first: -1 };
    return { readback, kind, turn, size, ...place, ...memory[turn]!, isFetched: false };
  }

  /** Brings the results of a batch to the host; the GPU goes on with the next one meanwhile. */
  function fetch(batch: Batch): void | Promise<void> {
    const { readback, size, position, slot, kind } = batch;
    // While the GPU works on this batch, the next one is encoded; most of it was already, a step at each `serve`.
    ready ??= prepare(position + size, slot);
    if (ready) encode(ready, 2 * size);
    const upcoming = ready;
    ready = undefined;
    const goOn = () => {
      next = upcoming && submit(upcoming);
      ready = next && prepare(next.position + next.size, slot);
    };
    const words = stepBytes[kind] / 4;
    return readback.read(size * stepBytes[kind], (range, start) => {
      batch.results.set(new Uint32Array(range, start, size * words));
      for (let i = 0; i < size; i++) batch.tokens[i] = batch.results[i * words + idAt[kind]]!;
      batch.isFetched = true;
    }, goOn);
  }

  function isNext(batch: Batch): boolean {
    const token = served === 0 ? batch.first : batch.tokens[served - 1];
    return tokens[0] === token && slots[0] === batch.slot &&
      positions[0] === batch.position + served && logitRows[0] === 0;
  }

  function isExpected(): boolean {
    const { token, position, slot } = expected;
    if (positions[0] !== position || slots[0] !== slot || logitRows[0] !== 0) return false;
    return token === undefined ? isBest(tokens[0]!) : tokens[0] === token;
  }

  // Ends at the first better one: a host that samples pays for no whole search.
  function isBest(token: number): boolean {
    const row = output!.data as Float32Array;
    const value = row[token]!;
    for (let i = 0; i < token; i++) if (row[i]! >= value) return false;
    for (let i = token + 1; i < vocabulary; i++) if (row[i]! > value) return false;
    return true;
  }

  function serve(batch: Batch): void {
    const { kind, turn, results } = batch;
    const at = served * stepBytes[kind];
    if (kind !== "row") logits!.take(kind, results.buffer, at, keptRow(turn, served));
    else {
      logits!.forget();
      (output!.data as Float32Array).set(new Float32Array(results.buffer, at, vocabulary));
    }
    served++;
    count++;
    const token = batch.tokens[served - 1]!;
    expected = { token, position: batch.position + served, slot: batch.slot };
    if (ready) encode(ready, ready.commands.length + 1);
    if (served === batch.size) {
      current = next;
      if (current) current.first = token;
      next = undefined;
      served = 0;
    }
  }

  /** Starts with few steps, so that the first of them is not late. */
  function begin(): Batch | undefined {
    const first = prepare(positions[0]!, slots[0]!);
    if (!first) return undefined;
    values.writeInputs();
    encode(first, FIRST_STEPS);
    const batch = submit(first);
    batch.first = tokens[0]!;
    return batch;
  }

  function drop(): void {
    current = next = undefined;
    ready = undefined;
    served = 0;
  }

  function forget(): void {
    drop();
    expected = NOTHING;
  }

  function take(bindings: DimEnv, wish?: StepWish): boolean | Promise<void> {
    const isOneRow = bindings.M === 1 && bindings.L === 1;
    wished = logits!.kindOf(bindings, wish);
    if (!isOneRow || (current && !isNext(current))) drop();
    if (!current) {
      isFollowed = isOneRow && isExpected();
      if (isFollowed && streak >= CONFIDENCE) current = begin();
    }
    if (!current) return false;
    const batch = current;
    const fetched = batch.isFetched ? undefined : fetch(batch);
    if (fetched) return fetched.then(() => serve(batch));
    serve(batch);
    return true;
  }

  function learn({ M = 0, L = 0 }: DimEnv): void {
    if (L !== 1 || M < 1) return forget();
    if (M === 1) streak = isFollowed ? streak + 1 : 0;
    const row = logitRows[0]!;
    const token = logits!.best()?.ids[0];
    expected = { token, position: positions[row]! + 1, slot: slots[row]! };
  }

  return {
    take,
    learn,
    forget,
    get count() {
      return count;
    },
  };
}
