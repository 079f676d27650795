// The WASM backend: makes a plan ready in the memory of one machine. Order of events: refuse what cannot
// fit; reserve states, inputs, arena and weights; let the workers read and pack the weights; meanwhile lower
// the nodes to one program; take part in what is left to read. A step is then one call into the machine, and
// nothing is allocated any more.

import { ADDRESS_SPACE, OutOfMemoryError } from "../../../wasm/allocator.ts";
import { createMachine, type Machine, type MachineOptions } from "../../../wasm/machine.ts";
import { createProgram, type ProgramInstruction } from "../../../wasm/program.ts";
import type { SimdVariant } from "../../../wasm/probe.ts";
import { ResourceError } from "../../errors.ts";
import { FILE_READER } from "../../io.ts";
import type { Value } from "../../graph/graph.ts";
import type { Backend, PreparedPlan, PrepareOptions } from "../backend.ts";
import { weightsOf, weightsOfNodes } from "../plan_weights.ts";
import { indexChecks } from "../index_checks.ts";
import { partSizes } from "../parts/part_states.ts";
import { createPlanUse } from "../plan_use.ts";
import { type Plan, rootOf } from "../../plan/plan.ts";
import type { WasmArena } from "./arena.ts";
import { roundedWeights } from "../../plan/rounded_weights.ts";
import { createWasmBestLogits } from "./best_logits.ts";
import { estimate, scratchBytes, weightBytes } from "./estimate.ts";
import { hostMemory, weightUses } from "./host_steps.ts";
import { WASM_KERNELS } from "./kernel_table.ts";
import { chooseKernels, lowerPlan } from "./lowering.ts";
import { memoryParts } from "./memories.ts";
import { createPlanRunner } from "./plan_runner.ts";
import { createWasmStates } from "./states.ts";
import { chooseStream, leastStream, roomAhead, type StreamChoice } from "./stream_choice.ts";
import { createCommonMachines, createSharedMachine } from "./shared_machine.ts";
import { placeValues } from "./values.ts";
import { createWeightStream, type WeightStream } from "./weight_stream.ts";
import { type StreamedBytes, streamedBytes, type StreamOptions } from "../streaming/slots.ts";
import { createWeightLoader, type WeightLoader } from "./weights.ts";
import { workOf } from "./thread_share.ts";

/** Options of {@linkcode createWasmBackend}. */
export interface WasmBackendOptions {
  /** Threads in all, the calling one included; default: all processors, at most 16. */
  readonly threads?: number;
  /** Forces baseline or relaxed SIMD instead of asking the probe. */
  readonly variant?: SimdVariant;
  /** Forces kernels that V8 joins to 256 bits, or those that it does not, instead of asking the machine. */
  readonly joins?: boolean;
  /** Polls of a waiting thread before it sleeps; default 20,000 (some 50 µs). */
  readonly spins?: number;
  /** Measures time by kernel (`PreparedPlan.profile`); costs a clock reading an instruction. */
  readonly profile?: boolean;
  /** True: executables without states share one machine and its workers. */
  readonly shared?: boolean;
  /** True: all executables share one machine, those with states too, and a next one when it is full. */
  readonly together?: boolean;
  /** Where executables without states keep their activations; it decides about the machine too. */
  readonly arena?: WasmArena | undefined;
  /** Most bytes of one WASM memory, at most 4 GiB (the default): a larger model takes several. */
  readonly memoryBytes?: number;
  /** Whether weights are streamed from their files; default: where the two below leave no other way. */
  readonly stream?: boolean | Partial<StreamOptions> | undefined;
  /** Most bytes that a plan may take. */
  readonly maxHostBytes?: number | undefined;
  /** Bytes of memory that are free, as far as that is known. */
  readonly freeBytes?: number | undefined;
  /** Cuts runs into pieces of at most so many milliseconds, between which events are let through (run/pacer.ts). */
  readonly maxSubmitMs?: number | undefined;
  /** Leaves this many bytes below everything unused: tests put all that a kernel touches above 2 GiB. */
  readonly skipBytes?: number;
}

