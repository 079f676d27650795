// The memory of states on the GPU: a buffer each, in which its pages lie one behind the other. A state of q8_0 has two
// planes of rows, codes and scales (gpu/kernels/cache_blocks.ts); others have one. What is copied, cleared or written takes
// its turn among the steps of the queue.

import { type GpuMemory, STORAGE_USAGE } from "../../../gpu/gpu.ts";
import type { GpuSlice } from "../../../gpu/kernel.ts";
import { blockBytes, fromPortable, portable } from "../../../gpu/kernels/cache_blocks.ts";
import { bytesOfAll, type CopySource, readOnce } from "../../../gpu/readback.ts";
import { inWords, writeBytes } from "../../../gpu/write.ts";
import { ResourceError } from "../../errors.ts";
import type { Graph, Value } from "../../graph/graph.ts";
import {
  NO_PAGE,
  PAGE_ROWS,
  pageBytes,
  type PageGroup,
  pageGroups,
  poolPages,
  type StateSizes,
} from "../pages/groups.ts";
import { joinBytes } from "../../byte_source.ts";

/** Rows that lie one behind the other; without a page they are nowhere. */
export interface Run {
  readonly page: number;
  readonly rows: number;
}

/** Where rows of a slot are, by the number of a group. */
export type RunsOf = (group: number) => readonly Run[];

/** The states' memory. */
export interface StateStores {
  readonly bytes: number;
  /** All pages of a state. */
  slice(state: Value): GpuSlice;
  clear(runsOf: RunsOf): void;
  /** Rows of all states in the graph's order; those without a page are zero. */
  read(runsOf: RunsOf): Promise<Uint8Array>;
  /** Puts back the rows of each state. */
  write(runsOf: RunsOf, pieces: readonly Uint8Array[]): void;
  /** Copies rows of a page of all states of a group over those of another one. */
  copy(group: number, from: Run, to: number): void;
}

/** Rows of all pages one behind the other. */
interface Plane {
  readonly buffer: GPUBuffer;
  readonly offset: number;
  readonly rowBytes: number;
}

interface Store {
  readonly state: Value;
  readonly group: number;
  readonly planes: readonly Plane[];
  readonly bytes: number;
}

/**
 * Reserves it; fresh buffers are zero.
 *
 * @throws {ResourceError} If a state is over the limit of a binding.
 */
