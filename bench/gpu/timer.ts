// Times dispatches on a GPU: by timestamps of the pass where the device has them, else by the clock of the
// CPU over a long pass. Buffers hold random bits under a mask, so that nothing is slow because it is a NaN.
//
// A GPU that is idle between timings falls back to a fifth of its clock: every timed pass comes right behind
// milliseconds of work in the same submission, and a chain of dependent additions tells the clock.

import { BUFFER_USAGE, MAP_READ } from "../../gpu/constants.ts";
import { createBufferScope, type Gpu, STORAGE_USAGE } from "../../gpu/gpu.ts";
import type { GpuSlice, Shader } from "../../gpu/kernel.ts";
import { createProgram, type ProgramDispatch } from "../../gpu/program.ts";
import { wgsl } from "../../gpu/wgsl.ts";

/** A dispatch whose sizes are known. */
export type BenchDispatch = Omit<ProgramDispatch<object>, "name">;

/** A device for measurements. */
export interface GpuTimer {
  readonly gpu: Gpu;
  /** A range of the pool; each call gives the next one, and starts again when the pool is used up. */
  next(bytes: number): GpuSlice;
  /** Memory for the table of a layout, 64 KiB. */
  readonly table: GpuSlice;
  /** A range of memory for inputs and results; given back by `reset`. */
  room(bytes: number): GpuSlice;
  /** Gives all rooms back. */
  reset(): void;
  /** Median microseconds of all these dispatches together. */
  time(dispatches: readonly BenchDispatch[]): Promise<number>;
  /** Milliseconds that the last call took to compile. */
  readonly compileMs: number;
  /** Nanoseconds of a dependent multiply-add during the last call: a measure of the clock. */
  readonly stepNs: number;
}

const fillShader: Shader = {
  name: "fill",
  storage: { pool: "array<u32>" },
  writes: ["pool"],
  uniforms: { count: "u32", seed: "u32" },
  code: wgsl`
    @compute @workgroup_size(256)
    fn main(
      @builtin(workgroup_id) id: vec3<u32>,
      @builtin(num_workgroups) count: vec3<u32>,
      @builtin(local_invocation_index) thread: u32,
    ) {
      let i = flat_workgroup(id, count) * 256u + thread;
      if (i >= params.count) { return; }
      var bits = (i ^ params.seed) * 747796405u + 2891336453u;
      bits = ((bits >> ((bits >> 28u) + 4u)) ^ bits) * 277803737u;
      // Positive halves below 1, floats below 1, integers below 2³⁰.
      pool[i] = ((bits >> 22u) ^ bits) & 0x3bff3bffu;
    }
  `,
};

/** Dependent multiply-adds in one turn of the chain's loop. */
const CHAIN = 16;
const chainShader: Shader = {
  name: "chain",
  storage: { y: "array<f32>" },
  writes: ["y"],
  uniforms: { turns: "u32" },
  code: wgsl`
    @compute @workgroup_size(128)
    fn main(
      @builtin(workgroup_id) id: vec3<u32>,
      @builtin(local_invocation_index) thread: u32,
    ) {
      var a = f32(thread) * 1e-3;
      let b = a * 0.5 + 0.25;
      for (var i = 0u; i < params.turns; i++) {
        ${Array.from({ length: CHAIN }, () => "a = fma(a, b, b);")}
      }
      if (a == 12345.0) { y[id.x] = a; }
    }
  `,
};

