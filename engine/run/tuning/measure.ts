// The measuring of kernel variants and storages (spec MD-7). Variants of a node are run in turns, so that what else the
// machine does hits all alike, and rounds before the measured ones are thrown away: code and caches get warm in them. The
// first kernel of the table stays unless another one is faster by more than a tenth, half of its runs than the first's
// best one: a table never makes a device slower than it was. A variant that fails, or whose result
// is not the reference's, is left out from then on.

import { getOp } from "../../ops/mod.ts";
import type { KernelStorages } from "../../../gpu/storage_choice.ts";
import { plan } from "../../plan/planner.ts";
import type { Node } from "../../graph/graph.ts";
import type { Backend, PreparedPlan } from "../backend.ts";
import { caseGraph } from "../case_graph.ts";
import { type CaseResult, difference, runCase } from "../case_run.ts";
import { tuningKey } from "../kernel_choice.ts";
import { createReferenceBackend } from "../reference/reference_backend.ts";
import type { TuneCase } from "./cases.ts";
import type { Tuning } from "./table.ts";

/** A device whose variants are measured. */
export interface TunedDevice {
  readonly backend: Backend;
  /** Names of the kernels that take a node, best first by the table. */
  able(node: Node, storages?: KernelStorages): readonly string[];
  /** Storages to try beside the device's own; the first is that. Absent: it has none. */
  readonly storages?: readonly KernelStorages[];
}

/** One way to run a node. */
export interface Variant {
  readonly kernel: string;
  /** Of kernels over virtual tensors that are not the device's own. */
  readonly storages?: KernelStorages;
  /** Least milliseconds of a run; absent where it failed or is wrong. */
  readonly ms?: number;
  /** Milliseconds that half of its runs did not exceed. */
  readonly median?: number;
  readonly problem?: string;
}

/** What was found about one case. */
export interface Measured {
  readonly op: string;
  readonly case: string;
  readonly key: string;
  /** The device's own choice first. */
  readonly variants: readonly Variant[];
}

/** How much faster a variant must be than the first. */
const LEAST_GAIN = 1.1;
/** Rounds that are not measured. */
const WARM_ROUNDS = 5;

/** Measures cases that have several variants. */
export async function* measure(
  device: TunedDevice,
  { cases, rounds = 10, signal }: {
    readonly cases: readonly TuneCase[];
    readonly rounds?: number;
    readonly signal?: AbortSignal | undefined;
  },
): AsyncGenerator<Measured> {
  for (const one of cases) {
    signal?.throwIfAborted();
    const node = caseGraph(one.op, one.opCase).nodes.find(({ name }) => name === one.op)!;
    const able = device.able(node);
    const variants: Variant[] = [
      ...able.map((kernel) => ({ kernel })),
      ...(device.storages ?? []).slice(1).flatMap((storages) =>
        device.able(node, storages).filter((kernel) => isVirtual(kernel))
          .map((kernel) => ({ kernel, storages }))
      ),
    ];
    if (variants.length < 2) continue;
    const expected = await runCase(createReferenceBackend(), {
      op: getOp(one.op),
      opCase: one.opCase,
    });
    const key = tuningKey(node, able.map((name) => ({ name })));
    const measured = await measureCase(device.backend, one, { variants, expected, rounds });
    yield { op: one.op, case: one.opCase.name ?? "", key, variants: measured };
  }
}

function isVirtual(kernel: string): boolean {
  return kernel.includes("_virtual_");
}

