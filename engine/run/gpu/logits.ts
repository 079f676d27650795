// What of a row of values reaches the host. A row of logits is half a megabyte; a greedy answer needs one id, and a sampler
// that begins with its best few needs those. So they are found on the GPU and fetched alone where that is all that the
// caller will look at, and the row stays where it is until somebody asks for it after all or the next run begins.
//
// Rows are fetched later only where a readback gives results at once (gpu/readback.ts): whoever reads an output does not
// wait for promises. On other devices, and for several rows, every run brings them whole.

import { type BufferScope, STORAGE_USAGE } from "../../../gpu/gpu.ts";
import type { GpuSlice } from "../../../gpu/kernel.ts";
import {
  ARGMAX_PARTS,
  argmaxFeedbackShader,
  argmaxPartsShader,
} from "../../../gpu/kernels/argmax.ts";
import { bitsOfOrder } from "../../../gpu/kernels/logit_order.ts";
import { TOP_LOGITS, TOP_TILE, topLogitsShader } from "../../../gpu/kernels/top_logits.ts";
import { createProgram, type Program, type ProgramDispatch } from "../../../gpu/program.ts";
import { type CopySource, createReadback } from "../../../gpu/readback.ts";
import type { DimEnv } from "../../graph/dim/mod.ts";
import type { BestLogits, RankedOutput, RankedWish } from "../backend.ts";
import type { GpuOutput } from "./outputs.ts";
import type { GpuValues } from "./values.ts";
import type { Plan } from "../../plan/plan.ts";

/** What is fetched of a row: all of it, its best logit, or its best few. */
export type LogitsKind = "row" | "best" | "top";

/** Bytes of an entry: its order (gpu/kernels/logit_order.ts) and its id. */
const ENTRY_BYTES = 8;
/** Bytes of the best few: what a readback must have room for. */
export const TOP_BYTES: number = ENTRY_BYTES * TOP_LOGITS;

/** The ranked output of the last run, as far as it is known on the host. */
export interface GpuLogits {
  /** Length of a row. */
  readonly vocabulary: number;
  /** What to fetch of a run. */
  kindOf(bindings: DimEnv, wish: RankedWish | undefined): LogitsKind;
  /** Finds the best value, and feeds its column back where the plan is for that. */
  readonly feedback: Program<DimEnv>;
  /** Finds the best few. */
  readonly top: Program<DimEnv>;
  /** What those leave, by kind; nothing for rows. */
  source(kind: LogitsKind): CopySource | undefined;
  /** Takes fetched entries; the row lies in `row` until `forget`. */
  take(kind: LogitsKind, range: ArrayBuffer, at: number, row: CopySource): void;
  /** To be called before a run, or when its row has arrived. */
  forget(): void;
  /** Fetches the row of the last run if that was put off. */
  fetch(): void;
  /** What is known of the last run without its row. */
  best(): BestLogits | undefined;
}

