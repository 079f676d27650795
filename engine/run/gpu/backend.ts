// The WebGPU backend: makes a plan ready on a device. Order of events: choose kernels; learn how much memory
// they ask for; make every buffer, which refuses a model that does not fit; lower the nodes to
// dispatches and compile their shaders while weights stream in; run one step to wake the driver. A step
// is then: send the inputs, submit one command buffer, take the outputs.

import { OFFSET_ALIGNMENT } from "../../../gpu/constants.ts";
import { type BufferScope, createBufferScope, type Gpu } from "../../../gpu/gpu.ts";
import { createProgram, type Program } from "../../../gpu/program.ts";
import { createReadback, type Readback } from "../../../gpu/readback.ts";
import { sharedGpu, type SharedGpuOptions } from "../../../gpu/shared.ts";
import type { Capabilities } from "../../../gpu/kernel.ts";
import type { KernelStorages } from "../../../gpu/storage_choice.ts";
import type { DimEnv } from "../../graph/dim/mod.ts";
import { capabilitiesFor, type GpuKernel } from "./kernel.ts";
import type { Backend, PreparedPlan, PrepareOptions, RankedWish } from "../backend.ts";
import { fitsSizes } from "../bindings.ts";
import { NO_PAGE } from "../pages/groups.ts";
import { RunsAhead } from "./ahead.ts";
import { BATCHES } from "./ahead_batches.ts";
import { allocate, type PlanMemory } from "./allocate.ts";
import { createCheckedStep } from "./debug.ts";
import { explained, openShared, together } from "./errors.ts";
import { createGpuLogits, entryBytes, type GpuLogits } from "./logits.ts";
import { GPU_KERNELS } from "./kernel_table.ts";
import { chooseGpuKernels, createLowering, takenBy } from "./lowering.ts";
import { createHolder } from "./held.ts";
import { type GpuOutput, gpuOutputs, outputBytes } from "./outputs.ts";
import { createReach, farBack, limitsWithReach, type Reach } from "./cache_reach.ts";
import { withPlainWeights } from "./plain_weights.ts";
import { BoundRuns } from "./bound_runs.ts";
import { createStepOf } from "./paced_step.ts";
import { layOutTables } from "./page_tables.ts";
import { LONE_ROW_KERNEL } from "./lower/attention.ts";
import type { GpuStates } from "./states.ts";
import type { RunStep, StepParts } from "./steps.ts";
import { loadGpuWeights } from "./weights.ts";
import { createStreamedStep, type StreamedStep } from "./streamed_step.ts";
import { gpuStreamBytes, planGpuStream } from "./stream_choice.ts";
import { streamedBytes, type StreamOptions, type StreamPlan } from "../streaming/slots.ts";
import type { Holder } from "../held.ts";
import { indexChecks } from "../index_checks.ts";
import { createPlanUse, type PlanUse } from "../plan_use.ts";
import { type Plan, rootOf } from "../../plan/plan.ts";
import { plan as planGraph } from "../../plan/planner.ts";

/** Options of {@linkcode createGpuBackend}. */
export interface GpuBackendOptions extends SharedGpuOptions {
  /** An open device to use; default: the one that all backends with this provider share. */
  readonly gpu?: Gpu;
  /** Runs one step while loading, so that the first token waits for no driver. */
  readonly warmUp?: boolean;
  /** Most steps of a greedy answer that are submitted before they are asked for; default 8 on a GPU, 0: none. */
  readonly stepsAhead?: number;
  /** Positions in whose multiples the sizes of a step change; default: with every doubling of the context. */
  readonly padTo?: number;
  /**
   * Runs node by node, and throws a DeviceError that names step and node where a NaN or an infinity appears first.
   * Slow; no steps ahead, no warm-up. Default false.
   */
  readonly debug?: boolean;
  /** Cuts steps into submissions of at most so many milliseconds (run/pacer.ts); no steps ahead. */
  readonly maxSubmitMs?: number | undefined;
  /** Whether weights are streamed from their files. */
  readonly stream?: boolean | Partial<StreamOptions> | undefined;
  /** Where kernels over virtual tensors keep them (tests, benches); default: by gpu/storage_choice.ts. */
  readonly storages?: KernelStorages;
}

/** What is computed in vain costs nothing where the GPU would be idle, and all of the CPU's time where it is none. */
function defaultStepsAhead({ capabilities }: Gpu): number {
  return capabilities.isSoftware ? 0 : 8;
}

