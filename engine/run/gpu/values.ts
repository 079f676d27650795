// Where values lie on the GPU. One buffer, the arena, holds the graph's inputs, the activations as they
// were planned, and scratch memory; it is bound in ranges, always as read_write, because a buffer cannot
// be bound for reading and for writing at once. A second buffer holds what never changes and is no matrix:
// constants and one-dimensional weights, as float32.

import { OFFSET_ALIGNMENT } from "../../../gpu/constants.ts";
import { type GpuMemory, STORAGE_USAGE } from "../../../gpu/gpu.ts";
import type { GpuSlice } from "../../../gpu/kernel.ts";
import { inWords, writeBytes } from "../../../gpu/write.ts";
import { ResourceError, UnsupportedError } from "../../errors.ts";
import { compile, type DimEnv, product } from "../../graph/dim/mod.ts";
import type { HostData, Value } from "../../graph/graph.ts";
import { elementCount, hostArray, hostElementBytes } from "../../ops/host_tensor.ts";
import { type Plan, rootOf } from "../../plan/plan.ts";
import { maximumOf, sizeOf } from "../../plan/sizes.ts";
import { isMatrix, weightKey, weightsOf } from "../plan_weights.ts";
import type { TableLayout } from "./page_tables.ts";
import type { GpuStates } from "./states.ts";
import { isQ8 } from "../../ops/q8_rows.ts";

/** Values without elements are bound too; behind the last value there is room for that. */
const LEAST_BYTES = OFFSET_ALIGNMENT;

/** Ranges of the arena and of the buffer of constants. */
export interface GpuValueLayout {
  /** Offsets in the arena, by id of a root. */
  readonly arena: ReadonlyMap<number, { readonly offset: number; readonly bytes: number }>;
  /** Offsets in the constants, by id of a constant or of a one-dimensional weight. */
  readonly constants: ReadonlyMap<number, { readonly offset: number; readonly bytes: number }>;
  /** Bytes at the start of the arena of inputs that are written as far as a step has them, one by one, */
  readonly largeBytes: number;
  /** where those end that are written before every step, and those with the tables of pages. */
  readonly stepBytes: number;
  readonly inputBytes: number;
  /** Where the tables begin. */
  readonly tableOffsets: readonly number[];
  /** Bytes of inputs and activations; scratch memory follows. */
  readonly arenaBytes: number;
  /** Bytes of the constants; those of kernels follow. */
  readonly constantBytes: number;
}

/**
 * Lays out the values of a plan whose offsets are multiples of 256.
 *
 * @param repacked Ids of constants that get no place, because kernels rearrange them while loading.
 * @param packed Ids of weights that are packed though they are no matrices.
 */
export function layOutValues(
  plan: Plan,
  { repacked, packed, tables }: {
    readonly repacked: ReadonlySet<number>;
    readonly packed: ReadonlySet<number>;
    readonly tables: Pick<TableLayout, "inputs" | "entries">;
  },
): GpuValueLayout {
  const { graph, limits, placements, arenaBytes } = plan;
  const arena = new Map<number, { offset: number; bytes: number }>();
  const constants = new Map<number, { offset: number; bytes: number }>();
  const tableOffsets: number[] = [];
  let at = 0, largeBytes = 0, stepBytes = 0;
  const hasTables = ({ id }: Value) => tables.inputs.has(id);
  const orderOf = (value: Value) => hasTables(value) ? 2 : isLarge(value, limits) ? 0 : 1;
  for (const value of graph.inputs.toSorted((a, b) => orderOf(a) - orderOf(b))) {
    const { bytes } = sizeOf(value, limits);
    const tableBytes = hasTables(value) ? 4 * tables.entries : 0;
    arena.set(value.id, { offset: at, bytes: bytes + tableBytes });
    stepBytes = at + bytes;
    if (hasTables(value)) tableOffsets.push(stepBytes);
    at += aligned(bytes + tableBytes);
    if (orderOf(value) === 0) largeBytes = at;
  }
  const inputBytes = at;
  for (const { value, offset, bytes } of placements.values()) {
    arena.set(value.id, { offset: inputBytes + offset, bytes });
  }
  let constantBytes = 0;
  const place = (value: Value, bytes: number) => {
    constants.set(value.id, { offset: constantBytes, bytes });
    constantBytes += aligned(bytes);
  };
  for (const value of constantsOf(plan)) {
    if (!repacked.has(value.id)) place(value, value.data!.byteLength);
  }
  const vectors = new Map<string, Value>();
  for (const value of weightsOf(plan)) {
    if (isMatrix(value) || packed.has(value.id)) continue;
    const first = vectors.get(weightKey(value));
    if (first) constants.set(value.id, constants.get(first.id)!);
    else {
      vectors.set(weightKey(value), value);
      place(value, 4 * elementCount(value.shape as readonly number[]));
    }
  }
  return {
    arena,
    constants,
    ...{
      largeBytes,
      stepBytes: Math.max(largeBytes, inWords(stepBytes)),
      inputBytes,
      tableOffsets,
    },
    arenaBytes: aligned(inputBytes + arenaBytes),
    constantBytes,
  };
}

/** Bytes for which a write of its own costs less than sending them in vain. */
const LARGE_BYTES = 1 << 16;

/** Whether an input may have so many bytes, and fewer. */
function isLarge(value: Value, limits: Plan["limits"]): boolean {
  return sizeOf(value, limits).bytes >= LARGE_BYTES &&
    value.shape.some((dim) => typeof dim !== "number");
}

/** The constants that nodes read, each once. */
function constantsOf({ graph }: Plan): Value[] {
  const inputs = graph.nodes.flatMap((node) => node.inputs);
  return [...new Set(inputs.filter((value) => value?.data))] as Value[];
}

