// What of a step's logits reaches the host. A row of them is half a megabyte; a greedy answer needs one id, and a sampler
// that begins with its best few needs those. So they are found on the GPU and fetched alone where that is all that the
// caller will look at, and the row stays where it is until somebody asks for it after all or the next step is run.
//
// Rows are fetched later only where a readback gives results at once (gpu/readback.ts): whoever reads `output("logits")`
// does not wait for promises. On other devices every step brings its whole row.

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
import type { BestLogits, StepWish } from "../backend.ts";
import { type GpuOutput, ONE_ROW } from "./outputs.ts";
import type { GpuValues } from "./values.ts";
import type { Plan } from "../../plan/plan.ts";

/** What is fetched of a row: all of it, its best logit, or its best few. */
export type LogitsKind = "row" | "best" | "top";

/** Bytes of an entry: its order (gpu/kernels/logit_order.ts) and its id. */
const ENTRY_BYTES = 8;
/** Bytes of the best few: what a readback must have room for. */
export const TOP_BYTES: number = ENTRY_BYTES * TOP_LOGITS;

/** The logits of the last step, as far as they are known on the host. */
export interface GpuLogits {
  /** Length of a row. */
  readonly vocabulary: number;
  /** What to fetch of a step. */
  kindOf(bindings: DimEnv, wish: StepWish | undefined): LogitsKind;
  /** Finds the best logit, feeds its id back as the next token and moves the position on. */
  readonly feedback: Program<DimEnv>;
  /** Finds the best few. */
  readonly top: Program<DimEnv>;
  /** What those leave, by kind; nothing for rows. */
  source(kind: LogitsKind): CopySource | undefined;
  /** Takes fetched entries; the row lies in `row` until `forget`. */
  take(kind: LogitsKind, range: ArrayBuffer, at: number, row: CopySource): void;
  /** To be called before a step, or when its row has arrived. */
  forget(): void;
  /** Fetches the row of the last step if that was put off. */
  fetch(): void;
  /** What is known of the last step without its row. */
  best(): BestLogits | undefined;
  /** Copies the row of a step, if it is still the last one. */
  readRow(step: number, target: Float32Array): boolean;
}

/** Reads for a plan whose only output are rows of logits; undefined for others. */
export async function createGpuLogits(
  { scope, plan, values, outputs }: {
    readonly scope: BufferScope;
    readonly plan: Plan;
    readonly values: GpuValues;
    readonly outputs: readonly GpuOutput[];
  },
): Promise<GpuLogits | undefined> {
  const { graph } = plan;
  const inputs = new Map(graph.inputs.map((value) => [value.name, value]));
  const [output] = outputs, tokens = inputs.get("tokens"), positions = inputs.get("positions");
  const isRow = outputs.length === 1 && output!.name === "logits" && output!.data instanceof
      Float32Array &&
    tokens && positions;
  if (!isRow) return undefined;
  const vocabulary = output.count(ONE_ROW);
  const logits = values.slice(graph.outputs[0]!);
  const slice = (label: string, entries: number): GpuSlice => ({
    buffer: scope.createBuffer(label, ENTRY_BYTES * entries, STORAGE_USAGE),
    ...{ offset: 0, bytes: ENTRY_BYTES * entries, access: "read_write" },
  });
  const parts = slice("argmax", ARGMAX_PARTS), found = slice("best logit", 1);
  const stages = topStages(vocabulary, logits, slice);
  const feedback = await createProgram<DimEnv>(scope, [
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
  ]);
  // Compiled when a sampler first asks for it.
  const top = await createProgram<DimEnv>(scope, stages, []);
  feedback.bind(ONE_ROW);
  const readback = await createReadback(scope, 4 * vocabulary);
  const sources: Readonly<Record<LogitsKind, CopySource | undefined>> = {
    row: undefined,
    best: { buffer: found.buffer, offset: 0, bytes: ENTRY_BYTES },
    top: { ...stages.at(-1)!.storage.top!, bytes: TOP_BYTES },
  };

  const ids = new Uint32Array(TOP_LOGITS), bits = new Uint32Array(TOP_LOGITS);
  const scores = new Float32Array(bits.buffer);
  let count = 0;
  let step = 0;
  /** Where the row of the last step is, if the host has not got it. */
  let row: CopySource | undefined;

  function read(target: Float32Array): void {
    const { device } = scope;
    const encoder = device.createCommandEncoder();
    readback.copy(encoder, [row!]);
    readback.stamp();
    device.queue.submit([encoder.finish()]);
    readback.read(row!.bytes, (range, at) => target.set(new Float32Array(range, at, vocabulary)));
  }

  return {
    vocabulary,
    kindOf({ L }, wish) {
      const isEnough = wish !== undefined && wish.bestLogits <= Math.min(TOP_LOGITS, vocabulary);
      if (!readback.isImmediate || L !== 1 || !isEnough) return "row";
      return wish.bestLogits === 1 ? "best" : "top";
    },
    feedback,
    get top() {
      top.bind(ONE_ROW);
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
      step++;
    },
    forget() {
      if (count > 0) step++;
      row = undefined;
      count = 0;
    },
    fetch() {
      if (row) read(output.data as Float32Array);
      row = undefined;
    },
    best: () => count > 0 ? { ids, logits: scores, count, step } : undefined,
    readRow(asked, target) {
      if (asked !== step || count === 0) return false;
      if (row) read(target);
      else target.set((output.data as Float32Array).subarray(0, vocabulary));
      return true;
    },
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