/** Reads for a plan whose only output are rows that can be fed back; undefined for others. */
export async function createGpuLogits(
  { scope, plan, values, outputs, ranked }: {
    readonly scope: BufferScope;
    readonly plan: Plan;
    readonly values: GpuValues;
    readonly outputs: readonly GpuOutput[];
    readonly ranked: RankedOutput | undefined;
  },
): Promise<GpuLogits | undefined> {
  const { graph } = plan;
  const [output] = outputs;
  const input = (name: string | undefined) => graph.inputs.find((value) => value.name === name);
  const tokens = input(ranked?.fed), positions = input(ranked?.counted);
  const isRow = outputs.length === 1 && output!.name === ranked?.output &&
    output!.data instanceof Float32Array && tokens && positions;
  if (!isRow) return undefined;
  const vocabulary = graph.outputs[0]!.shape.at(-1) as number;
  const logits = values.slice(graph.outputs[0]!);
  const slice = (label: string, entries: number): GpuSlice => ({
    buffer: scope.createBuffer(label, ENTRY_BYTES * entries, STORAGE_USAGE),
    ...{ offset: 0, bytes: ENTRY_BYTES * entries, access: "read_write" },
  });
  const parts = slice("argmax", ARGMAX_PARTS), found = slice("best logit", 1);
  const stages = topStages(vocabulary, logits, slice);
  const feedback = await createProgram<DimEnv>(scope, {
    dispatches: [
      {
        name: "gpu_argmax_parts",
        shader: argmaxPartsShader,
        storage: { logits, parts },
        uniforms: { count: vocabulary },
        workgroups: [ARGMAX_PARTS],
      },
      {
        name: "gpu_argmax_feedback",
        shader: argmaxFeedbackShader,
        storage: {
          parts,
          tokens: values.slice(tokens),
          positions: values.slice(positions),
          best: found,
        },
        uniforms: {},
        workgroups: [1],
      },
    ],
  });
  // Compiled when a sampler first asks for it.
  const top = await createProgram<DimEnv>(scope, { dispatches: stages, eager: [] });
  feedback.bind({});
  const readback = await createReadback(scope, 4 * vocabulary);
  const sources: Readonly<Record<LogitsKind, CopySource | undefined>> = {
    row: undefined,
    best: { buffer: found.buffer, offset: 0, bytes: ENTRY_BYTES },
    top: { ...stages.at(-1)!.storage.top!, bytes: TOP_BYTES },
  };

  const ids = new Uint32Array(TOP_LOGITS), bits = new Uint32Array(TOP_LOGITS);
  const scores = new Float32Array(bits.buffer);
  let count = 0;
  /** Where the row of the last run is, if the host has not got it. */
  let row: CopySource | undefined;

  function read(source: CopySource): void {
    const { device } = scope;
    const encoder = device.createCommandEncoder();
    readback.copy(encoder, [source]);
    readback.stamp();
    device.queue.submit([encoder.finish()]);
    readback.read(source.bytes, (range, at) => {
      (output!.data as Float32Array).set(new Float32Array(range, at, vocabulary));
    });
  }

  return {
    vocabulary,
    kindOf(bindings, wish) {
      const wanted = wish?.best[0] ?? 0;
      const isFew = wanted > 0 && wanted <= Math.min(TOP_LOGITS, vocabulary);
      if (!readback.isImmediate || output.count(bindings) !== vocabulary || !isFew) return "row";
      return wanted === 1 ? "best" : "top";
    },
    feedback,
    get top() {
      top.bind({});
      return top;
    },
    source: (kind) => sources[kind],
    take(kind, range, at, from) {
      count = kind === "best" ? 1 : Math.min(TOP_LOGITS, vocabulary);
      const entries = new Uint32Array(range, at, 2 * count);
      for (let i = 0; i < count; i++) {
        bits[i] = bitsOfOrder(entries[2 * i]!);
        ids[i] = entries[2 * i + 1]!;
      }
      row = from;
    },
    forget() {
      row = undefined;
      count = 0;
    },
    fetch() {
      if (row) read(row);
      row = undefined;
    },
    best: () => count > 0 ? { ids, logits: scores, count } : undefined,
  };
}

/** Dispatches that bring the best logits, of ever fewer entries. */
function topStages(
  vocabulary: number,
  logits: GpuSlice,
  slice: (label: string, entries: number) => GpuSlice,
): ProgramDispatch<DimEnv>[] {
  const stages: ProgramDispatch<DimEnv>[] = [];
  let source = logits;
  for (let count = vocabulary; stages.length === 0 || count > TOP_LOGITS;) {
    const workgroups = Math.ceil(count / TOP_TILE);
    const top = slice(`top logits ${stages.length}`, TOP_LOGITS * workgroups);
    stages.push({
      name: "gpu_top_logits",
      shader: topLogitsShader(stages.length === 0 ? "logits" : "entries"),
      storage: { source, top },
      uniforms: { count },
      workgroups: [workgroups],
    });
    source = top;
    count = TOP_LOGITS * workgroups;
  }
  return stages;
}
