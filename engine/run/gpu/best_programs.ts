// Programs that find the best values of the rows of the ranked output on the GPU, and feed the best one's column back as
// the input of the run behind. They are apart from the run's program, because not every run wants them. Runs that follow each
// other in one pass leave what they found, and their first row, in memory of their own: nothing is copied between them.

import { OFFSET_ALIGNMENT } from "../../../gpu/constants.ts";
import { type BufferScope, STORAGE_USAGE } from "../../../gpu/gpu.ts";
import type { GpuSlice } from "../../../gpu/kernel.ts";
import { ARGMAX_PARTS, argmaxFeedbackShader, argmaxParts } from "../../../gpu/kernels/argmax.ts";
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
  /**
   * Appends the dispatches that find the best of so many rows; of a run that goes ahead, the best one is fed back too.
   *
   * @param found.run Which of the runs ahead it is.
   */
  encode(
    pass: GPUComputePassEncoder,
    found: Rows & { readonly kind: BestKind; readonly run?: number | undefined },
  ): void;
  /** Where they leave entries of so many rows. */
  source(kind: BestKind, at: Rows & { readonly run?: number | undefined }): CopySource;
  /** Where a run ahead leaves its first row. */
  kept(run: number): CopySource;
}

/** What a run leaves. */
interface Found {
  readonly best: GpuSlice;
  readonly top: GpuSlice;
  /** Its first row. */
  readonly kept?: GpuSlice;
}

/** Makes them; the buffers of what they leave have room for all rows of the output. */
export async function createBestPrograms(
  scope: BufferScope,
  { logits, vocabulary, tokens, positions, most, runsAhead }: {
    readonly logits: GpuSlice;
    /** Values of a row. */
    readonly vocabulary: number;
    /** Inputs that the columns go to, and that grow. */
    readonly tokens: GpuSlice;
    readonly positions: GpuSlice;
    /** Rows of the output at most. */
    readonly most: number;
    /** Runs ahead that have memory of their own. */
    readonly runsAhead: number;
  },
): Promise<BestPrograms> {
  const slices = (label: string, bytes: number, count = 1): GpuSlice[] => {
    if (count === 0) return [];
    const stride = Math.ceil(bytes / OFFSET_ALIGNMENT) * OFFSET_ALIGNMENT;
    const buffer = scope.createBuffer(label, stride * count, STORAGE_USAGE);
    return Array.from(
      { length: count },
      (_, i): GpuSlice => ({ buffer, offset: i * stride, bytes, access: "read_write" }),
    );
  };
  const entries = (count: number) => ENTRY_BYTES * count * most;
  const rows = (env: Rows) => env.rows;
  const [parts] = slices("argmax", entries(ARGMAX_PARTS));
  const [best] = slices("best logit", entries(1)),
    [top] = slices("top logits", entries(TOP_LOGITS));
  const stages = topStages({ vocabulary, logits, entries, slices, rows });

  const feedbackOf = ({ best, kept }: Found): ProgramDispatch<Rows>[] => [
    {
      name: "gpu_argmax_parts",
      shader: argmaxParts({ keeps: kept !== undefined }),
      storage: { logits, parts: parts!, ...kept && { kept } },
      uniforms: { count: vocabulary },
      workgroups: [ARGMAX_PARTS, rows],
    },
    {
      name: "gpu_argmax_feedback",
      shader: argmaxFeedbackShader,
      storage: { parts: parts!, tokens, positions, best },
      uniforms: {},
      workgroups: [rows],
    },
  ];

  const own: Found = { best: best!, top: top! };
  const lists = [
    slices("best logits ahead", entries(1), runsAhead),
    slices("top logits ahead", entries(TOP_LOGITS), runsAhead),
    slices("logits ahead", 4 * vocabulary, runsAhead),
  ] as const;
  const ahead = lists[0].map((best, i): Found => ({ best, top: lists[1][i]!, kept: lists[2][i]! }));
  // Dispatches of a run alone, then as many of each of those ahead.
  const programOf = async (
    dispatchesOf: (found: Found) => readonly ProgramDispatch<Rows>[],
    eager?: readonly Rows[],
  ) => {
    const dispatches = [own, ...ahead].map(dispatchesOf), count = dispatches[0]!.length;
    const program = await createProgram<Rows>(scope, { dispatches: dispatches.flat(), eager });
    return (pass: GPUComputePassEncoder, rows: number, run = -1) => {
      program.bind({ rows });
      program.encode(pass, { first: (run + 1) * count, count });
    };
  };
  const [findBest, findTop] = await Promise.all([
    programOf(feedbackOf),
    // Compiled when a sampler first asks for it.
    programOf(({ top }) => stages(top), []),
  ]);
  return {
    encode(pass, { kind, rows, run }) {
      if (run !== undefined || kind === "best") findBest(pass, rows, run);
      if (kind === "top") findTop(pass, rows, run);
    },
    source(kind, { rows, run }) {
      const { best, top } = run === undefined ? own : ahead[run]!;
      return { ...kind === "top" ? top : best, bytes: 4 * entryWords(kind) * rows };
    },
    kept: (run) => ahead[run]!.kept!,
  };
}

/** Dispatches that bring the best logits, of ever fewer entries, to some memory. */
function topStages(
  { vocabulary, logits, entries, slices, rows }: {
    readonly vocabulary: number;
    readonly logits: GpuSlice;
    readonly entries: (count: number) => number;
    readonly slices: (label: string, bytes: number) => readonly GpuSlice[];
    readonly rows: Count<Rows>;
  },
): (top: GpuSlice) => ProgramDispatch<Rows>[] {
  const stages: ProgramDispatch<Rows>[] = [];
  let source = logits;
  for (let count = vocabulary; stages.length === 0 || count > TOP_LOGITS;) {
    const workgroups = Math.ceil(count / TOP_TILE);
    const isLast = TOP_LOGITS * workgroups <= TOP_LOGITS;
    const top = isLast
      ? source
      : slices(`top logits ${stages.length}`, entries(TOP_LOGITS * workgroups))[0]!;
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
  const last = stages.pop()!;
  return (top) => [...stages, { ...last, storage: { ...last.storage, top } }];
}
