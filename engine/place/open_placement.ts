// What the options of load() say about several devices, as one device: a text, a preset or the JSON form; so many layers on
// the GPU; budgets. What is wrong with them is said before a model is opened, or, where it hangs on the model, before its
// weights are read.

import { ResourceError } from "../errors.ts";
import type { Graph } from "../graph/graph.ts";
import type { PassContext } from "../plan/passes/pass.ts";
import type { Plan } from "../plan/plan.ts";
import type { StateSizes } from "../run/pages/groups.ts";
import { type Device, type DeviceOptions, hasGpu } from "../run/devices.ts";
import { openMembers } from "./device_list.ts";
import { deviceName, deviceNames, type NumberedDevices } from "./device_name.ts";
import { parseGroups } from "./grammar.ts";
import {
  type Budgets,
  createPlacedDevice,
  cutByRules,
  type CutModel,
  type Fits,
  type Member,
  placedBytes,
  totalOf,
} from "./placed_device.ts";
import {
  aroundLayers,
  countLayers,
  groupRules,
  jsonRules,
  type Placement,
  type PlacementJson,
  type PlacementRule,
} from "./rules.ts";

/**
 * Options of load() about several devices.
 * @category Models
 */
export interface PlacementOptions {
  /**
   * Where parts of the model are computed: `0;1` shares the layers between devices, `0&1` heads and channels, `0&1;2&3`
   * both; `wasm=8;gpu` names devices and how many layers they have. Or a preset: `cpu`, `gpu`, `llamaf` (matrices on the
   * GPU, all else on the CPU), `auto` (the largest share on the GPU that fits). Or nodes and their devices as an object.
   */
  readonly placement?: string | PlacementJson | undefined;
  /** What the numbers of a placement mean, by name. Default: the machine's GPUs, or devices of the kind `device`. */
  readonly devices?: readonly string[] | undefined;
  /** The last so many layers on the GPU, the others on the CPU. */
  readonly gpuLayers?: number | undefined;
  /** Most bytes of weights, caches and activations on each device that is not the CPU. */
  readonly maxDeviceBytes?: number | undefined;
  /** Whether rows of the embedding are looked up on the CPU, so that a GPU need not hold its table. Default false. */
  readonly hostEmbeddings?: boolean | undefined;
  /** Of each device that is not the CPU: the share of its last layers whose keys and values lie on the CPU, in percent. */
  readonly hostKvPercent?: number | undefined;
  /**
   * Steps that may be under way at once where groups of layers are in processes of their own; sessions are spread over
   * them. Default: as many as groups, and one more, which hides what it takes to reach the next group, where each has 8
   * sessions. With 1 the cards of a machine are this process's, and one text alone reaches them soonest.
   */
  readonly lanes?: number | undefined;
  /** What peers must know that compute for this process. Default: TROODON_PEER_KEY of the environment. */
  readonly peerKey?: string | undefined;
}

/** What opens them. */
export interface PlacedLoad extends PlacementOptions, NumberedDevices, DeviceOptions {
  /** Most bytes on the CPU. */
  readonly maxHostBytes?: number | undefined;
  readonly precision?: PassContext["precision"] | undefined;
}

/** Rules that may hang on the graph, and the devices that they speak of. */
interface Wanted {
  readonly devices: readonly string[];
  readonly rulesOf: (graph: Graph, fits: Fits) => {
    readonly rules: readonly PlacementRule[];
    readonly note?: string;
  };
}

/**
 * Opens the devices of a placement as one.
 *
 * @throws {RangeError} If the placement is none, or names a device that is not there.
 * @throws {DeviceError} If a device cannot be opened.
 */
export async function openPlacement(options: PlacedLoad): Promise<Device> {
  const { devices, rulesOf } = withHost(await wantedOf(options), options);
  const members = await openMembers(devices, options);
  const budgets: Budgets = { device: options.maxDeviceBytes, host: options.maxHostBytes };
  return createPlacedDevice({
    ...{ members, budgets, rulesOf, ...lanesOf(options, members) },
    precision: options.precision ?? "fast",
  });
}

/** What a placement would be, without opening its devices. @throws As `openPlacement`. */
export async function resolvePlacement(
  plan: Plan,
  { sizes, ...options }: PlacedLoad & { readonly sizes: StateSizes },
): Promise<
  { readonly devices: readonly string[]; readonly cut: CutModel; readonly note: string | undefined }