/** Opens the memory: a pool of weights that is larger than any cache, and room for the rest. */
export async function createGpuTimer(
  gpu: Gpu,
  { poolBytes, roomBytes, rounds, warmTurns }: {
    readonly poolBytes: number;
    readonly roomBytes: number;
    readonly rounds: number;
    /** Turns of the chain before a timing; 20,000 are about a millisecond. */
    readonly warmTurns: number;
  },
): Promise<GpuTimer> {
  const { device, capabilities } = gpu;
  const areas = [poolBytes, roomBytes].map((bytes, i) => ({
    buffer: gpu.createBuffer(["pool", "room"][i]!, bytes, STORAGE_USAGE),
    bytes,
    used: 0,
  }));
  const [pool, room] = areas as [typeof areas[0], typeof areas[0]];
  let compileMs = 0;
  let stepNs = 0;

  function take(area: typeof pool, bytes: number, access: GpuSlice["access"]): GpuSlice {
    const size = Math.ceil(bytes / 256) * 256;
    if (size > area.bytes) throw new RangeError(`Cannot take ${bytes} bytes of ${area.bytes}`);
    if (area.used + size > area.bytes) {
      if (area === room) throw new RangeError(`There is no room for ${bytes} bytes`);
      area.used = 0;
    }
    const offset = area.used;
    area.used += size;
    return { buffer: area.buffer, offset, bytes, access };
  }

  const stamps = capabilities.timestamp
    ? {
      query: device.createQuerySet({ type: "timestamp", count: 4 }),
      resolved: device.createBuffer({
        size: 256,
        usage: BUFFER_USAGE.QUERY_RESOLVE | BUFFER_USAGE.COPY_SRC,
      }),
      read: device.createBuffer({
        size: 256,
        usage: BUFFER_USAGE.MAP_READ | BUFFER_USAGE.COPY_DST,
      }),
    }
    : undefined;

  const spare = gpu.createBuffer("spare", 4096, STORAGE_USAGE);
  const chain = (turns: number, workgroups: number) =>
    createProgram<object>(createBufferScope(gpu), {
      dispatches: [{
        name: "chain",
        shader: chainShader,
        storage: { y: { buffer: spare, offset: 0, bytes: 4096, access: "read_write" } },
        uniforms: { turns },
        workgroups: [workgroups],
      }],
    });
  const PROBE_TURNS = 2000;
  const [warm, probe] = await Promise.all([chain(warmTurns, 1024), chain(PROBE_TURNS, 1)]);
  warm.bind({});
  probe.bind({});

  /** Microseconds of one pass. */
  async function passTime(encode: (pass: GPUComputePassEncoder) => void): Promise<number> {
    const encoder = device.createCommandEncoder();
    const passOf = (first?: number) =>
      encoder.beginComputePass(
        stamps && first !== undefined
          ? {
            timestampWrites: {
              querySet: stamps.query,
              beginningOfPassWriteIndex: first,
              endOfPassWriteIndex: first + 1,
            },
          }
          : undefined,
      );
    const run = (pass: GPUComputePassEncoder, body: (pass: GPUComputePassEncoder) => void) => {
      body(pass);
      pass.end();
    };
    if (!stamps) {
      run(passOf(), encode);
      const start = performance.now();
      device.queue.submit([encoder.finish()]);
      await device.queue.onSubmittedWorkDone();
      return 1000 * (performance.now() - start);
    }
    run(passOf(), warm.encode);
    run(passOf(0), encode);
    run(passOf(2), probe.encode);
    encoder.resolveQuerySet(stamps.query, 0, 4, stamps.resolved, 0);
    encoder.copyBufferToBuffer(stamps.resolved, 0, stamps.read, 0, 32);
    device.queue.submit([encoder.finish()]);
    await stamps.read.mapAsync(MAP_READ);
    const [begin, end, start, stop] = new BigUint64Array(
      stamps.read.getMappedRange(0, 32).slice(0),
    );
    stamps.read.unmap();
    stepNs = Number(stop! - start!) / (PROBE_TURNS * CHAIN);
    return Number(end! - begin!) / 1000;
  }

  async function time(dispatches: readonly BenchDispatch[]): Promise<number> {
    const start = performance.now();
    const scope = createBufferScope(gpu);
    const program = await createProgram<object>(
      scope,
      { dispatches: dispatches.map((dispatch) => ({ name: dispatch.shader.name, ...dispatch })) },
    );
    compileMs = performance.now() - start;
    program.bind({});
    await passTime(program.encode);
    const times: number[] = [];
    for (let i = 0; i < rounds; i++) times.push(await passTime(program.encode));
    scope.free();
    gpu.check();
    return times.toSorted((a, b) => a - b)[times.length >> 1]!;
  }

  const tableBytes = 1 << 16;
  const table: GpuSlice = {
    buffer: gpu.createBuffer("table", tableBytes, STORAGE_USAGE),
    offset: 0,
    bytes: tableBytes,
    access: "read",
  };
  const timer: GpuTimer = {
    gpu,
    table,
    next: (bytes) => take(pool, bytes, "read"),
    room: (bytes) => take(room, bytes, "read_write"),
    reset() {
      room.used = 0;
    },
    time,
    get compileMs() {
      return compileMs;
    },
    get stepNs() {
      return stepNs;
    },
  };
  for (const { buffer, bytes } of areas) {
    await time([{
      shader: fillShader,
      storage: { pool: { buffer, offset: 0, bytes, access: "read_write" } },
      uniforms: { count: bytes / 4, seed: 1 },
      workgroups: [Math.ceil(bytes / 1024)],
    }]);
  }
  return timer;
}
