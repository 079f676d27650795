// A graph of a file, opened as it lies; weights are read when the first run makes it ready on its device.

import type { OnnxDim, OnnxModel, OnnxType, OnnxValueInfo } from "../file/model.ts";
import { openNamed, openOnnx } from "../file/open_onnx.ts";
import type { HostData } from "../../graph/graph.ts";
import type { HostValue } from "../derivation/tensor.ts";
import { AUTO_FOR_GRAPHS, checkDevice, DEVICE_FACTS } from "../../run/device_facts.ts";
import { openDevice } from "../../run/devices.ts";
import { paceOf } from "../../run/pacer.ts";
import { createReferenceBackend } from "../../run/reference/reference_backend.ts";
import { accessOf } from "./arena.ts";
import { codesOf, type GraphValue, graphValueOf, hostValueOf, typeName } from "./graph_tensor.ts";
import { checkOptionKeys, type OptionKeys } from "../../option_keys.ts";
import { type OpenGraph, openGraph } from "./open_graph.ts";
import { type GraphPlan, planGraph, symbolsOfInputs } from "./plan_graph.ts";
import type { ResultArrays } from "./ready_segment.ts";
import type {
  GraphMemory,
  GraphPort,
  LoadedGraph,
  LoadGraphOptions,
  RunGraphOptions,
} from "./graph_types.ts";

const FOUR_GIB = 2 ** 32;

const RUN_KEYS: OptionKeys<RunGraphOptions> = {
  outputs: true,
  into: true,
  keep: true,
  signal: true,
};

/** Opens a graph; the names of the options were checked. */
export async function openLoadedGraph(
  path: string,
  options: LoadGraphOptions,
): Promise<LoadedGraph> {
  const { device = "auto", threads, limits = {}, maxActivationBytes = FOUR_GIB, profile } = options;
  const { precision = "exact" } = options;
  checkDevice(options);
  if (precision !== "exact" && precision !== "fast") {
    throw new RangeError(`Cannot load with precision "${precision}": it is exact or fast`);
  }
  const access = options.arena && accessOf(options.arena);
  const name = device === "auto" ? AUTO_FOR_GRAPHS : device;
  if (access && !DEVICE_FACTS[name].sharesArenas) {
    throw new RangeError(`Cannot load on ${device} with an arena: it is of device wasm`);
  }
  paceOf(options);
  if (access && threads !== undefined) {
    throw new RangeError("Cannot set threads of a graph in an arena: give them to createArena()");
  }
  const opened = await openDevice(name, {
    threads,
    profile,
    gpu: options.gpu,
    priority: options.priority,
    maxSubmitMs: options.maxSubmitMs,
    shared: true,
    excludeKernels: options.excludeKernels,
    arena: await access?.open(),
  });
  const model = await openNamed(path, openOnnx);
  const notes = new Set<string>();
  const runtime = {
    device: opened,
    reference: createReferenceBackend(),
    maxBytes: maxActivationBytes,
    onNotes: (found: readonly string[]) => found.forEach((note) => notes.add(note)),
    ...{ limits, precision },
  };
  let graph: OpenGraph;
  try {
    checkLimits(model, limits);
    graph = openGraph(model, runtime);
  } catch (error) {
    model.close();
    throw error;
  }
  const declared = new Map(graph.inputs.map(({ name, type }) => [name, type]));
  const dispose = () => graph.dispose();
  return {
    inputs: graph.inputs.map((info) => portOf(info, !graph.hasDefault(info.name))),
    outputs: graph.outputs.map((info) => portOf(info, false)),
    device: name,
    get notes() {
      return [...notes];
    },
    metadata: model.metadata,
    plan: (bind = {}) => memoryOf(planGraph(model, { bind, device: opened })),
    profile() {
      if (profile) return graph.profile();
      throw new TypeError(
        "Cannot give a profile: nothing was measured. Load the graph with profile: true",
      );
    },
    async run(inputs, options = {}) {
      checkOptionKeys(options, { of: "run()", known: RUN_KEYS });
      const { outputs, signal, into, keep } = options;
      checkKept(keep, { graph, outputs, into });
      const given = new Map<string, HostValue>();
      for (const [name, value] of Object.entries(inputs)) {
        given.set(name, hostValueOf(name, { value, declared: declared.get(name) }));
      }
      const request = {
        ...outputs && { outputs },
        signal,
        into: into && arraysOf(into),
        keep: keep && new Set(keep),
      };
      const results = access
        ? await access.use(() => graph.run(given, request))
        : await graph.run(given, request);
      const values: Record<string, GraphValue> = {};
      for (const [name, value] of results) values[name] = graphValueOf(value);
      return values;
    },
    dispose,
    [Symbol.dispose]: dispose,
  };
}

/** @throws {TypeError} If something is to stay that is no wanted result, or that is to be written into an array. */
function checkKept(
  keep: readonly string[] = [],
  { graph, outputs = graph.outputs.map(({ name }) => name), into = {} }: {
    readonly graph: Pick<OpenGraph, "outputs">;
  } & Pick<RunGraphOptions, "outputs" | "into">,
): void {
  for (const name of keep) {
    if (!outputs.includes(name)) {
      throw new TypeError(`Cannot keep "${name}": the results are ${outputs.join(", ")}`);
    }
    if (Object.hasOwn(into, name)) {
      throw new TypeError(`Cannot keep "${name}" on the device and write it into an array`);
    }
  }
}

function arraysOf(into: NonNullable<RunGraphOptions["into"]>): ResultArrays {
  const arrays = new Map<string, HostData>();
  for (const [name, array] of Object.entries(into)) arrays.set(name, codesOf(array));
  return arrays;
}

function checkLimits(model: OnnxModel, limits: Readonly<Record<string, number>>): void {
  const names = symbolsOfInputs(model);
  for (const [name, limit] of Object.entries(limits)) {
    if (!names.has(name)) {
      throw new RangeError(
        `Cannot set a limit for "${name}": the inputs have ${
          [...names].join(", ") || "no symbols"
        }`,
      );
    }
    if (!Number.isSafeInteger(limit) || limit < 1) {
      throw new RangeError(`Cannot limit "${name}" to ${limit}: give an integer from 1`);
    }
  }
}

function memoryOf({ plan, outputs, assumptions, split }: GraphPlan): GraphMemory {
  return {
    outputs,
    steps: plan?.steps.length ?? 0,
    arenaBytes: plan?.arenaBytes ?? 0,
    lowerBoundBytes: plan?.lowerBoundBytes ?? 0,
    naiveBytes: plan?.naiveBytes ?? 0,
    assumptions,
    split,
  };
}

function portOf({ name, type }: OnnxValueInfo, required: boolean): GraphPort {
  const dims: readonly OnnxDim[] | undefined = type?.kind === "tensor" ? type.shape : undefined;
  return { name, type: kindOf(type), ...dims && { dims }, required };
}

function kindOf(type: OnnxType | undefined): string {
  if (!type) return "unknown";
  return type.kind === "tensor" ? typeName(type.dtype) : type.kind;
}