/** What the WASM backend adds to an executable. */
export interface WasmPlan extends PreparedPlan {
  readonly kernels: readonly string[];
  /** Bytes of WASM memory that were claimed from the system. */
  readonly committedBytes: number;
}

/** The WASM backend. */
export interface WasmBackend extends Backend {
  prepare(plan: Plan, options: PrepareOptions): Promise<WasmPlan>;
}

/** A machine without a plan. */
interface WarmMachine {
  readonly machine: Promise<Machine>;
  /** What loads weights into it already. */
  loader?: WeightLoader;
}

/** A machine for a plan. */
interface ReadyMachine {
  readonly machine: Machine;
  readonly loader?: WeightLoader | undefined;
}

/**
 * The part of a memory up to which weights are loaded before the plan is known: with this much the model will not be
 * cut, and the time for planning counts.
 */
const PRELOADED_PART = 0.25;

/** Operations that are worth waking workers for: some 100 µs. */
const LEAST_SHARED_WORK = 2 ** 20;

/** Makes the WASM backend. */
export function createWasmBackend(options: WasmBackendOptions = {}): WasmBackend {
  const machineOptions: MachineOptions = {
    wait: false,
    reader: FILE_READER,
    ...(options.threads === undefined ? {} : { threads: options.threads }),
    ...(options.variant === undefined ? {} : { variant: options.variant }),
    ...(options.joins === undefined ? {} : { joins: options.joins }),
    ...(options.spins === undefined ? {} : { spins: options.spins }),
    ...(options.memoryBytes === undefined ? {} : { memoryBytes: options.memoryBytes }),
  };
  const { memoryBytes = ADDRESS_SPACE, threads } = options;
  const mayStream = options.stream || options.maxHostBytes !== undefined;
  const create = async (): Promise<Machine> => {
    const machine = await createMachine(machineOptions);
    if (options.skipBytes) machine.allocate(options.skipBytes);
    return machine;
  };
  const shared = options.shared ? createSharedMachine(create) : undefined;
  const common = options.together ? createCommonMachines(create, memoryBytes) : undefined;
  let warm: WarmMachine | undefined;
  /** The machine that is warm already, or a new one. */
  const start = async (): Promise<ReadyMachine> => {
    const { machine = create(), loader } = warm ?? {};
    warm = undefined;
    return { machine: await machine, loader };
  };
  function cool(own: WarmMachine): void {
    warm = undefined;
    own.machine.then((machine) => machine.dispose(), () => {});
  }
  const only = async (machine: Promise<Machine>) => ({ machine: await machine });
  return {
    name: "wasm",
    kernels: WASM_KERNELS,
    async prepare(plan, prepare) {
      const streamed = chooseStream(plan, prepare, options);
      if (streamed) {
        if (warm?.loader) cool(warm);
        return await prepareWasm(plan, { options, prepare, start, streamed });
      }
      const parts = memoryParts(plan, { sizes: prepare, memoryBytes, threads });
      if (parts.length > 1) {
        // States alone can be what one memory does not hold.
        if (warm?.loader) cool(warm);
        return await prepareInParts(plan, { parts, options, prepare, start });
      }
      const { arena } = options;
      return await prepareWasm(plan, {
        options,
        prepare,
        start: () => {
          const { weights, laidOut, states, activations } = estimate(plan, prepare);
          const taken = common?.borrow(
            weights + laidOut + states + activations + scratchBytes(plan, threads),
          );
          if (taken) return only(taken);
          if (plan.graph.states.length > 0) return start();
          const borrowed = arena?.borrow() ?? shared?.borrow();
          return borrowed ? only(borrowed) : start();
        },
      });
    },
    warm() {
      const own: WarmMachine = warm = { machine: create() };
      own.machine.catch(() => {}); // told to whoever prepares something
      return {
        [Symbol.dispose]() {
          if (warm === own) cool(own);
        },
      };
    },
    async expect(bytes) {
      if (!warm || mayStream || bytes > memoryBytes * PRELOADED_PART) return;
      try {
        (await warm.machine).expect(bytes);
      } catch {
        // As below.
      }
    },
    async preload(graph) {
      const weights = weightsOfNodes(graph.nodes);
      const bytes = weights.reduce((sum, value) => sum + weightBytes(value, false), 0);
      if (!warm || mayStream || bytes > memoryBytes * PRELOADED_PART) return;
      const own = warm;
      try {
        const loader = createWeightLoader(await own.machine);
        loader.add(weights, new Set());
        loader.start();
        own.loader = loader;
      } catch {
        // What is wrong is said when there is a plan, by the checks that come before loading.
        cool(own);
      }
    },
    streams(plan, sizes, { least } = { least: false }) {
      const choice = chooseStream(plan, sizes, least ? leastStream(options) : options);
      const { weights } = choice?.uses ?? {};
      return choice && { weights: weights!, streamed: streamedBytes(plan, choice.plan) };
    },
    memories: (plan, sizes) =>
      memoryParts(plan, { sizes, memoryBytes, threads }).map((part) => {
        const { weights, laidOut, states, activations } = estimate(
          part.plan,
          partSizes(plan.graph, { part: part.plan.graph, sizes }),
        );
        return weights + laidOut + states + activations;
      }),
  };
}

