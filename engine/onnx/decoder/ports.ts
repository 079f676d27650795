// Inputs and outputs of one file of a language model, by role. Names come from port_names.ts, everything else
// from the declared types: an axis that is neither a number nor the number of sequences is the one that
// grows. What is not understood is an error that names it, because an input fed with a guess gives
// plausible nonsense.

import { UnsupportedError } from "../../errors.ts";
import type { OnnxDim, OnnxGraph, OnnxModel, OnnxValueInfo } from "../file/model.ts";
import type { DataType } from "../../graph/graph.ts";
import { elementCount } from "../../ops/host_tensor.ts";
import {
  BATCH_NAMES,
  BEST_NAMES,
  BUFFERED_OPS,
  CACHE_NAMES,
  type CacheName,
  INPUT_NAMES,
  LOOK_NAME,
  MEMORY_NAMES,
  type PortRole,
  RESULT_NAMES,
} from "./port_names.ts";

/** An input with its declared type. */
export interface Port {
  readonly name: string;
  readonly dtype: DataType;
  readonly dims: readonly OnnxDim[];
}

/** A cache of keys or values. */
export interface CachePort extends Port {
  /** Name of the output that holds old and new rows. */
  readonly present: string;
  /** The axis of positions. */
  readonly axis: number;
}

/** Keys or values of a source; every step takes them whole. */
export interface MemoryPort extends Port {
  /** Name of the output of a first step that makes them. */
  readonly present: string;
}

/** The best tokens of a row, where a file gives out no logits. */
export interface BestPort {
  /** Absent: only the best id is given. */
  readonly values?: string;
  readonly ids: string;
}

/** How the past lies in the caches that a graph is fed. */
export type PastRule =
  /** As long as it is. */
  | "exact"
  /** Rows behind the past are masked. */
  | "masked"
  /** The graph finds its end by itself. */
  | "buffered";

/** Everything that a file takes and gives. */
export interface DecoderPorts extends Readonly<Partial<Record<PortRole, Port>>> {
  readonly file: string;
  /** In the order of the inputs. */
  readonly caches: readonly CachePort[];
  /** Of a decoder behind an encoder. */
  readonly memory: readonly MemoryPort[];
  /** Rows that every source has. */
  readonly sourceRows?: number;
  /** Output with logits or hidden states. */
  readonly result?: string;
  readonly best?: BestPort;
  /** Outputs with what each layer looks at in the source; empty: there are none. */
  readonly looks: readonly string[];
  /** Input whose size is the number of keys (known_inputs.ts). */
  readonly keys?: Port;
  readonly past: PastRule;
}

const FLOATS = new Set(["f32", "f16", "bf16", "f64"]);

/**
 * Finds out what a file takes and gives.
 *
 * @throws {UnsupportedError} If an input is not understood; the message names it and what is.
 */
export function portsOf({ file, graph }: OnnxModel, sourceRows?: number): DecoderPorts {
  const roles: Partial<Record<PortRole, Port>> = {};
  const caches: CachePort[] = [], memory: MemoryPort[] = [];
  const outputs = new Set(graph.outputs.map(({ name }) => name));
  for (const info of graph.inputs) {
    if (graph.initializers.has(info.name)) continue;
    const port = portOf(info, file);
    const present = presentOf(port.name, outputs);
    const made = nameOf(port.name, MEMORY_NAMES);
    if (present !== undefined) caches.push(cacheOf(port, present, file));
    else if (made !== undefined) memory.push({ ...port, present: made });
    else {
      const role = roleOf(port);
      if (!role) throw unknownInput(port, file);
      if (roles[role]) throw unknown(`has two inputs for ${role}: ${roles[role].name}`, port, file);
      roles[role] = port;
    }
  }
  checkShapes(roles, file);
  const result = RESULT_NAMES.find((name) => outputs.has(name));
  const best = BEST_NAMES.find(({ values, ids }) =>
    outputs.has(ids) && (values === undefined || outputs.has(values))
  );
  const buffered = graph.nodes.some(({ opType }) => BUFFERED_OPS.has(opType));
  const past = buffered ? "buffered" : roles.mask ? "masked" : "exact";
  const source = { memory, ...sourceRows !== undefined && { sourceRows } };
  const looks = looksOf(outputs);
  return {
    file,
    ...roles,
    ...source,
    caches,
    looks,
    ...result && { result },
    ...best && { best },
    past,
  };
}

/** Outputs by layer, from the first one on. */
function looksOf(outputs: ReadonlySet<string>): string[] {
  const looks: string[] = [];
  const next = () => LOOK_NAME.replace("#", `${looks.length}`);
  while (outputs.has(next())) looks.push(next());
  return looks;
}

function portOf({ name, type }: OnnxValueInfo, file: string): Port {
  if (type?.kind === "tensor" && type.shape && type.dtype !== "string") {
    return { name, dtype: type.dtype, dims: type.shape };
  }
  throw new UnsupportedError(`input "${name}" has no declared shape`, {
    file,
    remedy: "Export the model with shapes, or run it with loadGraph()",
  });
}

