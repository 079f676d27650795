// What of rows of values reaches the host. A row of logits is half a megabyte; a greedy answer needs one id, and a sampler
// that begins with its best few needs those. So they are found on the GPU, of all rows of a run at once, and fetched alone
// where that is all that the caller will look at; rows that are wanted whole come in the same readback. The other rows
// stay where they are until somebody asks for one after all or the next run begins.
//
// Rows are fetched later only where a readback gives results at once (gpu/readback.ts): whoever reads an output does not
// wait for promises. On other devices they are gone, as are those of several rows that went ahead.

import type { BufferScope } from "../../../gpu/gpu.ts";
import { bitsOfOrder } from "../../../gpu/kernels/logit_order.ts";
import { TOP_LOGITS } from "../../../gpu/kernels/top_logits.ts";
import { type CopySource, createReadback } from "../../../gpu/readback.ts";
import { compile, type DimEnv } from "../../graph/dim/mod.ts";
import type { BestLogits, OutputRows, RankedOutput, RankedWish } from "../backend.ts";
import { type BestKind, createBestPrograms, ENTRIES, entryWords } from "./best_programs.ts";
import type { GpuOutput } from "./outputs.ts";
import type { GpuValues } from "./values.ts";
import type { Plan } from "../../plan/plan.ts";
import { maximumOf } from "../../plan/sizes.ts";

/** What is fetched of a run; equal ones are one object. */
export interface LogitsPick {
  readonly kind: BestKind;
  /** Rows of the run. */
  readonly rows: number;
  /** Rows that come whole, ascending. */
  readonly whole: readonly number[];
}

/** What a readback brought of a run. */
export interface BroughtLogits {
  readonly range: ArrayBuffer;
  /** Where it begins there. */
  readonly at: number;
  /** Whether entries of the best came along though nothing was to be found. */
  readonly isFed?: boolean;
  /** Row of the run by row that was asked for; absent: the same. */
  readonly places?: Int32Array;
  /** Where the first row is on the device until `forget`; absent: nowhere. */
  readonly source?: CopySource | undefined;
}

/** The ranked output of the last run, as far as it is known on the host. */
export interface GpuLogits {
  /** Length of a row. */
  readonly vocabulary: number;
  /** Rows at most. */
  readonly most: number;
  /** What to fetch of a run. */
  pickOf(bindings: DimEnv, wish: RankedWish | undefined): LogitsPick;
  /** Appends the dispatches that find that; of run `run` of those ahead: and feed the best of each row back. */
  encode(pass: GPUComputePassEncoder, pick: LogitsPick, run?: number): void;
  /** What is to be copied: entries, those of the best at least of a run ahead, then whole rows, of a run ahead its first. */
  sources(pick: LogitsPick, run?: number): readonly CopySource[];
  /** Where a run ahead leaves its first row. */
  kept(run: number): CopySource;
  /** Takes what came of so many rows that were asked for. */
  take(pick: LogitsPick, rows: number, brought: BroughtLogits): void;
  /** To be called before a run. */
  forget(): void;
  /** Fetches rows that were left on the device; default: all that are there. @throws {TypeError} If one is gone. */
  fetch(rows?: OutputRows): void;
  /** What is known of a row of the last run without all of it. */
  best(row: number): BestLogits | undefined;
  /** Whether a row that was left can no longer be fetched. */
  isGone(row: number): boolean;
}

/** Bytes of the best few of all rows of the ranked output: what a readback must have room for beside those. */
export function entryBytes({ graph, limits }: Plan, ranked: RankedOutput | undefined): number {
  const output = graph.outputs.find(({ name }) => name === ranked?.output);
  return output ? 4 * entryWords("top") * maximumOf(output.shape[0]!, limits) : 0;
}

