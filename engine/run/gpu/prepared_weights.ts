// What dispatches make of packed weights while loading, each once: a lowering asks for memory and says what fills it. Nodes
// that read one weight share it.

import { type GpuMemory, STORAGE_USAGE } from "../../../gpu/gpu.ts";
import type { GpuSlice } from "../../../gpu/kernel.ts";
import { createProgram, type ProgramDispatch } from "../../../gpu/program.ts";
import type { DimEnv } from "../../graph/dim/mod.ts";

type Dispatch = ProgramDispatch<DimEnv>;

/** Memory of prepared weights, made at first sight. */
export interface PreparedWeights {
  /** Of all of it. */
  readonly bytes: number;
  /** Memory of a name; `fill` gives the dispatch that writes it, and counts as it was given last. */
  prepared(name: string, bytes: number, fill: (to: GpuSlice) => Dispatch): GpuSlice;
  /** Compiles what fills the memory; the result fills it, to be called when the weights are there. */
  compile(gpu: GpuMemory): Promise<() => void>;
}

/** @param gpu Absent: bytes are counted and nothing is made. */
export function createPreparedWeights(gpu: GpuMemory | undefined): PreparedWeights {
  const made = new Map<string, { readonly slice: GpuSlice; fill: Dispatch }>();
  let all = 0;
  return {
    get bytes() {
      return all;
    },
    prepared(name, bytes, fill) {
      const known = made.get(name);
      if (known) {
        known.fill = fill(known.slice);
        return known.slice;
      }
      const buffer = gpu?.createBuffer(name, bytes, STORAGE_USAGE) as GPUBuffer;
      const slice: GpuSlice = { buffer, offset: 0, bytes, access: "either" };
      all += bytes;
      made.set(name, { slice, fill: fill(slice) });
      return slice;
    },
    async compile(gpu) {
      if (made.size === 0) return () => {};
      const dispatches = [...made.values()].map(({ fill }) => fill);
      const program = await createProgram<DimEnv>(gpu, { dispatches });
      return () => {
        program.bind({});
        const encoder = gpu.device.createCommandEncoder();
        const pass = encoder.beginComputePass();
        program.encode(pass);
        pass.end();
        gpu.device.queue.submit([encoder.finish()]);
        program.destroy();
      };
    },
  };
}