> {
  const { devices, rulesOf } = withHost(await wantedOf(options), options);
  const fits: Fits = (rules) =>
    placedBytes(plan, cutByRules(plan, { rules }), { sizes, count: devices.length });
  const { rules, note } = rulesOf(plan.graph, fits);
  return { devices, note, cut: cutByRules(plan, { rules }) };
}

const isHost = (name: string) => /^(wasm|reference)\d*$/.test(name);

/** With what is on the CPU besides. */
function withHost({ devices, rulesOf }: Wanted, options: PlacedLoad): Wanted {
  if (!options.hostEmbeddings && !options.hostKvPercent) return { devices, rulesOf };
  const known = devices.findIndex(isHost);
  const names = known < 0 ? [...devices, "wasm"] : devices;
  const host = known < 0 ? devices.length : known;
  return {
    devices: names,
    rulesOf(graph, fits) {
      if (options.hostKvPercent && !graph.nodes.some(({ op }) => op === "kv_append")) {
        throw new RangeError(
          `Cannot use hostKvPercent ${options.hostKvPercent}: the model keeps no keys and values`,
        );
      }
      const { rules, note } = rulesOf(graph, fits);
      return {
        rules: [...rules, ...hostRules(rules, { options, names, host })],
        ...note !== undefined && { note },
      };
    },
  };
}

/** Steps at once where devices compute beside this thread: as many as groups follow each other, and one more. */
function lanesOf(
  { placement, lanes }: PlacedLoad,
  members: readonly Member[],
): { readonly lanes: number; readonly leastLanes?: number } {
  if (!members.some(({ peer }) => peer)) return { lanes: 1 };
  if (lanes !== undefined) return { lanes };
  const groups = typeof placement === "string" ? parseGroups(placement).length : 1;
  return { lanes: groups > 1 ? groups + 1 : 1, leastLanes: groups };
}

async function wantedOf(options: PlacedLoad): Promise<Wanted> {
  const { placement, gpuLayers } = options;
  if (gpuLayers !== undefined) return layersOnGpu(gpuLayers, options);
  if (typeof placement === "object") return fixed(jsonRules(placement));
  const name = placement ??
    (options.device === "gpu" ? "gpu" : options.device === "wasm" ? "cpu" : "auto");
  switch (name) {
    case "cpu":
      return fixed({ devices: ["wasm"], rules: [{ nodes: "*", devices: [0] }] });
    case "gpu":
      return layersOnGpu(undefined, options);
    case "llamaf":
      return { devices: CPU_AND_GPU, rulesOf: (graph) => ({ rules: llamaf(graph) }) };
    case "auto":
      return await automatic(options);
  }
  const nameOf = (written: string) => deviceName(written, options);
  return {
    devices: deviceNames(name, options),
    rulesOf: (graph) => groupRules(name, { layers: countLayers(graph), nameOf }),
  };
}

function fixed({ devices, rules }: Placement): Wanted {
  return { devices, rulesOf: () => ({ rules }) };
}

/** LlamaF's split by op (spec LF-10): products on the GPU, all else on the CPU. */
function llamaf({ nodes }: Graph): PlacementRule[] {
  const products = ["matmul", "expert_matmul"].filter((op) => nodes.some((node) => node.op === op));
  return [
    { nodes: "*", devices: [0] },
    ...products.map((op) => ({ nodes: `op:${op}`, devices: [1] })),
  ];
}

const CPU_AND_GPU = ["wasm", "gpu"];

/** The last `count` of so many layers on the GPU; with any of them what stands behind. */
function lastLayers(layers: number, count: number): PlacementRule[] {
  if (count === 0) return [{ nodes: "*", devices: [0] }];
  if (count === layers) return [{ nodes: "*", devices: [1] }];
  return [
    ...aroundLayers([0], [1]),
    { nodes: `layers.0-${layers - count - 1}`, devices: [0] },
    { nodes: `layers.${layers - count}-${layers - 1}`, devices: [1] },
  ];
}

function layersOnGpu(
  count: number | undefined,
  { maxDeviceBytes, maxHostBytes }: PlacedLoad,
): Wanted {
  return {
    devices: CPU_AND_GPU,
    rulesOf(graph, fits) {
      const layers = countLayers(graph), wanted = count ?? layers;
      if (wanted > layers) {
        throw new RangeError(`Cannot use gpuLayers ${wanted}: the model has ${layers} layers`);
      }
      const budgets = { device: maxDeviceBytes, host: maxHostBytes };
      if (!isWithin(fits(lastLayers(layers, wanted)), budgets)) {
        throw tooMany(wanted, { layers, fits, budgets });
      }
      return { rules: lastLayers(layers, wanted) };
    },
  };
}

