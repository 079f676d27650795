// `deno task bench profile`: where the time of a step goes. First the rows of LlamaF's table (arXiv 2409.11424),
// at the positions it names, then every op with its time, what it moved and computed a second, and its share
// of the machine's limits, which are measured in the same run on the same threads. The clock readings cost a
// little, so the sum is a bit more than an unmeasured step. Times are those of the calling thread: what other
// threads were slower by stands under waiting. A share above 1: weights came out of a cache.

import { openModel } from "../engine/models/open_model.ts";
import { openDeviceFor } from "../engine/place/device_for.ts";
import type { PreparedPlan } from "../engine/run/backend.ts";
import { prepareModel } from "../engine/models/prepare.ts";
import { type PlanExecutable, prepareExecutable } from "../engine/run/executable.ts";
import { addRows, clearStep, createStep, WANTED } from "../engine/run/step.ts";
import { machineName } from "./support/figures.ts";
import { leastMs, type Limits, limitsText, machineLimits, type Work } from "./support/limits.ts";
import { type BenchModel, releaseModel } from "./support/models.ts";
import { type ProfileRow, profileRow, workByKernel } from "./support/work.ts";

/** What to profile. */
export interface ProfileOptions {
  readonly models: readonly BenchModel[];
  readonly threads: readonly number[];
  readonly rounds: number;
  readonly precision: "fast" | "exact";
  /** Over several devices; what those do that measure no kernels stands under dispatch. Default: device wasm. */
  readonly placement?: string | undefined;
}

/** A plan, or one in parts. */
type PlacedPlan = PreparedPlan & { readonly parts?: readonly PreparedPlan[] };

const CONTEXT = 1024;
/** Positions of LlamaF's table. */
const POSITIONS: readonly number[] = [63, 127, 255];

/** Steps that are alike. */
interface Run {
  readonly rows: number;
  readonly position: number;
  readonly steps: number;
}

/** Time of an op in a step, and what came of it. */
interface OpFigures {
  readonly op: string;
  readonly row: ProfileRow;
  readonly calls: number;
  readonly ms: number;
  /** Of the whole step. */
  readonly part: number;
  /** 10⁹ operations, 10⁹ bytes a second, and the share of the limits; null for what is only moved about. */
  readonly gops: number | null;
  readonly gbs: number | null;
  readonly share: number | null;
}

interface StepProfile {
  readonly case: string;
  readonly ms: number;
  /** Parts of the step by row of the table. */
  readonly rows: Readonly<Record<ProfileRow, number>>;
  readonly ops: readonly OpFigures[];
}

type Entry = { readonly name: string; readonly calls: number; readonly ms: number };

/** Prints tables (or a JSON line a step) for every model, thread count and kind of step. */
export async function profileBench(options: ProfileOptions, json: boolean): Promise<void> {
  if (!json) console.log(machineName());
  try {
    for (const threads of options.threads) await profileThreads(threads, options, json);
  } finally {
    for (const model of options.models) await releaseModel(model);
  }
}

async function profileThreads(
  threads: number,
  options: ProfileOptions,
  json: boolean,
): Promise<void> {
  const limits = await machineLimits(threads);
  const label = `${threads} thread${threads === 1 ? "" : "s"}`;
  if (!json) console.log(`\n${label}: ${limitsText(limits)}`);
  else console.log(JSON.stringify({ bench: "profile", case: `limits ${label}`, ...limits }));
  for (const model of options.models) {
    for await (const profile of profiles(model, { ...options, limits, label }, threads)) {
      if (json) console.log(JSON.stringify({ bench: "profile", ...profile }));
      else console.log(`\n${tableOf(profile)}`);
    }
  }
}

async function* profiles(
  { name, path, ids }: BenchModel,
  { limits, label, rounds, precision, placement }: ProfileOptions & {
    readonly limits: Limits;
    readonly label: string;
  },
  threads: number,
): AsyncGenerator<StepProfile> {
  const file = await openModel(path);
  const load = { contextLength: CONTEXT, precision };
  const device = await openDeviceFor({
    ...{ device: "wasm", threads, profile: true, precision },
    ...placement !== undefined && { placement, lanes: 1 },
  });
  const prepared = await prepareModel(file, { options: load, kernels: device });
  const executable = await prepareExecutable<PlacedPlan>(device.backend, {
    plan: prepared.plan,
    slots: 1,
  });
  file.close();
  executable.openSlot();
  const batch = prepared.plan.limits.M as number;
  const runs: readonly Run[] = [
    ...POSITIONS.map((position) => ({ rows: 1, position, steps: rounds * 10 })),
    { rows: batch, position: 0, steps: rounds },
  ];
  try {
    for (const run of runs) {
      const kind = run.rows === 1 ? `decode at ${run.position}` : `prefill ${run.rows}`;
      const measured = await measureSteps(executable, ids, run);
      yield { case: `${kind} ${name} ${label}`, ...figuresOf(executable, run, measured, limits) };
    }
  } finally {
    executable.dispose();
  }
}