/** A model in several memories. */
async function prepareInParts(
  plan: Plan,
  { parts, options, prepare, start }: {
    readonly parts: ReturnType<typeof memoryParts>;
    readonly options: WasmBackendOptions;
    readonly prepare: PrepareOptions;
    readonly start: () => Promise<ReadyMachine>;
  },
): Promise<WasmPlan> {
  const { prepareParts } = await import("../parts/run_parts.ts");
  const own = { ...options, arena: undefined };
  const joined = await prepareParts(plan, {
    parts,
    options: prepare,
    prepare: ({ plan }, prepare) => prepareWasm(plan, { options: own, prepare, start }),
  });
  return {
    ...joined,
    notes: [
      `the model lies in ${parts.length} WASM memories, because one does not hold it`,
      ...joined.notes,
    ],
    committedBytes: joined.parts.reduce((sum, part) => sum + part.committedBytes, 0),
  };
}

async function prepareWasm(
  plan: Plan,
  { options, prepare, start, streamed }: {
    readonly options: WasmBackendOptions;
    readonly prepare: PrepareOptions;
    readonly start: () => Promise<ReadyMachine>;
    readonly streamed?: StreamChoice | undefined;
  },
): Promise<WasmPlan> {
  prepare.signal?.throwIfAborted();
  let machine: Machine | undefined, stream: WeightStream | undefined;
  try {
    const started = await start();
    machine = started.machine;
    const loader = started.loader ?? createWeightLoader(machine);
    stream = streamed && createWeightStream(machine, {
      ...{ graph: plan, plan: streamed.plan, options: streamed.options },
      rounded: roundedWeights(plan.graph.nodes),
    });
    const uses = streamed && streamedBytes(plan, streamed.plan);
    return await assemble(machine, { loader, plan, options, stream, streamed: uses }, prepare);
  } catch (error) {
    stream?.dispose();
    machine?.dispose();
    if (!(error instanceof OutOfMemoryError)) throw error;
    throw new ResourceError(`device wasm: ${error.message}`, {
      file: weightsOf(plan)[0]?.tensor?.source.name,
      remedy: "Free memory, take a smaller model, or lower contextLength, sessions or batch",
      cause: error,
    });
  }
}