function roleOf({ name, dtype }: Port): PortRole | undefined {
  return INPUT_NAMES.find((entry) =>
    entry.name === name && (entry.floats === undefined || entry.floats === FLOATS.has(dtype))
  )?.role;
}

/** Whether a graph takes and gives a cache of keys or values, as decoders do. */
export function hasCache({ inputs, outputs }: OnnxGraph): boolean {
  const names = new Set(outputs.map(({ name }) => name));
  return inputs.some(({ name }) => presentOf(name, names) !== undefined);
}

/** Name of the output that goes with the input of a cache. */
function presentOf(input: string, outputs: ReadonlySet<string>): string | undefined {
  return nameOf(input, CACHE_NAMES, (present) => outputs.has(present));
}

/** The name that goes with an input's, by a table of names with a layer in them. */
function nameOf(
  input: string,
  table: readonly CacheName[],
  isThere: (present: string) => boolean = () => true,
): string | undefined {
  for (const { past, present } of table) {
    const [head, tail] = past.split("#") as [string, string];
    if (!input.startsWith(head) || !input.endsWith(tail)) continue;
    const layer = input.slice(head.length, input.length - tail.length);
    const name = present.replace("#", layer);
    if (/^\d+$/.test(layer) && isThere(name)) return name;
  }
  return undefined;
}

function cacheOf(port: Port, present: string, file: string): CachePort {
  const open = growingAxes(port);
  // The first axis of two is the number of sequences, under whatever name.
  const axis = open.length === 2 && open[0] === 0 ? open[1] : open.length === 1 ? open[0] : -1;
  if (axis === undefined || axis < 0) {
    throw unknown("has a cache without exactly one axis of positions:", port, file);
  }
  return { ...port, present, axis };
}

/** Axes that are neither numbers nor the number of sequences. */
export function growingAxes({ dims }: Port): number[] {
  return [...dims.keys()].filter((axis) => {
    const dim = dims[axis];
    return typeof dim !== "number" && !(dim !== undefined && BATCH_NAMES.has(dim));
  });
}

/** Whether a graph was exported for one token a step. */
export function takesOneToken({ dims }: Port): boolean {
  return dims.length === 2 && dims[1] === 1;
}

/** How a cache lies in memory: blocks of rows. */
export function blocksOf(
  { dims, axis }: CachePort,
): { readonly outer: number; readonly inner: number } {
  const sizes = dims.map((dim) => Number(dim) || 1);
  return { outer: elementCount(sizes.slice(0, axis)), inner: elementCount(sizes.slice(axis + 1)) };
}

/** How many candidates a file gives for a row; undefined: all logits. */
export function candidatesOf({ result, best }: DecoderPorts, k: number): number | undefined {
  return result === undefined && best ? (best.values === undefined ? 1 : k) : undefined;
}

const RANKS: Readonly<Record<PortRole, readonly number[]>> = {
  tokens: [2],
  hidden: [3],
  mask: [2, 4],
  positions: [1, 2],
  cachePositions: [1],
  lastKeys: [1, 2],
  totalLength: [0, 1],
  useCache: [0, 1],
  source: [3],
};

function checkShapes(roles: Partial<Record<PortRole, Port>>, file: string): void {
  for (const [role, port] of Object.entries(roles) as [PortRole, Port][]) {
    const { dims, dtype } = port;
    if (!RANKS[role].includes(dims.length)) {
      throw unknown(`takes ${role} of rank ${RANKS[role].join(" or ")}, not`, port, file);
    }
    const isInteger = dtype === "i64" || dtype === "i32";
    const fits = role === "mask"
      ? dims.length === 4 ? FLOATS.has(dtype) || dtype === "bool" : true
      : role === "hidden" || role === "source"
      ? FLOATS.has(dtype)
      : role === "useCache"
      ? dtype === "bool"
      : isInteger;
    if (!fits) throw unknown(`takes no ${role} of type`, port, file);
    if ((role === "tokens" || role === "hidden") && growingAxes(port).length === 0) {
      if (takesOneToken(port)) continue;
      throw unknown("was exported for a fixed number of tokens:", port, file);
    }
  }
}

function unknown(what: string, { name, dtype, dims }: Port, file: string): UnsupportedError {
  const shape = dims.map((dim) => dim ?? "?").join(", ");
  return new UnsupportedError(`${what} "${name}" (${dtype}[${shape}])`, {
    file,
    remedy: "Run it with loadGraph()",
  });
}

function unknownInput(port: Port, file: string): UnsupportedError {
  const known = [
    ...new Set(INPUT_NAMES.map(({ name }) => name)),
    ...new Set(CACHE_NAMES.map(({ past }) => past.replace("#", "N"))),
  ].join(", ");
  const shape = port.dims.map((dim) => dim ?? "?").join(", ");
  return new UnsupportedError(
    `cannot be a session: nothing is known of input "${port.name}" (${port.dtype}[${shape}]); known are ${known}`,
    { file, remedy: "Run it with loadGraph()" },
  );
}