/** Rounds up to what bindings begin at. */
export function aligned(bytes: number): number {
  return Math.ceil(bytes / OFFSET_ALIGNMENT) * OFFSET_ALIGNMENT;
}

/** Values in memory. */
export interface GpuValues {
  /** The range of an activation, input, constant or vector, views included. */
  slice(value: Value): GpuSlice;
  /** Range of the arena behind the activations. */
  scratch(bytes: number): GpuSlice;
  /** Host copy of an input, at its maximum size. */
  input(value: Value): HostData;
  /** Sends all inputs of a run to the GPU, and the tables of pages if they have changed. */
  writeInputs(bindings: DimEnv): void;
  /** Sends the tables alone if they have changed. */
  writeTables(): void;
  readonly constantBuffer: GPUBuffer;
}

/**
 * Makes the two buffers.
 *
 * @param states Whose tables are sent with the inputs.
 * @param scratchBytes Most that a kernel needs behind the activations.
 * @param extraConstantBytes Room for constants of kernels behind those of the graph.
 */
export function createGpuValues(
  gpu: GpuMemory,
  { plan, layout, states }: {
    readonly plan: Plan;
    readonly layout: GpuValueLayout;
    readonly states: Pick<GpuStates, "tables" | "written">;
  },
  { scratchBytes, extraConstantBytes }: {
    readonly scratchBytes: number;
    readonly extraConstantBytes: number;
  },
): GpuValues {
  const { arena, constants, inputBytes, arenaBytes, constantBytes } = layout;
  const { maxBindingBytes } = gpu.capabilities;
  const arenaBuffer = gpu.createBuffer(
    "arena",
    arenaBytes + scratchBytes + LEAST_BYTES,
    STORAGE_USAGE,
  );
  const constantBuffer = gpu.createBuffer(
    "constants",
    constantBytes + extraConstantBytes + LEAST_BYTES,
    STORAGE_USAGE,
  );
  for (const value of constantsOf(plan)) {
    if (!constants.has(value.id)) continue;
    const { buffer, byteOffset, byteLength } = value.data!;
    const bytes = new Uint8Array(Math.ceil(byteLength / 4) * 4);
    bytes.set(new Uint8Array(buffer, byteOffset, byteLength));
    const { offset } = constants.get(value.id)!;
    writeBytes(gpu.device, { target: { buffer: constantBuffer, offset }, data: bytes });
  }
  const hostInputs = new ArrayBuffer(inputBytes);
  const { largeBytes, stepBytes } = layout;
  const stepInputs = new Uint8Array(hostInputs, largeBytes, stepBytes - largeBytes);
  const allInputs = new Uint8Array(hostInputs, largeBytes);
  const views = new Map(plan.graph.inputs.map((value) => {
    const count = maximumOf(product(value.shape), plan.limits);
    return [
      value.id,
      hostArray(value.dtype, { count, buffer: hostInputs, offset: arena.get(value.id)!.offset }),
    ];
  }));

  const large = plan.graph.inputs.flatMap(({ id, dtype, shape }) => {
    const { offset } = arena.get(id)!;
    if (offset >= largeBytes) return [];
    const count = compile(product(shape));
    return [{ offset, bytesOf: (env: DimEnv) => hostElementBytes(dtype) * count(env) }];
  });
  const tables = layout.tableOffsets.map((offset) => {
    const words = states.tables.reduce((sum, { length }) => sum + length, 0);
    const host = new Int32Array(hostInputs, offset, words);
    const copy = () => {
      let at = 0;
      for (const table of states.tables) {
        host.set(table, at);
        at += table.length;
      }
      return host;
    };
    return { offset, copy };
  });

  function slice(value: Value): GpuSlice {
    const root = rootOf(plan, value);
    const inArena = arena.get(root.id);
    const found = inArena ?? constants.get(root.id);
    if (!found) throw new TypeError(`${value.name} has no place in memory`);
    if (found.bytes > maxBindingBytes) {
      throw new ResourceError(
        `takes ${found.bytes} bytes, and the GPU's kernels can address ${maxBindingBytes} at once`,
        { place: value.name, remedy: "Lower the batch, or use device wasm" },
      );
    }
    return inArena
      ? { buffer: arenaBuffer, ...found, access: "read_write" }
      : { buffer: constantBuffer, ...found, access: "read" };
  }

  return {
    slice,
    scratch(bytes) {
      if (bytes > scratchBytes) {
        throw new RangeError(`Cannot give ${bytes} bytes of scratch memory`);
      }
      return { buffer: arenaBuffer, offset: arenaBytes, bytes, access: "read_write" };
    },
    input: (value) => views.get(value.id)!,
    writeInputs(bindings) {
      for (const { offset, bytesOf } of large) {
        const data = new Uint8Array(hostInputs, offset, inWords(bytesOf(bindings)));
        writeBytes(gpu.device, { target: { buffer: arenaBuffer, offset }, data });
      }
      const target = { buffer: arenaBuffer, offset: largeBytes };
      states.written((haveChanged) => {
        if (haveChanged) { for (const table of tables) table.copy(); }
        writeBytes(gpu.device, { target, data: haveChanged ? allInputs : stepInputs });
      });
    },
    writeTables() {
      states.written((haveChanged) => {
        for (const { offset, copy } of haveChanged ? tables : []) {
          writeBytes(gpu.device, { target: { buffer: arenaBuffer, offset }, data: copy() });
        }
      });
    },
    constantBuffer,
  };
}

/** Bytes of one element of an output, which must be readable as a plain array. */
export function outputElementBytes({ name, dtype }: Value): number {
  if (!isQ8(dtype)) return hostElementBytes(dtype);
  throw new UnsupportedError("cannot show q8 values", { place: name });
}