/** What the GPU backend adds to an executable. */
export interface GpuPlan extends PreparedPlan {
  /** Names of the chosen kernels, a step each. */
  readonly kernels: readonly string[];
  /** Dispatches of the last step. */
  readonly dispatches: number;
  /** Steps that were ready before they were asked for. */
  readonly foreseenSteps: number;
  /** The device. */
  readonly gpu: Gpu;
  /** What its runs are made of, for who measures them. */
  readonly stepParts: StepParts;
}

/** The WebGPU backend. */
export interface GpuBackend extends Backend {
  prepare(plan: Plan, options: PrepareOptions): Promise<GpuPlan>;
}

/** Makes the WebGPU backend; the device is opened when a plan is prepared. */
export function createGpuBackend(options: GpuBackendOptions = {}): GpuBackend {
  const { stream } = options;
  return {
    name: "gpu",
    kernels: GPU_KERNELS,
    ...stream && { streams: (plan: Plan) => gpuStreamBytes(plan, stream) },
    async takes(wish) {
      try {
        const { capabilities } = options.gpu ?? await sharedGpu(options);
        return takenBy(capabilitiesFor(capabilities, wish ?? {}), wish);
      } catch {
        return undefined;
      }
    },
    async prepare(plan, prepare) {
      const gpu = options.gpu ?? await openShared(options);
      try {
        const { capabilities } = gpu, { storages = options.storages } = prepare;
        const own = prepare.hostSteps
          ? await withPlainWeights(plan, { ...prepare, capabilities, storages })
          : plan;
        return await prepareGpu(gpu, aligned256(own), prepare, options);
      } catch (error) {
        throw explained(error, { plan, gpu });
      }
    },
  };
}

/** The same plan with offsets that bindings may have. */
function aligned256(plan: Plan): Plan {
  if (plan.alignment % OFFSET_ALIGNMENT === 0) return plan;
  const { graph, limits, policy } = plan;
  return planGraph(graph, { limits, policy, alignment: OFFSET_ALIGNMENT });
}

async function prepareGpu(
  gpu: Gpu,
  plan: Plan,
  options: PrepareOptions,
  { debug = false, warmUp = false, stepsAhead = defaultStepsAhead(gpu), padTo, ...more }:
    GpuBackendOptions,
): Promise<GpuPlan> {
  const stream = more.stream ? planGpuStream(plan, more.stream) : undefined;
  options.signal?.throwIfAborted();
  gpu.check();
  const capabilities = capabilitiesFor(gpu.capabilities, options);
  const { rowByRow, storages = more.storages } = options;
  const kernels = chooseGpuKernels(plan, capabilities, {
    ...{ ...options, storages },
    ...rowByRow && { excludeKernels: new Set([...options.excludeKernels ?? [], LONE_ROW_KERNEL]) },
  });
  const scope = createBufferScope(gpu);
  try {
    const { ranked } = options;
    const tables = layOutTables(plan, options);
    const chosen = { plan, kernels, capabilities, storages, tables, rowByRow };
    const lower = createLowering(chosen);
    const memory = await gpu.allocate(() =>
      allocate(scope, { ...chosen, stream, lower, sizes: options })
    );
    const dispatches = lower(memory.map);
    const { values } = memory;
    const outputs = gpuOutputs(plan, values);
    const reach = createReach(plan, { values, padTo });
    // Mappings that are awaited and compilers are on their way while weights are read.
    const isFed = plan.graph.inputs.some(({ name }) => name === ranked?.fed);
    const goesAhead = isFed && plan.graph.states.length > 0 && more.maxSubmitMs === undefined;
    const depth = goesAhead ? stepsAhead : 0;
    const makeLogits = async () =>
      debug || stream ? undefined : await createGpuLogits({
        ...{ scope, plan, values, outputs, ranked, runsAhead: BATCHES * depth },
      });
    const toRun = together([
      makeLogits(),
      createProgram(scope, {
        dispatches: dispatches.flat(),
        eager: stream ? [] : usualSteps(plan, capabilities),
      }),
    ]);
    const goAhead = async () => {
      const [logits, program] = await toRun;
      if (!logits || depth === 0) return {};
      const parts = {
        ...{ scope, plan, ranked: ranked!, values, program, reach, logits },
        slotInputs: chosen.tables.inputs,
      };
      const [ahead, bound] = await Promise.all([
        RunsAhead.create({ ...parts, depth }),
        BoundRuns.create(parts),
      ]);
      return { ahead, bound };
    };
    const [readback, [logits, program], { ahead, bound }, prepareWeights] = await together([
      createReadback(scope, outputBytes(plan) + entryBytes(plan, ranked)),
      toRun,
      goAhead(),
      memory.prepared.compile(scope),
      loadGpuWeights(
        scope,
        { plan, weights: memory.weights, placeOf: values.slice, stream },
        options,
      ),
    ]);
    prepareWeights();
    memory.states.watch((slot, end) => {
      ahead?.lose(slot, end);
      bound?.lose(slot);
    });
    const streamed = stream && await createStreamedStep({
      ...{ scope, plan, stream, weights: memory.weights, values, outputs, readback, reach },
      dispatches,
    });
    // Parts of a graph may be short, and answers are waited for by the token.
    const isWhole = !debug && more.maxSubmitMs === undefined;
    const pauses = isWhole && !streamed && !logits && !options.hostSteps;
    const compute = streamed
      ? streamed.run
      : debug
      ? await createCheckedStep({ scope, plan, kernels, values, outputs, reach, dispatches })
      : createStepOf(
        { gpu, program, values, outputs, readback, reach, logits, pauses },
        more.maxSubmitMs,
      );
    const ready = assemble({
      ...{ gpu, plan, kernels, memory, program, readback, outputs, reach, logits, ahead, bound },
      ...{ compute, scope, stream, streamed, isWhole, pauses },
    });
    if (warmUp && !debug) await runOnce(ready, memory.states);
    return ready;
  } catch (error) {
    scope.free();
    throw error;
  }
}

