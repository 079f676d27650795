// Whether an adapter computes what its kernels say: before the first plan with a kernel, it is run on a small case of its op
// and compared with the scalar reference. A kernel that is wrong, or that the driver refuses to compile, is left out; what
// was found is kept, for the process and by adapter and version in the cache folder (kernel_verdicts.ts), so that it is
// asked once. `troodon doctor` runs all kernels on all cases; this takes the kernels that are in use, each on one case or two
// with the number format of its weights and of its result.

import type { GpuProvider } from "../../../gpu/capabilities.ts";
import { GpuFailure } from "../../../gpu/failure.ts";
import type { Gpu } from "../../../gpu/gpu.ts";
import { sharedGpu } from "../../../gpu/shared.ts";
import { TroodonError, UnsupportedError } from "../../errors.ts";
import type { Node } from "../../graph/graph.ts";
import { createQuickRandom } from "../../ops/case_random.ts";
import { getOp } from "../../ops/mod.ts";
import type { OpRecord } from "../../ops/op.ts";
import type { OpCase, Tolerance } from "../../ops/op_case.ts";
import type { Plan } from "../../plan/plan.ts";
import type { Backend, PreparedPlan } from "../backend.ts";
import { caseGraph } from "../case_graph.ts";
import { WrongKernelsError } from "../wrong_kernels.ts";
import { chooseKernel, type KernelWish } from "../kernel_choice.ts";
import { createGpuBackend } from "./backend.ts";
import { capabilitiesFor, type GpuKernel, SUBGROUP_MATRICES } from "./kernel.ts";
import { GPU_KERNELS } from "./kernel_table.ts";
import { verdictsOf } from "./kernel_verdicts.ts";

/** Seed of the cases' data. */
const SEED = 1;
/** Of what kernels make of numbers that they may round; what they are not free to round is 8 bit anyway. */
const IN_HALVES: Tolerance = { ofLargest: 1e-2, reason: "numbers are rounded to float16" };
/** A backend whose kernels are tried before they are used. */
export function selfTested(
  device: Backend,
  { provider, cacheDir }: {
    readonly provider?: GpuProvider | undefined;
    readonly cacheDir?: string | undefined;
  },
): Backend {
  return {
    ...device,
    async prepare(plan, options) {
      let gpu: Gpu;
      try {
        gpu = await sharedGpu({ provider });
      } catch {
        return await device.prepare(plan, options); // says what is wrong
      }
      const verdicts = verdictsOf(gpu, { provider, cacheDir });
      const trial = { gpu, verdicts };
      const wrong = await wrongKernels(plan, options, trial).catch((error) => {
        // What comes now says the same of the model.
        if (error instanceof TroodonError || error instanceof GpuFailure) return [];
        throw error;
      });
      if (wrong.length === 0) return await device.prepare(plan, options);
      const said = `${wrong.join(", ")} ${wrong.length === 1 ? "computes" : "compute"} wrong on ` +
        `${gpu.capabilities.adapter}`;
      const excludeKernels = new Set([...options.excludeKernels ?? [], ...wrong]);
      try {
        const prepared = await device.prepare(plan, { ...options, excludeKernels });
        return withNote(prepared, `${said}: other kernels are used`);
      } catch (error) {
        if (!(error instanceof UnsupportedError)) throw error;
        throw new WrongKernelsError(said, wrong, error);
      }
    },
  };
}

/** A prepared plan looks at its device through getters, which are kept. */
function withNote(prepared: PreparedPlan, note: string): PreparedPlan {
  const notes = { value: [...prepared.notes ?? [], note], enumerable: true };
  return Object.defineProperties({} as PreparedPlan, {
    ...Object.getOwnPropertyDescriptors(prepared),
    notes,
  });
}

/** A kernel, and a node for which it was chosen. */
interface Chosen {
  readonly kernel: GpuKernel;
  readonly node: Node;
}

interface Trial {
  readonly gpu: Gpu;
  readonly verdicts: ReturnType<typeof verdictsOf>;
}

interface TrialTools extends Trial {
  readonly bare: Backend;
  /** By op, made when the first of its kernels is tried. */
  readonly cases: Map<string, readonly OpCase[]>;
}

/**
 * Names of the kernels that the plan would use and that are wrong, those included that would take their place. Where a device
 * has subgroup matrices, those are left out first.
 */
