// A device on which the check of readbacks at start fails: no range before its mapping is settled, as in browsers. How
// many submissions were made while a mapping was awaited is counted.

import type { Gpu } from "../../gpu/gpu.ts";

/** Such a device. */
export interface StrictGpu extends Gpu {
  /** Submissions while a mapping was on its way. */
  readonly overlapping: number;
}

/** The same device, strict with buffers that are made through it from now on. */
export function withStrictMapping(gpu: Gpu): StrictGpu {
  let waiting = 0;
  let overlapping = 0;
  const { queue } = gpu.device;
  const { submit } = queue;
  queue.submit = (commands) => {
    if (waiting > 0) overlapping++;
    return submit.call(queue, commands);
  };
  function createBuffer(label: string, bytes: number, usage: number): GPUBuffer {
    const buffer = gpu.createBuffer(label, bytes, usage);
    const { mapAsync, getMappedRange } = buffer;
    let isReady = false;
    buffer.mapAsync = async (...args) => {
      isReady = false;
      waiting++;
      try {
        await mapAsync.apply(buffer, args);
        isReady = true;
      } finally {
        waiting--;
      }
    };
    buffer.getMappedRange = (...args) => {
      if (!isReady) throw new DOMException("not mapped", "OperationError");
      return getMappedRange.apply(buffer, args);
    };
    return buffer;
  }
  return Object.create(gpu, {
    createBuffer: { value: createBuffer, enumerable: true },
    overlapping: { get: () => overlapping },
  });
}