/**
 * Bindings of the steps that are made ready at once: one token of a short context, which every answer takes; where compilers
 * let nobody work beside them, also a full step of which one row is wanted, one token of a long context, and a prompt of a few.
 */
function usualSteps(plan: Plan, { compilesInTurn, isSoftware }: Capabilities): DimEnv[] {
  const limits = limitsWithReach(plan, { isChunk: true }), token = upTo(1, plan, limits);
  if (!compilesInTurn || isSoftware) return [token];
  const full = { ...limits, ..."L" in limits && { L: 1 } };
  return [token, full, farBack(token, limits), upTo(FEW, plan, limits)];
}

/** Tokens of a short prompt. */
const FEW = 4;

/** So many of everything, where there may be as many; all of it if that is too few for what cuts off. */
function upTo(count: number, plan: Plan, limits = plan.limits): DimEnv {
  const sizes = Object.fromEntries(
    Object.entries(limits).map(([name, most]) => [name, Math.min(count, most)]),
  );
  return fitsSizes(plan, sizes) ? sizes : limits;
}

interface Parts {
  readonly gpu: Gpu;
  readonly plan: Plan;
  readonly kernels: readonly GpuKernel[];
  readonly memory: PlanMemory;
  readonly program: Program<DimEnv>;
  readonly readback: Readback;
  readonly outputs: readonly GpuOutput[];
  readonly reach: Reach;
  readonly logits: GpuLogits | undefined;
  readonly ahead: RunsAhead | undefined;
  readonly bound: BoundRuns | undefined;
  /** Runs a step. */
  readonly compute: RunStep;
  readonly stream: StreamPlan | undefined;
  readonly streamed: StreamedStep | undefined;
  readonly scope: BufferScope;
  /** Whether a run is one submission. */
  readonly isWhole: boolean;
  readonly pauses: boolean;
}

function assemble(parts: Parts): GpuPlan {
  const { gpu, plan, kernels, memory, program, outputs, logits, ahead, bound, scope } = parts;
  const { states, values } = memory;
  const host = new Map(outputs.map(({ name, data }) => [name, data]));
  const use = createPlanUse(plan, {
    input: values.input,
    output: ({ name }) => host.get(name)!,
    free: () => scope.free(),
  });
  const { run, onDevice, finish, holder } = createRunner(parts, use.checkRun);
  return {
    plan,
    gpu,
    queues: parts.isWhole && !parts.streamed,
    readsAtOnce: parts.readback.isImmediate,
    pauses: parts.pauses,
    picksAllowed: bound !== undefined,
    stepParts: { ...parts, values },
    kernels: kernels.map(({ name }) => name),
    hostNodes: [],
    get dispatches() {
      return program.activeCount;
    },
    get foreseenSteps() {
      return (ahead?.count ?? 0) + (bound?.count ?? 0);
    },
    notes: gpu.capabilities.isSoftware
      ? [
        `${gpu.capabilities.adapter} is no GPU: WebGPU runs on the CPU, more slowly than device wasm`,
      ]
      : [],
    memory: {
      ...bytesOf(plan, memory),
      ...parts.stream && { streamed: streamedBytes(plan, parts.stream) },
    },
    ...parts.streamed && { streaming: parts.streamed.take },
    input: use.input,
    output(name, rows) {
      const view = use.output(name);
      if (logits) onDevice(() => logits.fetch(rows));
      return view;
    },
    ...states.pages && { pages: states.pages },
    openSlot: () => onDevice(states.open),
    closeSlot: states.close,
    readState(slot, count) {
      use.checkAlive();
      return finish(onDevice(() => states.read(slot, count)));
    },
    writeState(slot, count, bytes) {
      use.checkAlive();
      onDevice(() => states.write(slot, count, bytes));
    },
    run(bindings, wish, signal) {
      use.checkRun(bindings);
      return run(bindings, wish, signal);
    },
    ...holder && { holder },
    best: (row) => logits?.best(row),
    isGone: (row) => logits?.isGone(row) ?? false,
    dispose: use.dispose,
  };
}