async function wrongKernels(
  plan: Plan,
  wish: KernelWish,
  { gpu, verdicts }: Trial,
): Promise<string[]> {
  const wrong = new Set<string>();
  const cases = new Map<string, readonly OpCase[]>();
  for (let again = true; again;) {
    again = false;
    const excludeKernels = new Set([...wish.excludeKernels ?? [], ...wrong]);
    const capabilities = capabilitiesFor(gpu.capabilities, { ...wish, excludeKernels });
    const tried: Gpu = Object.create(gpu, { capabilities: { value: capabilities } });
    const unlike = [
      ...capabilities.subgroupMatrix === gpu.capabilities.subgroupMatrix
        ? []
        : [`without ${SUBGROUP_MATRICES}`],
      ...capabilities.roundsToHalves ? ["rounded to halves"] : [],
    ];
    const chosen = new Map<string, Chosen>();
    for (const { node } of plan.steps) {
      const kernel = chooseKernel(GPU_KERNELS, { node, capabilities }, { ...wish, excludeKernels });
      const key = [kernel?.name, ...formatsOf(node), ...unlike].join(" ");
      if (kernel) chosen.set(key, { kernel, node });
    }
    const untried = [...chosen].filter(([key]) => verdicts.get(key) === undefined);
    await tryAll(untried, {
      ...{ gpu: tried, verdicts, cases, bare: createGpuBackend({ gpu: tried }) },
    });
    for (const [key, { kernel }] of chosen) {
      if (verdicts.get(key)) continue;
      wrong.add(capabilities.subgroupMatrix ? SUBGROUP_MATRICES : kernel.name);
      again = true;
    }
  }
  verdicts.save();
  return [...wrong];
}

/**
 * Tries kernels beside each other, because some devices compile in threads. What fails there may be another one's fault: it
 * is tried again alone.
 */
async function tryAll(
  untried: readonly (readonly [key: string, Chosen])[],
  tools: TrialTools,
): Promise<void> {
  const attempt = ({ kernel, node }: Chosen) => tryKernel(kernel.name, node, tools);
  const isRight = await Promise.all(untried.map(([, one]) => attempt(one).catch(() => false)));
  for (const [i, [key, one]] of untried.entries()) {
    tools.verdicts.set(key, isRight[i] || await attempt(one));
  }
}

function formatsOf({ inputs }: Node): string[] {
  return inputs.flatMap((value) => value?.tensor?.format ?? []);
}

/** Whether a kernel is right on its cases; true where there is none for it. */
async function tryKernel(
  kernel: string,
  like: Node,
  { gpu, bare, cases }: TrialTools,
): Promise<boolean> {
  const op = getOp(like.op);
  let all = cases.get(op.name);
  if (!all) cases.set(op.name, all = op.cases?.(createQuickRandom(SEED)) ?? []);
  const wanted = formatsOf(like).join();
  const isLike = ({ inputs, attributes }: OpCase) =>
    inputs.flatMap((input) => input?.role === "weight" ? [input.format] : []).join() === wanted &&
    (attributes?.to ?? "f32") === (like.attributes.to ?? "f32");
  const takes = (opCase: OpCase) => hasRows(opCase) && takesCase(kernel, { op, opCase, gpu });
  const alike = all.filter(isLike), some = alike.some(takes) ? alike : all;
  // Read by who has something to try: it brings the reference and the kernels of WASM.
  const { checkCase } = await import("../kernel_checks.ts");
  // Cases begin with one row and end with many.
  for (const opCase of new Set([some.find(takes), some.findLast(takes)])) {
    if (!opCase) continue;
    const tolerance = gpu.capabilities.roundsToHalves ? IN_HALVES : undefined;
    const { outcome, cause } = await checkCase(bare, { op, opCase, kernel, tolerance });
    // A device without memory says nothing about its kernels.
    if (outcome === "failed" && cause !== undefined && !isRefusedShader(cause)) throw cause;
    if (gpu.isLost) throw new GpuFailure("lost", "the device was lost in its self-test");
    if (outcome === "failed") return false;
  }
  return true;
}

function takesCase(
  kernel: string,
  { op, opCase, gpu: { capabilities } }: {
    readonly op: OpRecord;
    readonly opCase: OpCase;
    readonly gpu: Gpu;
  },
): boolean {
  try {
    const node = caseGraph(op.name, opCase).nodes.find(({ name }) => name === op.name)!;
    const wish = { forceKernels: { [op.name]: kernel } };
    return chooseKernel(GPU_KERNELS, { node, capabilities }, wish) !== undefined;
  } catch {
    return false; // random numbers that a format of few numbers does not hold
  }
}

/** Whether the driver would not compile a shader. */
function isRefusedShader(error: unknown): boolean {
  const { cause } = error as { readonly cause?: unknown };
  return cause instanceof GpuFailure && cause.kind === "shader";
}

/** Cases without any row find nothing. */
function hasRows({ inputs }: OpCase): boolean {
  return inputs.every((input) =>
    input === undefined || input.role === "weight" || input.role === "state" ||
    input.data.length > 0
  );
}
