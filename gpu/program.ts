// A list of dispatches made ready: pipelines, bind groups and one block of uniforms are made once, and a
// step only walks over arrays (spec TL-3, TL-5). Sizes that depend on the step are functions of its
// bindings; they are asked again when the bindings change, which in decoding they do not. What only some sizes need, like
// the variants for many rows, is made when a step first has such sizes.
//
// Encoding a dispatch costs the host 4 to 6 µs, most of it in what the device checks and tracks of each one: how many
// bindings a group has, or whether one group stands with dynamic offsets in the place of many changes little, so a group a
// dispatch is as good as any. Only fewer dispatches help, and with Dawn fewer buffers, which it looks at one by one when
// commands are handed over (bench/gpu/encoding.ts).

import { BUFFER_USAGE, OFFSET_ALIGNMENT } from "./constants.ts";
import type { GpuMemory } from "./gpu.ts";
import { type GpuSlice, type GpuTexture, MAX_WORKGROUPS, type Shader } from "./kernel.ts";

/** A number that is known now, or a function of a step's bindings. */
export type Count<Env> = number | ((env: Env) => number);

/** One dispatch; see GpuDispatch in engine/ops/op.ts. */
export interface ProgramDispatch<Env> {
  /** Name of the kernel, in profiles. */
  readonly name: string;
  readonly shader: Shader;
  readonly storage: Readonly<Record<string, GpuSlice>>;
  readonly textures?: Readonly<Record<string, GpuTexture>> | undefined;
  readonly uniforms: Readonly<Record<string, Count<Env>>>;
  readonly workgroups: readonly Count<Env>[];
}

/** Some of the dispatches that have something to do. */
export interface DispatchRange {
  readonly first: number;
  readonly count: number;
}

/** A program on its device. */
export interface Program<Env> {
  /** Sets the sizes of the next steps. */
  bind(env: Env): void;
  /** Appends all dispatches that have something to do, or so many of them from one on. */
  encode(pass: GPUComputePassEncoder, range?: DispatchRange): void;
  /**
   * The same, with a pass of its own for each dispatch, which `passOf` opens; for profiles. The number counts what is
   * encoded, `index` is the dispatch's place in the list.
   */
  encodeApart(passOf: (number: number, index: number) => GPUComputePassEncoder): void;
  /** What it was made of. */
  readonly dispatches: readonly ProgramDispatch<Env>[];
  /** Dispatches that have something to do with the sizes at hand. */
  readonly activeCount: number;
  /** Frees the uniforms. */
  destroy(): void;
}

interface Ready {
  pipeline: GPUComputePipeline | undefined;
  group: GPUBindGroup | undefined;
}

/** A dispatch as it is encoded. */
interface Active {
  readonly index: number;
  readonly pipeline: GPUComputePipeline;
  readonly group: GPUBindGroup;
  readonly counts: readonly [number, number, number];
}

/** What follows from the sizes of a step; a prompt's piece and a token take turns, and take a millisecond to find out. */
interface Bound<Env> {
  readonly env: Env;
  readonly uniforms: ArrayBuffer;
  readonly active: readonly Active[];
}

/** Sizes that are remembered. */
const MOST_KNOWN = 8;

interface Uniforms<Env> {
  readonly offset: number;
  readonly members: readonly { readonly type: string; readonly value: Count<Env> }[];
}

/**
 * Compiles shaders. Bind groups are made when a step first needs them: models have hundreds of each size of step.
 *
 * @param eager Bindings whose shaders are compiled now; others when they are first needed. Default: all.
 * @throws {GpuFailure} If a shader is refused or there is no memory.
 */
