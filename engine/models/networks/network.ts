// Networks of weights and a spec, which run on tensors of any size. They are built and planned for the sizes that come, as
// numbers: what is halved and doubled on its way has sizes that must be equal, and a kernel that knows them is chosen
// for them. As long as they stay, nothing is planned or loaded again.

import type { WeightFile } from "../../formats/source.ts";
import { deviceGraph } from "../../onnx/running/ready_segment.ts";
import type { Graph } from "../../graph/graph.ts";
import { createLock } from "../../lock.ts";
import { plan } from "../../plan/planner.ts";
import type { Plan } from "../../plan/plan.ts";
import type { PreparedPlan } from "../../run/backend.ts";
import type { Device } from "../../run/devices.ts";
import { buildNetwork, type NetworkParts, type TensorSource } from "./build_network.ts";
import { type Names, valueOf } from "./expression.ts";
import { readNetworkConfig } from "./network_config.ts";
import type { NetworkSpec } from "./network_spec.ts";
import { chooseNetworkSpec } from "./specs/mod.ts";

/** Numbers of a run, row-major. */
export interface Tensor {
  readonly data: Float32Array;
  readonly dims: readonly number[];
}

/** What a network gives, by name. */
export type NetworkResults = ReadonlyMap<string, Float32Array>;

/** The main one of some results. */
export function firstOf(results: NetworkResults): Float32Array {
  return results.values().next().value!;
}

/** A network. */
export interface Network extends Disposable {
  /**
   * Runs it once; who calls while another call runs waits for it.
   *
   * @returns Its results by name, the main one first, in arrays of the caller's own. Rejects with the signal's reason
   *   between two pieces of a long run.
   * @throws {RangeError} If an input has another size than the weights say.
   * @throws {ResourceError} If sizes take more memory than there is.
   */
  run(inputs: Readonly<Record<string, Tensor>>, signal?: AbortSignal): Promise<NetworkResults>;
  /** Forgets what was made ready for the last sizes, and so its memory, when no run is under way. */
  release(): Promise<void>;
}

/** Weights with the spec that belongs to them. */
export interface NetworkFile {
  readonly spec: NetworkSpec;
  /** Keys of the config, and the spec's own names. */
  readonly names: Names;
  readonly tensors: TensorSource;
  /** Path, for messages. */
  readonly file: string;
  readonly warnings: readonly string[];
}

/** Finds the spec of a file of weights, and completes its config. @throws As `readNetworkConfig`. */
export function readNetworkFile({ metadata, tensors, name }: WeightFile): NetworkFile {
  const given = Object.fromEntries(metadata);
  const spec = chooseNetworkSpec(given, name);
  return { spec, tensors, file: name, ...readNetworkConfig(spec, { given, file: name }) };
}

/** Most bytes of activations: what addresses of 32 bits reach. */
const MAX_BYTES = 2 ** 32;

/** What a graph is planned for. */
export interface NetworkPlanOptions {
  readonly device: Device;
  /** Bytes of a number between ops; default 4. */
  readonly floatBytes?: 2 | 4 | undefined;
}

/** A plan of a network's graph; nothing is loaded. @throws {ResourceError} If it takes more than addresses reach. */
export function planNetwork(
  graph: Graph,
  { device, floatBytes = 4 }: NetworkPlanOptions,
): Plan {
  return plan(deviceGraph(graph, device), {
    limits: {},
    reuseInputs: device.reusesInputs,
    maxBytes: MAX_BYTES,
    floatBytes,
  });
}

/** What a network is opened with. */
export interface NetworkOptions
  extends Pick<NetworkParts, "network" | "lowRank">, Omit<NetworkPlanOptions, "floatBytes"> {
  /** `fast`, the default: what meets subgroup matrices may be rounded to float16. */
  readonly precision?: "fast" | "exact" | undefined;
  /** Told of the tensors that are in the graph. */
  readonly onBuilt?: ((used: ReadonlySet<string>) => void) | undefined;
}

/** A network of weights. */
export function openNetwork(file: NetworkFile, options: NetworkOptions): Network {
  const { device, network, lowRank, onBuilt, precision = "fast" } = options;
  let ready: { readonly key: string; readonly prepared: PreparedPlan } | undefined;
  // Inputs, activations and results are one run's at a time.
  const turns = createLock();
  const forget = () => {
    ready?.prepared.dispose();
    ready = undefined;
  };
  return {
    async run(inputs, signal) {
      const dims = sizesOf(file, { network, inputs });
      using _turn = await turns.acquire(signal);
      const key = JSON.stringify(dims);
      if (ready?.key !== key) {
        forget();
        const { graph, used } = buildNetwork({ ...file, network, lowRank, dims });
        onBuilt?.(used);
        const prepared = await device.backend.prepare(planNetwork(graph, options), {
          slots: 1,
          hostSteps: true,
          roundsToHalves: precision === "fast",
          ...signal && { signal },
        });
        ready = { key, prepared };
      }
      const { prepared } = ready;
      for (const { name } of prepared.plan.graph.inputs) {
        (prepared.input(name) as Float32Array).set(inputs[name]!.data);
      }
      await prepared.run({}, undefined, signal);
      return new Map(
        prepared.plan.graph.outputs.map(({ name }) =>
          [name, (prepared.output(name) as Float32Array).slice()] as const
        ),
      );
    },
    async release() {
      using _turn = await turns.acquire();
      forget();
    },
    [Symbol.dispose]: forget,
  };
}

/** Values of the sizes that inputs of the spec have names for. @throws {RangeError} If others do not fit. */
function sizesOf(
  { spec, names, file }: NetworkFile,
  { network, inputs }: {
    readonly network: string;
    readonly inputs: Readonly<Record<string, Tensor>>;
  },
): Record<string, number> {
  const sizes: Record<string, number> = {};
  for (const [name, { data, dims }] of Object.entries(inputs)) {
    const rule = spec.networks[network]!.inputs[name];
    if (!rule) throw new TypeError(`${file} has no input "${name}"`);
    const wanted = rule.map((size, axis) => {
      if (/^[a-z]+$/.test(size) && !Object.hasOwn(names, size)) return sizes[size] ??= dims[axis]!;
      return valueOf(size, { names, place: name });
    });
    if (wanted.join() === dims.join() && data.length === dims.reduce((a, b) => a * b, 1)) continue;
    throw new RangeError(
      `${file}: "${name}" is [${dims}] with ${data.length} numbers where [${wanted}] is needed`,
    );
  }
  return sizes;
}