function isWithin(
  [onHost, onDevice]: ReturnType<Fits>,
  { device = Infinity, host = Infinity }: Budgets,
): boolean {
  return totalOf(onHost!) <= host && totalOf(onDevice!) <= device;
}

/** Most layers on the GPU that its budget holds; −1 if not even none does, because of the host's. */
function mostLayers(layers: number, fits: Fits, budgets: Budgets): number {
  const isRoom = (count: number) =>
    totalOf(fits(lastLayers(layers, count))[1]!) <= (budgets.device ?? Infinity);
  let low = 0, high = layers;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (isRoom(middle)) low = middle;
    else high = middle - 1;
  }
  return isWithin(fits(lastLayers(layers, low)), budgets) ? low : -1;
}

function tooMany(
  wanted: number,
  { layers, fits, budgets }: {
    readonly layers: number;
    readonly fits: Fits;
    readonly budgets: Budgets;
  },
): ResourceError {
  const [onHost, onDevice] = fits(lastLayers(layers, wanted)).map(totalOf) as [number, number];
  const most = mostLayers(layers, fits, budgets);
  const limits = [
    ...budgets.device === undefined ? [] : [`maxDeviceBytes is ${budgets.device}`],
    ...budgets.host === undefined ? [] : [`maxHostBytes is ${budgets.host}`],
  ].join(" and ");
  return new ResourceError(
    `with ${wanted} of ${layers} layers on the GPU it takes ${onDevice} bytes there and ${onHost} on the CPU, and ${limits}`,
    {
      remedy: most >= 0
        ? `The nearest that fits is gpuLayers ${most}`
        : `Without any layer on the GPU it takes ${
          totalOf(fits(lastLayers(layers, 0))[0]!)
        } bytes on the CPU`,
    },
  );
}

async function automatic(options: PlacedLoad): Promise<Wanted> {
  const { maxDeviceBytes: device, maxHostBytes: host } = options;
  if (options.device !== "gpu" && !await hasGpu(options)) {
    return {
      devices: ["wasm"],
      rulesOf: () => ({
        rules: [{ nodes: "*", devices: [0] }],
        note: "placement auto: all on the CPU, because there is no GPU",
      }),
    };
  }
  const { measureGpuBytes } = await import("./gpu_memory.ts");
  const measured = await measureGpuBytes(options, device);
  const budgets = { device: Math.min(device ?? Infinity, measured), host };
  return {
    devices: CPU_AND_GPU,
    rulesOf(graph, fits) {
      const layers = countLayers(graph), most = mostLayers(layers, fits, budgets);
      if (most < 0) throw tooMany(layers, { layers, fits, budgets });
      const bytes = totalOf(fits(lastLayers(layers, most))[1]!);
      const reason = most === layers
        ? "all of it fits"
        : `${most + 1} would take ${totalOf(fits(lastLayers(layers, most + 1))[1]!)}`;
      return {
        rules: lastLayers(layers, most),
        note:
          `placement auto: ${most} of ${layers} layers on the GPU, ${bytes} of ${budgets.device} bytes; ${reason}`,
      };
    },
  };
}

/** Rules of what is on the CPU besides (spec IF-14). */
function hostRules(
  rules: readonly PlacementRule[],
  { options: { hostEmbeddings, hostKvPercent = 0 }, names, host }: {
    readonly options: PlacementOptions;
    readonly names: readonly string[];
    readonly host: number;
  },
): PlacementRule[] {
  const caches = rules.flatMap(({ nodes, devices }): PlacementRule[] => {
    const [, from, to] = /^layers\.(\d+)-(\d+)$/.exec(nodes) ?? [];
    if (from === undefined || devices.every((one) => isHost(names[one]!))) return [];
    const last = Number(to), count = Math.floor((last + 1 - Number(from)) * hostKvPercent / 100);
    if (count === 0) return [];
    return ["kv_append", "attention"].map((op) => ({
      nodes: `layers.${last + 1 - count}-${last} op:${op}`,
      devices: [host],
    }));
  });
  return [...hostEmbeddings ? [{ nodes: "op:embed", devices: [host] }] : [], ...caches];
}
