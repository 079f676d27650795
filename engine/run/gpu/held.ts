// Values that stay on the GPU: each is a buffer, copied to and from the arena by the commands of a run.

import { BUFFER_USAGE } from "../../../gpu/constants.ts";
import { bytesOfAll, readOnce } from "../../../gpu/readback.ts";
import { inWords } from "../../../gpu/write.ts";
import type { Gpu } from "../../../gpu/gpu.ts";
import type { Plan } from "../../plan/plan.ts";
import { elementCount } from "../../ops/host_tensor.ts";
import { evaluate } from "../../graph/dim/mod.ts";
import type { HeldTransfers, HeldValue, Holder } from "../held.ts";
import { checkedInputs } from "../index_checks.ts";
import { outputCopies } from "./outputs.ts";
import type { StepParts } from "./steps.ts";
import { outputElementBytes } from "./values.ts";

interface GpuHeld extends HeldValue {
  readonly buffer: GPUBuffer;
}

/** Makes what holds values of a plan's device; `run` has what it does explained and checked by the caller. */
export function createHolder(plan: Plan, parts: StepParts): Holder {
  const { gpu } = parts;
  const checked = checkedInputs(plan);
  return {
    hold: (bytes) => hold(gpu, bytes),
    takes: (input, { owner }) => owner === gpu && !checked.has(input),
    keeps: () => true,
    run: (bindings, transfers) => runHeld(plan, parts, { bindings, transfers }),
  };
}

async function hold(gpu: Gpu, bytes: number): Promise<GpuHeld> {
  const { COPY_DST, COPY_SRC } = BUFFER_USAGE;
  const buffer = await gpu.allocate(() => gpu.createBuffer("held", bytes, COPY_DST | COPY_SRC));
  let isAlive = true;
  return {
    owner: gpu,
    buffer,
    async read(count) {
      if (!isAlive) throw new TypeError("Cannot read a value that was disposed");
      return (await readOnce(gpu, [{ buffer, offset: 0, bytes: inWords(count) }])).subarray(
        0,
        count,
      );
    },
    dispose() {
      if (isAlive) gpu.destroyBuffer(buffer);
      isAlive = false;
    },
  };
}

function runHeld(
  { graph }: Plan,
  { gpu: { device }, program, values, outputs, readback, reach }: StepParts,
  { bindings: given, transfers: { inputs, outputs: kept, unread } }: {
    readonly bindings: Parameters<Holder["run"]>[0];
    readonly transfers: HeldTransfers;
  },
): void | Promise<void> {
  const bindings = reach.ofInputs(given);
  program.bind(bindings);
  values.writeInputs(bindings);
  const encoder = device.createCommandEncoder();
  for (const value of graph.inputs) {
    const source = inputs.get(value.name) as GpuHeld | undefined;
    if (!source) continue;
    const count = elementCount(value.shape.map((dim) => evaluate(dim, bindings)));
    const { buffer, offset } = values.slice(value);
    const bytes = inWords(count * outputElementBytes(value));
    encoder.copyBufferToBuffer(source.buffer, 0, buffer, offset, bytes);
  }
  const pass = encoder.beginComputePass();
  program.encode(pass);
  pass.end();
  for (const { name, source: { buffer, offset }, count, elementBytes } of outputs) {
    const bytes = inWords(count(bindings) * elementBytes);
    for (const target of kept.get(name) ?? []) {
      encoder.copyBufferToBuffer(buffer, offset, (target as GpuHeld).buffer, 0, bytes);
    }
  }
  const { sources, take } = outputCopies(outputs.filter(({ name }) => !unread.has(name)), bindings);
  const bytes = bytesOfAll(sources);
  if (bytes > 0) {
    readback.copy(encoder, sources);
    readback.stamp();
  }
  device.queue.submit([encoder.finish()]);
  if (bytes > 0) return readback.read(bytes, take);
}