async function assemble(
  machine: Machine,
  { loader, plan, options, stream, streamed }: {
    readonly loader: WeightLoader;
    readonly plan: Plan;
    readonly options: WasmBackendOptions;
    readonly stream: WeightStream | undefined;
    readonly streamed: StreamedBytes | undefined;
  },
  prepare: PrepareOptions,
): Promise<WasmPlan> {
  const { graph } = plan;
  // States come first: memory that was never used is zero and costs nothing until it is touched.
  const states = createWasmStates(machine, { graph, sizes: prepare, isUsed: options.together });
  const arena = graph.states.length === 0 ? options.arena : undefined;
  const values = placeValues(machine, { plan, shared: arena });
  const early = prepare.hostSteps ? chooseKernels(machine, { plan, prepare }) : undefined;
  const uses = early && weightUses(plan, early);
  const still = weightsOf(plan).filter(({ id }) => !stream?.matrices.has(id));
  const weights = loader.add(still, roundedWeights(graph.nodes), uses);
  loader.start();
  await prepare.meanwhile?.();
  if (!machine.isReady) await machine.ready;
  // Threads are final now, and kernels may ask for them.
  const kernels = chooseKernels(machine, { plan, prepare });
  const addressOf = (value: Value) =>
    weights.vectors.get(rootOf(plan, value).id) ?? values.addressOf(value);
  const { parts, once, sequence } = lowerPlan(machine, {
    plan,
    kernels,
    context: {
      profile: options.profile ?? false,
      alone: graph.states.length === 0 && workOf(plan) < LEAST_SHARED_WORK,
      prepare,
      threads: machine.threads,
      addressOf,
      weightOf: ({ id }) => stream?.matrices.get(id) ?? weights.matrices.get(id),
      ...{ states, stream, mostAhead: roomAhead(plan, prepare, options) },
      memory: hostMemory(machine, { plan, addressOf }),
    },
  });
  // In an arena of several executables a row does not stay.
  const best = arena ? undefined : createWasmBestLogits(machine, { plan, values }, {
    ranked: prepare.ranked?.output,
    profile: options.profile ?? false,
  });
  await loader.finish(prepare);
  runOnce(machine, once);
  prepare.signal?.throwIfAborted();
  const notes = stream ? [...machine.notes, stream.start(sequence)] : machine.notes;

  const use = createPlanUse(plan, {
    input: values.view,
    output: (value) => values.view(rootOf(plan, value)),
    free() {
      stream?.dispose();
      machine.dispose();
    },
  });
  const { run, profile } = createPlanRunner(parts, {
    ...{ plan, use, best, stream, maxMs: options.maxSubmitMs, profile: options.profile ?? false },
    checks: indexChecks(plan, { data: values.view, checkSlot: states.check }),
  });
  const weightsBytes = loader.bytes + (stream?.bytes ?? 0);
  return {
    plan,
    threads: machine.threads,
    notes,
    kernels: plan.steps.map(({ node }, i) => kernels[i]?.name ?? `host:${node.op}`),
    hostNodes: plan.steps.flatMap(({ node }, i) => kernels[i] ? [] : [node]),
    committedBytes: machine.committedBytes,
    memory: {
      weights: weightsBytes,
      arena: plan.arenaBytes,
      ...{ statePerSlot: states.bytesPerSlot, states: states.bytes },
      other: machine.usedBytes - weightsBytes - plan.arenaBytes - states.bytes,
      ...streamed && { streamed },
    },
    ...states.pages && { pages: states.pages },
    openSlot: states.open,
    closeSlot: states.close,
    readState: states.read,
    writeState: states.write,
    input: use.input,
    output: use.output,
    run,
    best: (row) => best?.best(row),
    keepsRows: true,
    profile,
    ...stream && { streaming: stream.take },
    dispose: use.dispose,
  };
}

function runOnce(machine: Machine, instructions: readonly ProgramInstruction[]): void {
  if (instructions.length === 0) return;
  using program = createProgram(machine, instructions);
  program.run();
}
