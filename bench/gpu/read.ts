// A plain read of memory on the GPU: what a kernel that reads the same bytes cannot be faster than.

import type { Shader } from "../../gpu/kernel.ts";
import { wgsl } from "../../gpu/wgsl.ts";
import type { GpuTimer } from "./timer.ts";

/** Most vectors of an invocation; fewer where there would be too few invocations to fill a device. */
const VECTORS = 8;
const WORKGROUP = 256;
const FEW_INVOCATIONS = 1 << 17;

function readShader(vectors: number): Shader {
  return {
    name: "read",
    storage: { w: "array<vec4<u32>>", y: "array<u32>" },
    writes: ["y"],
    uniforms: { threads: "u32" },
    code: wgsl`
      @compute @workgroup_size(${WORKGROUP})
      fn main(
        @builtin(workgroup_id) id: vec3<u32>,
        @builtin(num_workgroups) count: vec3<u32>,
        @builtin(local_invocation_index) thread: u32,
      ) {
        let i = flat_workgroup(id, count) * ${WORKGROUP}u + thread;
        var sum = vec4<u32>();
        ${Array.from({ length: vectors }, (_, n) => `sum ^= w[i + ${n}u * params.threads];`)}
        if (sum.x == 0x12345678u && sum.y == sum.z) { y[0] = sum.w; }
      }
    `,
  };
}

/** Microseconds of `reads` reads of so many bytes each, one after the other in the timer's pool. */
export async function readTime(timer: GpuTimer, bytes: number, reads: number): Promise<number> {
  timer.reset();
  const vectors = bytes / 16 / VECTORS >= FEW_INVOCATIONS ? VECTORS : 1;
  const groups = Math.max(1, Math.floor(bytes / (16 * vectors * WORKGROUP)));
  const shader = readShader(vectors);
  const y = timer.room(16);
  return await timer.time(
    Array.from({ length: reads }, () => ({
      shader,
      storage: { w: timer.next(groups * WORKGROUP * vectors * 16), y },
      uniforms: { threads: groups * WORKGROUP },
      workgroups: [groups],
    })),
  );
}