function bytesOf(
  { arenaBytes }: Plan,
  { weights, states, layout, textures, prepared }: PlanMemory,
): GpuPlan["memory"] {
  return {
    weights: weights.bytes + textures.weightBytes + prepared.bytes,
    arena: arenaBytes,
    ...{ statePerSlot: states.bytesPerSlot, states: states.bytes },
    other: layout.inputBytes + layout.constantBytes + textures.activationBytes,
    textures: textures.weightBytes + textures.activationBytes,
  };
}

/** What all that reaches for the device goes through. */
interface Runner {
  run(bindings: DimEnv, wish?: RankedWish, signal?: AbortSignal): void | Promise<void>;
  /** What reaches for the device, its failures explained. */
  onDevice<T>(action: () => T): T;
  /** The same of what the device does later. */
  finish<T>(done: Promise<T>): Promise<T>;
  /** Absent where runs are made of more than one submission, or bring less than their outputs. */
  readonly holder: Holder | undefined;
}

function createRunner(parts: Parts, checkRun: PlanUse["checkRun"]): Runner {
  const { gpu, plan, memory, logits, ahead, bound, compute, streamed, isWhole } = parts;
  const { states, values } = memory;
  const own = logits || streamed || !isWhole ? undefined : createHolder(plan, { ...parts, values });
  const checks = indexChecks(plan, {
    data: (value) => values.input(rootOf(plan, value)),
    checkSlot: states.check,
  });

  function failed(error: unknown): unknown {
    ahead?.forget();
    bound?.forget();
    return explained(error, { plan, gpu });
  }

  function onDevice<T>(action: () => T): T {
    try {
      gpu.check();
      return action();
    } catch (error) {
      throw failed(error);
    }
  }

  async function finish<T>(done: Promise<T>): Promise<T> {
    try {
      const result = await done;
      gpu.check();
      return result;
    } catch (error) {
      throw failed(error);
    }
  }

  function start(
    bindings: DimEnv,
    wish: RankedWish | undefined,
    signal: AbortSignal | undefined,
  ): void | Promise<void> {
    if (bound?.take(bindings, wish)) return ahead?.forget();
    const taken = ahead?.take(bindings, wish) ?? false;
    if (taken === true) return;
    if (taken) return taken;
    logits?.forget();
    return compute(bindings, wish, signal);
  }

  return {
    run(bindings, wish, signal) {
      for (const check of checks) check(bindings);
      const done = onDevice(() => start(bindings, wish, signal));
      if (done) return finish(done);
      // Whoever wished for nothing may hold the view of the output already.
      if (!wish && logits) onDevice(() => logits.fetch());
    },
    onDevice,
    finish,
    holder: own && {
      hold: (bytes) => finish(own.hold(bytes)),
      takes: own.takes,
      keeps: own.keeps,
      run(bindings, transfers) {
        checkRun(bindings);
        for (const check of checks) check(bindings);
        const done = onDevice(() => own.run(bindings, transfers));
        if (done) return finish(done);
      },
    },
  };
}

/** One step of one row: drivers finish shaders when they are first used. */
async function runOnce(executable: GpuPlan, states: GpuStates): Promise<void> {
  if (states.count === 0) return;
  const slot = states.open(), first = { slot, index: 0 };
  for (const { map } of states.pages ?? []) map(first, 0);
  try {
    await executable.run(upTo(1, executable.plan));
    states.markUsed();
  } finally {
    for (const { map } of states.pages ?? []) map(first, NO_PAGE);
    states.close(slot);
  }
}