async function measureCase(
  backend: Backend,
  { op, opCase }: TuneCase,
  { variants, expected, rounds }: {
    readonly variants: readonly Variant[];
    readonly expected: CaseResult;
    readonly rounds: number;
  },
): Promise<Variant[]> {
  const record = getOp(op), made = plan(caseGraph(op, opCase), { limits: {} });
  const tolerance = record.tolerance ?? { ofLargest: 1e-4, reason: "float32 sums of many" };
  const ready: (PreparedPlan | undefined)[] = [];
  const found: Variant[] = [];
  try {
    for (const variant of variants) {
      const options = {
        ...{ slots: 0, forceKernels: { [op]: variant.kernel } },
        ...variant.storages && { storages: variant.storages },
      };
      try {
        const executable = await backend.prepare(made, options);
        ready.push(executable);
        opCase.inputs.forEach((input, i) => {
          if (input?.role !== "input") return;
          (executable.input(`input${i}`) as Uint8Array).set(input.data as Uint8Array);
        });
        await executable.run({});
        const result = new Map(
          made.graph.outputs.map(({ name }) => [name, executable.output(name).slice()]),
        );
        const problem = difference(result, expected, tolerance);
        found.push({ ...variant, ...problem === undefined ? { ms: Infinity } : { problem } });
      } catch (error) {
        if (ready.length <= found.length) ready.push(undefined);
        found.push({ ...variant, problem: (error as Error).message });
      }
    }
    const times: number[][] = found.map(() => []);
    for (let round = -WARM_ROUNDS; round < rounds; round++) {
      for (const [i, executable] of ready.entries()) {
        if (!executable || found[i]!.problem !== undefined) continue;
        const start = performance.now();
        await executable.run({});
        if (round >= 0) times[i]!.push(performance.now() - start);
      }
    }
    times.forEach((own, i) => {
      if (own.length === 0) return;
      own.sort((a, b) => a - b);
      found[i] = { ...found[i]!, ms: own[0]!, median: own[own.length >> 1]! };
    });
  } finally {
    for (const executable of ready) executable?.dispose();
  }
  return found;
}

/** The table of what was found, and of what was known before of other kinds of nodes. */
export function tuningOf(
  measured: readonly Measured[],
  { storages = [], before = { prefer: {}, excluded: [] } }: {
    readonly storages?: readonly KernelStorages[] | undefined;
    readonly before?: Tuning | undefined;
  } = {},
): Tuning {
  const wrong = measured.flatMap(({ variants }) =>
    variants.filter(({ problem, storages }) => problem !== undefined && !storages)
  );
  const tried = new Set(measured.flatMap(({ variants }) => variants.map(({ kernel }) => kernel)));
  const excluded = [
    ...new Set([
      ...before.excluded.filter((kernel) => !tried.has(kernel)),
      ...wrong.map(({ kernel }) => kernel),
    ]),
  ];
  const prefer: Record<string, string> = { ...before.prefer };
  for (const { key, variants } of measured) {
    const own = variants.filter(({ storages, kernel }) => !storages && !excluded.includes(kernel));
    const best = fastest(own);
    delete prefer[key];
    if (best && best !== own[0]) prefer[key] = best.kernel;
  }
  const isTried = measured.some(({ variants }) => variants.some(({ storages }) => storages));
  const best = isTried ? bestStorages(measured, storages) : before.storages;
  return { prefer, excluded, ...best && { storages: best } };
}

/** What half of its runs took at most; infinite where it failed. */
function usual({ ms = Infinity, median = ms }: Variant): number {
  return median;
}

/** The first, unless another one is worth the change: a single good run of it is not. */
function fastest(variants: readonly Variant[]): Variant | undefined {
  const [first, ...others] = variants.filter(({ ms }) => ms !== undefined);
  return others
    .filter((own) => first!.ms! > LEAST_GAIN * usual(own))
    .reduce((best, own) => best === first || usual(best!) > usual(own) ? own : best, first);
}

/** Storages with which all cases together are faster; those of one that failed are out. */
function bestStorages(
  measured: readonly Measured[],
  storages: readonly KernelStorages[],
): KernelStorages | undefined {
  const cases = measured.filter(({ variants }) => variants.some((variant) => variant.storages));
  const own = cases.reduce(
    (sum, { variants }) => sum + (fastest(variants.filter((v) => !v.storages))?.ms ?? 0),
    0,
  );
  let best: KernelStorages | undefined, least = own / LEAST_GAIN;
  for (const candidate of storages.slice(1)) {
    const times = cases.map(({ variants }) =>
      usual(variants.find((variant) => variant.storages === candidate) ?? { kernel: "" })
    );
    const sum = times.reduce((a, b) => a + b, 0);
    if (cases.length > 0 && sum < least) [best, least] = [candidate, sum];
  }
  return best;
}