/** Reads for a plan whose only output are rows that can be fed back; undefined for others. */
export async function createGpuLogits(
  { scope, plan, values, outputs, ranked, runsAhead = 0 }: {
    readonly scope: BufferScope;
    readonly plan: Plan;
    readonly values: GpuValues;
    readonly outputs: readonly GpuOutput[];
    readonly ranked: RankedOutput | undefined;
    /** Runs that may go ahead, and be looked at afterwards; default none. */
    readonly runsAhead?: number;
  },
): Promise<GpuLogits | undefined> {
  const { graph, limits } = plan;
  const [output] = outputs;
  const input = (name: string | undefined) => graph.inputs.find((value) => value.name === name);
  const tokens = input(ranked?.fed), positions = input(ranked?.counted);
  const isRanked = outputs.length === 1 && output!.name === ranked?.output &&
    output!.data instanceof Float32Array;
  if (!isRanked) return undefined;
  const vocabulary = graph.outputs[0]!.shape.at(-1) as number;
  const rowsOf = compile(graph.outputs[0]!.shape[0]!), most = rowsOf(limits);
  const data = output!.data as Float32Array, rowBytes = 4 * vocabulary;
  const programs = await createBestPrograms(scope, {
    logits: values.slice(graph.outputs[0]!),
    ...{ vocabulary, most, runsAhead },
    // A part of a model that takes no tokens feeds none back.
    tokens: values.slice(tokens ?? graph.outputs[0]!),
    positions: values.slice(positions ?? graph.outputs[0]!),
  });
  const readback = await createReadback(scope, rowBytes);
  const few = Math.min(TOP_LOGITS, vocabulary);

  // Made when a row is first taken.
  const found: (FoundLogits | undefined)[] = [];
  /** Rows of the last run, and where the first of those is that the host has not got. */
  let rows = 0;
  let source: CopySource | undefined;
  let last: LogitsPick = { kind: "none", rows: 0, whole: [] };

  const isFew = (wanted: number) => wanted > 0 && wanted <= few;
  const isLeft = (row: number) => row < rows && found[row]!.count > 0 && !found[row]!.isHere;

  function fetchRow(row: number): void {
    const { device } = scope;
    const encoder = device.createCommandEncoder();
    readback.copy(encoder, [partOf(source!, rowBytes * row, rowBytes)]);
    readback.stamp();
    device.queue.submit([encoder.finish()]);
    readback.read(rowBytes, (range, at) => {
      data.set(new Float32Array(range, at, vocabulary), row * vocabulary);
    });
    found[row]!.isHere = true;
  }

  return {
    vocabulary,
    most,
    pickOf(bindings, wish) {
      const count = rowsOf(bindings);
      let best = 0;
      const whole: number[] = [];
      for (let row = 0; row < count; row++) {
        const wanted = wish?.best[row] ?? 0;
        if (isFew(wanted)) best = Math.max(best, wanted);
        else whole.push(row);
      }
      const kind = best === 0 ? "none" : best === 1 ? "best" : "top";
      const pick = { kind, rows: count, whole } as const;
      return isSamePick(pick, last) ? last : last = pick;
    },
    encode: (pass, { kind, rows }, run) => programs.encode(pass, { kind, rows, run }),
    kept: programs.kept,
    sources({ kind, rows, whole }, run) {
      const isFed = run !== undefined;
      const entries = programs.source(isFed && kind === "none" ? "best" : kind, { rows, run });
      if (isFed) return [entries, ...whole.length > 0 ? [programs.kept(run)] : []];
      const sources = [entries];
      for (let first = 0, end = 0; first < whole.length; first = end) {
        while (end < whole.length && whole[end]! - whole[first]! === end - first) end++;
        const row = rowBytes * whole[first]!;
        sources.push(partOf({ ...output!.source, bytes: 0 }, row, rowBytes * (end - first)));
      }
      return sources.filter(({ bytes }) => bytes > 0);
    },
    take({ kind, rows: brought, whole }, asked, { range, at, isFed, places, source: from }) {
      const words = entryWords(kind), count = Math.min(ENTRIES[kind], vocabulary);
      const entries = new Uint32Array(range, at, words * brought);
      for (let row = 0; row < asked; row++) {
        (found[row] ??= createFound()).set(entries, words * (places?.[row] ?? row), count);
      }
      let start = at + 4 * brought * entryWords(isFed && kind === "none" ? "best" : kind);
      for (const row of whole) {
        data.set(new Float32Array(range, start, vocabulary), row * vocabulary);
        found[row]!.count = 0;
        start += rowBytes;
      }
      rows = asked;
      source = readback.isImmediate ? from : undefined;
    },
    forget() {
      rows = 0;
      source = undefined;
    },
    fetch(wanted) {
      const { first, count } = wanted ?? { first: 0, count: rows };
      for (let row = first; row < first + count; row++) {
        if (!isLeft(row)) continue;
        if (source) fetchRow(row);
        else if (wanted) throw new TypeError(`Cannot give row ${row} of ${output!.name}: ${GONE}`);
      }
    },
    best: (row) => row < rows && found[row]!.count > 0 ? found[row] : undefined,
    isGone: (row) => !source && isLeft(row),
  };
}

const GONE = "the best of it were wished for, and nothing else is left";

/** The best of a row, in arrays that are made once. */
interface FoundLogits extends BestLogits {
  count: number;
  /** Whether the host has all of the row. */
  isHere: boolean;
  /** Takes so many entries from a word on. */
  set(entries: Uint32Array, first: number, count: number): void;
}

function createFound(): FoundLogits {
  const ids = new Uint32Array(TOP_LOGITS), bits = new Uint32Array(TOP_LOGITS);
  return {
    ...{ ids, logits: new Float32Array(bits.buffer), count: 0, isHere: false },
    set(entries, first, count) {
      for (let i = 0; i < count; i++) {
        bits[i] = bitsOfOrder(entries[first + 2 * i]!);
        ids[i] = entries[first + 2 * i + 1]!;
      }
      this.count = count;
      this.isHere = false;
    },
  };
}

function partOf({ buffer, offset }: CopySource, from: number, bytes: number): CopySource {
  return { buffer, offset: offset + from, bytes };
}

function isSamePick(a: LogitsPick, b: LogitsPick): boolean {
  return a.kind === b.kind && a.rows === b.rows && a.whole.length === b.whole.length &&
    a.whole.every((row, i) => row === b.whole[i]);
}
