// Steps for finding out where a number goes wrong: nodes run one by one, and what each of them made is read and looked
// at before the next one reuses its memory. The first NaN or infinity is an error that names step, node and
// kernel. Every node is a submission and a wait, so this is for looking, not for answering.
//
// Let through: -Infinity, which masks are made of; where it does harm, a NaN follows. Rows of caches and of q8 are not
// looked at; the node that reads them is.

import type { GpuMemory } from "../../../gpu/gpu.ts";
import { createProgram, type ProgramDispatch } from "../../../gpu/program.ts";
import { createReadback } from "../../../gpu/readback.ts";
import { inWords } from "../../../gpu/write.ts";
import { DeviceError } from "../../errors.ts";
import { compile, type CompiledDim, type DimEnv, product } from "../../graph/dim/mod.ts";
import type { Value } from "../../graph/graph.ts";
import type { GpuKernel } from "./kernel.ts";
import { type GpuOutput, outputBytes, outputCopies } from "./outputs.ts";
import type { Reach } from "./cache_reach.ts";
import type { GpuValues } from "./values.ts";
import { weightsOf } from "../plan_weights.ts";
import { type Plan, rootOf } from "../../plan/plan.ts";
import { sizeOf } from "../../plan/sizes.ts";

/** What checked steps are made of. */
export interface CheckedStepParts {
  readonly scope: GpuMemory;
  readonly plan: Plan;
  /** A kernel for each step of the plan. */
  readonly kernels: readonly GpuKernel[];
  readonly values: GpuValues;
  readonly outputs: readonly GpuOutput[];
  readonly reach: Reach;
  /** The dispatches of each step of the plan. */
  readonly dispatches: readonly (readonly ProgramDispatch<DimEnv>[])[];
}

/** Something to look at. */
interface Look {
  readonly value: Value;
  readonly count: CompiledDim;
  readonly elementBytes: number;
}

/**
 * Makes the function that runs a step, node by node.
 *
 * The function rejects with a DeviceError that names the node where a NaN or an infinity appears.
 *
 * @throws {GpuFailure} If a shader is refused or there is no memory.
 */
export async function createCheckedStep(
  { scope, plan, kernels, values, outputs, reach, dispatches }: CheckedStepParts,
): Promise<(bindings: DimEnv) => Promise<void>> {
  const { device } = scope;
  const nodes = await Promise.all(plan.steps.map(async (step, i) => ({
    node: step.node,
    kernel: kernels[i]!.name,
    looks: looksOf(plan, step.node.outputs),
    program: await createProgram(scope, { dispatches: dispatches[i]!, eager: [] }),
  })));
  const largest = nodes.flatMap(({ looks }) =>
    looks.map(({ value }) => inWords(sizeOf(value, plan.limits).bytes))
  );
  const readback = await createReadback(scope, Math.max(outputBytes(plan), ...largest, 4));
  const file = weightsOf(plan)[0]?.tensor?.source.name;
  let steps = 0;

  /** Runs commands that end with a copy, and takes what they copied. */
  async function submit(
    encoder: GPUCommandEncoder,
    bytes: number,
    use: (range: ArrayBuffer, start: number) => void,
  ): Promise<void> {
    readback.stamp();
    device.queue.submit([encoder.finish()]);
    await readback.read(bytes, use);
  }

  async function look({ value, count, elementBytes }: Look, bindings: DimEnv) {
    const { buffer, offset } = values.slice(value);
    const elements = count(bindings), bytes = inWords(elements * elementBytes);
    let found: { readonly index: number; readonly what: string } | undefined;
    if (bytes === 0) return found;
    const encoder = device.createCommandEncoder();
    readback.copy(encoder, [{ buffer, offset, bytes }]);
    await submit(encoder, bytes, (range, start) => {
      const bits = elementBytes === 4
        ? new Uint32Array(range, start, elements)
        : new Uint16Array(range, start, elements);
      found = findBad(bits, elementBytes === 4 ? 0x7f800000 : 0x7c00);
    });
    return found;
  }

  return async (given) => {
    steps++;
    const bindings = reach.ofInputs(given);
    values.writeInputs(bindings);
    for (const [i, { node, kernel, looks, program }] of nodes.entries()) {
      program.bind(bindings);
      const encoder = device.createCommandEncoder();
      const pass = encoder.beginComputePass();
      program.encode(pass);
      pass.end();
      device.queue.submit([encoder.finish()]);
      for (const one of looks) {
        const bad = await look(one, bindings);
        if (!bad) continue;
        const { index, what } = bad;
        throw new DeviceError(
          `step ${steps}, node ${i + 1} of ${nodes.length} (${kernel}): ` +
            `value ${index} of ${one.value.name} is ${what}`,
          { file, place: node.name, remedy: "Try precision exact, kvFormat F32 or device wasm" },
        );
      }
    }
    const { sources, bytes, take } = outputCopies(outputs, bindings);
    if (bytes === 0) return;
    const encoder = device.createCommandEncoder();
    readback.copy(encoder, sources);
    await submit(encoder, bytes, take);
  };
}

function looksOf(plan: Plan, outputs: readonly Value[]): Look[] {
  const states = new Set(plan.graph.states.map(({ id }) => id));
  return outputs
    .filter((value) =>
      (value.dtype === "f32" || value.dtype === "f16") && !states.has(rootOf(plan, value).id)
    )
    .map((value) => ({
      value,
      count: compile(product(value.shape)),
      elementBytes: value.dtype === "f32" ? 4 : 2,
    }));
}

/** The first NaN or +Infinity; `infinity` is the bit pattern of the latter. */
function findBad(
  bits: Uint32Array | Uint16Array,
  infinity: number,
): { readonly index: number; readonly what: string } | undefined {
  const sign = bits instanceof Uint32Array ? 0x7fffffff : 0x7fff;
  const index = bits.findIndex((word) => word === infinity || (word & sign) > infinity);
  if (index < 0) return undefined;
  return { index, what: bits[index] === infinity ? "Infinity" : "NaN" };
}