export function createStateStores(
  gpu: GpuMemory,
  { graph, sizes }: { readonly graph: Graph; readonly sizes: StateSizes },
): StateStores {
  const { device } = gpu;
  const groups = pageGroups(graph), counts = poolPages(groups, sizes);
  const stores = graph.states.map((state) => storeOf(gpu, { state, groups, counts, sizes }));
  const planes = stores.flatMap(({ group, planes }) => planes.map((plane) => ({ group, plane })));
  // A copy within a buffer goes by way of another.
  const largest = Math.max(0, ...planes.map(({ plane }) => plane.rowBytes));
  const between = sizes.pages && gpu.createBuffer("page", largest * PAGE_ROWS, STORAGE_USAGE);

  function submit(encode: (encoder: GPUCommandEncoder) => void): void {
    const encoder = device.createCommandEncoder();
    encode(encoder);
    device.queue.submit([encoder.finish()]);
  }

  async function read(runsOf: RunsOf): Promise<Uint8Array> {
    const places = planes.map(({ group, plane }) =>
      runsOf(group).map((run) => rangeOf(plane, run))
    );
    const there = places.flat().filter(({ isThere }) => isThere)
      .map((range) => ({ ...range, bytes: inWords(range.bytes) }));
    const bytes = there.length > 0 ? await readOnce(gpu, there) : new Uint8Array(0);
    let at = 0;
    const pieces = places.map((ranges) => {
      const piece = new Uint8Array(bytesOfAll(ranges));
      let to = 0;
      for (const { isThere, bytes: size } of ranges) {
        if (isThere) piece.set(bytes.subarray(at, at + size), to);
        if (isThere) at += inWords(size);
        to += size;
      }
      return piece;
    });
    return joinBytes(stores.map(({ planes }) => {
      const [rows, scales] = pieces.splice(0, planes.length) as [Uint8Array, Uint8Array?];
      return scales ? portable(rows, new Float32Array(scales.buffer)) : rows;
    }));
  }

  function write(runsOf: RunsOf, pieces: readonly Uint8Array[]): void {
    const parts = pieces.flatMap((piece, i) => {
      if (stores[i]!.state.dtype !== "q8_0") return [piece];
      const { codes, scales } = fromPortable(piece);
      return [codes, new Uint8Array(scales.buffer)];
    });
    planes.forEach(({ group, plane }, i) => {
      let from = 0;
      for (const run of runsOf(group)) {
        const { buffer, offset, bytes, isThere } = rangeOf(plane, run);
        const data = new Uint8Array(inWords(bytes));
        data.set(parts[i]!.subarray(from, from += bytes));
        if (isThere) writeBytes(device, { target: { buffer, offset }, data });
      }
    });
  }

  return {
    bytes: bytesOfAll(stores),
    slice(state) {
      const { planes: [first], bytes } = stores.find((store) => store.state.id === state.id)!;
      return { buffer: first!.buffer, offset: 0, bytes: Math.max(4, bytes), access: "either" };
    },
    clear: (runsOf) =>
      submit((encoder) => {
        for (const { group, plane } of planes) {
          for (const run of runsOf(group)) {
            const { buffer, offset, bytes, isThere } = rangeOf(plane, run);
            if (isThere) encoder.clearBuffer(buffer, offset, inWords(bytes));
          }
        }
      }),
    read,
    write,
    copy: (own, from, to) =>
      submit((encoder) => {
        for (const { group, plane } of planes) {
          const { buffer, offset, bytes } = rangeOf(plane, from), whole = inWords(bytes);
          if (group !== own || bytes === 0) continue;
          encoder.copyBufferToBuffer(buffer, offset, between!, 0, whole);
          const target = rangeOf(plane, { page: to, rows: 0 }).offset;
          encoder.copyBufferToBuffer(between!, 0, buffer, target, whole);
        }
      }),
  };
}

/** Reserves a state. @throws {ResourceError} If it is over the limit of a binding. */
function storeOf(
  gpu: GpuMemory,
  { state, groups, counts, sizes }: {
    readonly state: Value;
    readonly groups: readonly PageGroup[];
    readonly counts: readonly number[];
    readonly sizes: StateSizes;
  },
): Store {
  const group = groups.findIndex(({ states }) => states.some(({ id }) => id === state.id));
  const rows = counts[group]! * PAGE_ROWS, saved = pageBytes(state) / PAGE_ROWS;
  const { codes, scales } = state.dtype === "q8_0"
    ? blockBytes(saved)
    : { codes: saved, scales: 0 };
  const bytes = rows * (codes + scales), { maxBindingBytes } = gpu.capabilities;
  if (bytes > maxBindingBytes) {
    const what = sizes.pages ? `a pool of ${rows} tokens takes` : `${sizes.slots} sessions take`;
    throw new ResourceError(
      `${what} ${bytes} bytes, and the GPU's kernels can address ${maxBindingBytes} at once`,
      {
        place: state.name,
        remedy: `Lower ${sizes.pages ? "cacheTokens" : "contextLength or sessions"}`,
      },
    );
  }
  const buffer = gpu.createBuffer(state.name, bytes, STORAGE_USAGE);
  const planes = [{ buffer, offset: 0, rowBytes: codes }];
  if (scales > 0) planes.push({ buffer, offset: rows * codes, rowBytes: scales });
  return { state, group, planes, bytes };
}

/** Bytes of a plane; where there is no page, how many there would be. */
function rangeOf(
  { buffer, offset, rowBytes }: Plane,
  { page, rows }: Run,
): CopySource & { readonly isThere: boolean } {
  const bytes = rows * rowBytes, isThere = page !== NO_PAGE && bytes > 0;
  return { buffer, offset: offset + page * PAGE_ROWS * rowBytes, bytes, isThere };
}
