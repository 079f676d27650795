// What a device was given, counted where it is handed over: a submission may have several runs, and a run several parts.

import type { GpuPlan } from "../../engine/run/gpu/backend.ts";

/** Runs that a device was given since the last call, however many are in a pass. */
export function countRuns({ stepParts }: Pick<GpuPlan, "stepParts">): () => number {
  const { gpu: { device }, program } = stepParts, { queue } = device;
  const { submit } = queue, { encode } = program, { createCommandEncoder } = device;
  const runs = new Map<GPUComputePassEncoder | GPUCommandBuffer, number>();
  let count = 0;
  program.encode = (pass, range) => {
    const isLast = !range || range.first + range.count === program.activeCount;
    if (isLast) runs.set(pass, (runs.get(pass) ?? 0) + 1);
    encode(pass, range);
  };
  device.createCommandEncoder = (descriptor) => {
    const encoder = createCommandEncoder.call(device, descriptor);
    const { beginComputePass, finish } = encoder, passes: GPUComputePassEncoder[] = [];
    encoder.beginComputePass = (descriptor) => {
      const pass = beginComputePass.call(encoder, descriptor);
      passes.push(pass);
      return pass;
    };
    encoder.finish = () => {
      const commands = finish.call(encoder);
      runs.set(commands, passes.reduce((sum, pass) => sum + (runs.get(pass) ?? 0), 0));
      return commands;
    };
    return encoder;
  };
  queue.submit = (commands) => {
    for (const one of commands) count += runs.get(one) ?? 0;
    return submit.call(queue, commands);
  };
  return () => {
    const counted = count;
    count = 0;
    return counted;
  };
}
