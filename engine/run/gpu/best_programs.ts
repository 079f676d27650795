// Programs that find the best values of the rows of the ranked output on the GPU, and feed the best one's column back as
// the input of the run behind. They are apart from the run's program, because not every run wants them.

import { type BufferScope, STORAGE_USAGE } from "../../../gpu/gpu.ts";
import type { GpuSlice } from "../../../gpu/kernel.ts";
import {
  ARGMAX_PARTS,
  argmaxFeedbackShader,
  argmaxPartsShader,
} from "../../../gpu/kernels/argmax.ts";
import { TOP_LOGITS, TOP_TILE, topLogitsShader } from "../../../gpu/kernels/top_logits.ts";
import { type Count, createProgram, type ProgramDispatch } from "../../../gpu/program.ts";
import type { CopySource } from "../../../gpu/readback.ts";

/** What is found of the rows of a run: nothing, the best value of each, the best few. */
export type BestKind = "none" | "best" | "top";

/** Bytes of an entry: its order (gpu/kernels/logit_order.ts) and its column. */
const ENTRY_BYTES = 8;

/** Entries of a row, by kind. */
export const ENTRIES: Readonly<Record<BestKind, number>> = { none: 0, best: 1, top: TOP_LOGITS };

/** Words of the entries of a row. */
export function entryWords(kind: BestKind): number {
  return ENTRIES[kind] * ENTRY_BYTES / 4;
}

/** Sizes of a run. */
interface Rows {
  readonly rows: number;
}

/** The programs. */
export interface BestPrograms {
  /** Appends the dispatches that find the best of so many rows; `isFed`: feeds the best one back too. */
  encode(
    pass: GPUComputePassEncoder,
    found: Rows & { readonly kind: BestKind; readonly isFed: boolean },
  ): void;
  /** Where they leave entries of so many rows. */
  source(kind: BestKind, rows: number): CopySource;
}

/** Makes them; the buffers of what they leave have room for all rows of the output. */
export async function createBestPrograms(
  scope: BufferScope,
  { logits, vocabulary, tokens, positions, most }: {
    readonly logits: GpuSlice;
    /** Values of a row. */
    readonly vocabulary: number;
    /** Inputs that the columns go to, and that grow. */
    readonly tokens: GpuSlice;
    readonly positions: GpuSlice;
    /** Rows of the output at most. */
    readonly most: number;
  },
): Promise<BestPrograms> {
  const slice = (label: string, entries: number): GpuSlice => {
    const bytes = ENTRY_BYTES * entries * most;
    const buffer = scope.createBuffer(label, bytes, STORAGE_USAGE);
    return { buffer, offset: 0, bytes, access: "read_write" };
  };
  const rows = (env: Rows) => env.rows;
  const parts = slice("argmax", ARGMAX_PARTS), best = slice("best logit", 1);
  const stages = topStages({ vocabulary, logits, slice, rows });
  const feedback = await createProgram<Rows>(scope, {
    dispatches: [
      {
        name: "gpu_argmax_parts",
        shader: argmaxPartsShader,
        storage: { logits, parts },
        uniforms: { count: vocabulary },
        workgroups: [ARGMAX_PARTS, rows],
      },
      {
        name: "gpu_argmax_feedback",
        shader: argmaxFeedbackShader,
        storage: { parts, tokens, positions, best },
        uniforms: {},
        workgroups: [rows],
      },
    ],
  });
  // Compiled when a sampler first asks for it.
  const top = await createProgram<Rows>(scope, { dispatches: stages, eager: [] });
  const places = { none: best, best, top: stages.at(-1)!.storage.top! };
  return {
    encode(pass, { kind, isFed, rows }) {
      if (isFed || kind === "best") {
        feedback.bind({ rows });
        feedback.encode(pass);
      }
      if (kind === "top") {
        top.bind({ rows });
        top.encode(pass);
      }
    },
    source: (kind, rows) => ({ ...places[kind], bytes: 4 * entryWords(kind) * rows }),
  };
}

/** Dispatches that bring the best logits, of ever fewer entries. */
function topStages(
  { vocabulary, logits, slice, rows }: {
    readonly vocabulary: number;
    readonly logits: GpuSlice;
    readonly slice: (label: string, entries: number) => GpuSlice;
    readonly rows: Count<Rows>;
  },
): ProgramDispatch<Rows>[] {
  const stages: ProgramDispatch<Rows>[] = [];
  let source = logits;
  for (let count = vocabulary; stages.length === 0 || count > TOP_LOGITS;) {
    const workgroups = Math.ceil(count / TOP_TILE);
    const top = slice(`top logits ${stages.length}`, TOP_LOGITS * workgroups);
    stages.push({
      name: "gpu_top_logits",
      shader: topLogitsShader(stages.length === 0 ? "logits" : "entries"),
      storage: { source, top },
      uniforms: { count },
      workgroups: [workgroups, rows],
    });
    source = top;
    count = TOP_LOGITS * workgroups;
  }
  return stages;
}