/** Runs the steps; time by kernel, and of the whole. */
async function measureSteps(
  executable: PlanExecutable<PlacedPlan>,
  ids: readonly number[],
  { rows, position, steps }: Run,
): Promise<{ readonly entries: readonly Entry[]; readonly ms: number }> {
  const table = createStep(rows);
  const tokens = Array.from({ length: rows }, (_, row) => ids[row % ids.length]!);
  const step = async (): Promise<void> => {
    clearStep(table);
    addRows(table, { tokens, position, slot: 0, wanted: WANTED.logits });
    await executable.run(table);
  };
  for (let i = 0; i < 3; i++) await step();
  executable.profile?.();
  const start = performance.now();
  for (let i = 0; i < steps; i++) await step();
  return { ms: performance.now() - start, entries: executable.profile?.() ?? [] };
}

function figuresOf(
  executable: PlanExecutable<PlacedPlan>,
  { rows, position, steps }: Run,
  { entries, ms }: { readonly entries: readonly Entry[]; readonly ms: number },
  limits: Limits,
): Omit<StepProfile, "case"> {
  const { prepared } = executable, work = new Map<string, Work>();
  for (const { plan, kernels = [] } of prepared.parts ?? [prepared]) {
    const step = { bindings: { M: rows, L: 1 }, position };
    for (const [name, own] of workByKernel(plan, kernels, step)) {
      const before = work.get(name) ?? { bytes: 0, operations: 0, isFloat: own.isFloat };
      work.set(name, {
        ...own,
        bytes: before.bytes + own.bytes,
        operations: before.operations + own.operations,
      });
    }
  }
  const inKernels = entries.reduce((sum, entry) => sum + entry.ms, 0);
  const all = [...entries, { name: "(dispatch)", calls: steps, ms: Math.max(0, ms - inKernels) }];
  const total = all.reduce((sum, entry) => sum + entry.ms, 0);
  const ops = all.map((entry): OpFigures => {
    const op = entry.name;
    const done = work.get(op);
    const each = entry.ms / steps;
    const counts = done !== undefined && done.operations > 0 && each > 0;
    return {
      op,
      row: entry.name === "(dispatch)" ? "dispatch" : profileRow(op),
      calls: entry.calls / steps,
      ms: each,
      part: entry.ms / total,
      gops: counts ? done.operations / each / 1e6 : null,
      gbs: counts ? done.bytes / each / 1e6 : null,
      share: counts ? leastMs(done, limits) / each : null,
    };
  });
  return { ms: total / steps, rows: partsOf(ops), ops: ops.toSorted((a, b) => b.ms - a.ms) };
}

function partsOf(ops: readonly OpFigures[]): Record<ProfileRow, number> {
  const parts: Record<ProfileRow, number> = {
    ...{ "matrix products": 0, attention: 0, SwiGLU: 0, RoPE: 0, RMSNorm: 0 },
    ...{ other: 0, waiting: 0, dispatch: 0 },
  };
  for (const { row, part } of ops) parts[row] += part;
  return parts;
}

function tableOf(profile: StepProfile): string {
  const number = (value: number | null, width: number, digits: number) =>
    (value === null ? "" : value.toFixed(digits)).padStart(width);
  const percent = (value: number) => `${(100 * value).toFixed(2).padStart(7)} %`;
  const rows = Object.entries(profile.rows).map(([row, part]) =>
    `  ${row.padEnd(20)}${percent(part)}`
  );
  const ops = profile.ops.map(({ op, calls, ms, part, gops, gbs, share }) =>
    `  ${op.padEnd(20)}${percent(part)}${number(ms, 10, 3)}${number(calls, 7, 0)}` +
    `${number(gops, 8, 1)}${number(gbs, 8, 2)}${number(share, 8, 2)}`
  );
  const head = `  ${"op".padEnd(20)}     part        ms  calls    GOPS    GB/s   share`;
  return [`${profile.case}: ${profile.ms.toFixed(2)} ms a step`, ...rows, head, ...ops].join("\n");
}