export async function createProgram<Env>(
  gpu: GpuMemory,
  { dispatches, eager }: {
    readonly dispatches: readonly ProgramDispatch<Env>[];
    readonly eager?: readonly Env[] | undefined;
  },
): Promise<Program<Env>> {
  const { device } = gpu;
  const block = planUniforms(dispatches);
  const isEager = ({ workgroups }: ProgramDispatch<Env>) =>
    !eager || eager.some((env) => workgroups.every((count) => valueOf(count, env) > 0));
  const pipelines = await Promise.all(
    dispatches.map((dispatch) =>
      isEager(dispatch) ? gpu.pipelines.get(dispatch.shader, dispatch.storage) : undefined
    ),
  );
  const usage = BUFFER_USAGE.UNIFORM | BUFFER_USAGE.COPY_DST;
  const buffer = await gpu.allocate(() => gpu.createBuffer("uniforms", block.bytes, usage));

  function groupOf(
    { name, shader, storage, textures }: ProgramDispatch<Env>,
    index: number,
  ): GPUBindGroup {
    const entries: GPUBindGroupEntry[] = Object.keys(shader.storage).map((variable, binding) => {
      const { buffer, offset, bytes } = storage[variable]!;
      const size = Math.max(16, Math.ceil(bytes / 16) * 16);
      return { binding, resource: { buffer, offset, size } };
    });
    for (const variable of Object.keys(shader.textures ?? {})) {
      const texture = textures?.[variable];
      if (!texture) throw new TypeError(`Cannot run ${name}: no texture was given for ${variable}`);
      entries.push({ binding: entries.length, resource: texture.view });
    }
    const uniforms = block.of[index];
    if (uniforms) {
      const size = Math.ceil(uniforms.members.length / 4) * 16;
      entries.push({
        binding: entries.length,
        resource: { buffer, offset: uniforms.offset, size },
      });
    }
    const layout = gpu.pipelines.layout(shader, storage);
    return device.createBindGroup({ label: name, layout, entries });
  }

  const blocks = [...new Set(block.of)].filter((uniforms) => uniforms !== undefined);
  const list = dispatches.map((_, index): Ready => ({
    pipeline: pipelines[index]?.pipeline,
    group: undefined,
  }));
  let active: readonly Active[] = [];
  // The sizes at hand are the last ones.
  const known: Bound<Env>[] = [];

  function bind(env: Env): void {
    const at = known.findLastIndex((one) => isSameEnv(one.env, env));
    if (at >= 0 && at === known.length - 1) return;
    const [bound = boundTo(env)] = at >= 0 ? known.splice(at, 1) : [];
    device.queue.writeBuffer(buffer, 0, bound.uniforms);
    if (known.length === MOST_KNOWN) known.shift();
    known.push(bound);
    active = bound.active;
  }

  function boundTo(env: Env): Bound<Env> {
    const uniforms = new ArrayBuffer(block.bytes);
    for (const own of blocks) writeUniforms(uniforms, own, env);
    const active = dispatches.flatMap((dispatch, index): Active[] => {
      const { name, workgroups } = dispatch;
      const counts = spread(name, workgroups.map((count) => valueOf(count, env)));
      if (counts[0] === 0) return [];
      const ready = list[index]!;
      ready.pipeline ??= gpu.pipelines.getNow(dispatch.shader, dispatch.storage).pipeline;
      ready.group ??= groupOf(dispatch, index);
      return [{ index, pipeline: ready.pipeline, group: ready.group, counts }];
    });
    return { env: { ...env }, uniforms, active };
  }

  function encode(pass: GPUComputePassEncoder, range?: DispatchRange): void {
    let last: GPUComputePipeline | undefined;
    const first = range?.first ?? 0, end = first + (range?.count ?? active.length);
    for (let i = first; i < end; i++) {
      const { pipeline, group, counts } = active[i]!;
      if (pipeline !== last) pass.setPipeline(pipeline);
      last = pipeline;
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(counts[0], counts[1], counts[2]);
    }
  }

  function encodeApart(passOf: (number: number, index: number) => GPUComputePassEncoder): void {
    for (const [number, { index, pipeline, group, counts }] of active.entries()) {
      const pass = passOf(number, index);
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, group);
      pass.dispatchWorkgroups(...counts);
      pass.end();
    }
  }

  return {
    bind,
    encode,
    encodeApart,
    dispatches,
    get activeCount() {
      return active.length;
    },
    destroy: () => gpu.destroyBuffer(buffer),
  };
}

/** A place in one block for every distinct set of uniforms. */
function planUniforms<Env>(dispatches: readonly ProgramDispatch<Env>[]): {
  readonly bytes: number;
  readonly of: readonly (Uniforms<Env> | undefined)[];
} {
  const known = new Map<string, Uniforms<Env>>();
  const ids = new Map<Count<Env> | string, number>();
  const idOf = (value: Count<Env>) => {
    const key = Object.is(value, -0) ? "-0" : value; // a map takes 0 and -0 for one key
    if (!ids.has(key)) ids.set(key, ids.size);
    return ids.get(key)!;
  };
  const of = dispatches.map(({ name, shader, uniforms }) => {
    const members = Object.entries(shader.uniforms).map(([member, type]) => {
      const value = uniforms[member];
      if (value === undefined) throw new TypeError(`Cannot run ${name}: no value for ${member}`);
      return { type, value };
    });
    for (const member of Object.keys(uniforms)) {
      if (!Object.hasOwn(shader.uniforms, member)) {
        throw new TypeError(`Cannot run ${name}: its shader ${shader.name} has no ${member}`);
      }
    }
    if (members.length === 0) return undefined;
    const key = members.map(({ type, value }) => `${type} ${idOf(value)}`).join();
    if (!known.has(key)) known.set(key, { offset: known.size * OFFSET_ALIGNMENT, members });
    return known.get(key)!;
  });
  return { bytes: Math.max(1, known.size) * OFFSET_ALIGNMENT, of };
}

function valueOf<Env>(count: Count<Env>, env: Env): number {
  return typeof count === "number" ? count : count(env);
}

function writeUniforms<Env>(host: ArrayBuffer, { offset, members }: Uniforms<Env>, env: Env): void {
  const view = new DataView(host, offset);
  members.forEach(({ type, value }, i) => {
    const number = valueOf(value, env);
    if (type === "f32") view.setFloat32(4 * i, number, true);
    else if (type === "i32") view.setInt32(4 * i, number, true);
    else view.setUint32(4 * i, number, true);
  });
}

/**
 * Counts along x, y, z; zeros when nothing is to do. One large count is spread over x and y.
 *
 * @throws {RangeError} If several counts are given and one is over the limit.
 */
export function spread(name: string, counts: readonly number[]): [number, number, number] {
  if (counts.some((count) => count === 0)) return [0, 0, 0];
  const [x, y = 1, z = 1] = counts as [number, number?, number?];
  if (counts.length === 1 && x > MAX_WORKGROUPS) {
    const rows = Math.ceil(x / MAX_WORKGROUPS);
    if (rows <= MAX_WORKGROUPS) return [Math.ceil(x / rows), rows, 1];
  }
  if (Math.max(x, y, z) <= MAX_WORKGROUPS) return [x, y, z];
  throw new RangeError(
    `Cannot run ${name} on ${counts.join("×")} workgroups: a side has at most ${MAX_WORKGROUPS}`,
  );
}

/** Whether two environments give every name the same value. */
export function isSameEnv<Env>(a: Env, b: Env): boolean {
  for (const name in a) if (a[name] !== b[name]) return false;
  for (const name in b) if (!Object.hasOwn(a as object, name)) return false;
  return true;
}
