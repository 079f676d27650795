// What goes wrong on a GPU as the engine's errors: with the model, the adapter, and what to do.

import { failureOf, GpuFailure, messageOf } from "../../../gpu/failure.ts";
import type { Gpu } from "../../../gpu/gpu.ts";
import { sharedGpu, type SharedGpuOptions } from "../../../gpu/shared.ts";
import { DeviceError, mebibytes, ResourceError, TroodonError } from "../../errors.ts";
import { gpuMatrixBytes } from "./weights.ts";
import type { Plan } from "../../plan/plan.ts";
import { sizeOf } from "../../plan/sizes.ts";
import { distinctWeights, isMatrix, weightsOf } from "../plan_weights.ts";

/** The device that a process shares. @throws {DeviceError} If there is none, with what else there is. */
export async function openShared(options: SharedGpuOptions): Promise<Gpu> {
  try {
    return await sharedGpu(options);
  } catch (error) {
    if (!(error instanceof GpuFailure)) throw error;
    throw new DeviceError(`device gpu is not to be had: ${error.message}`, {
      remedy: "Use device wasm, or auto, which takes it where there is no GPU",
      cause: error,
    });
  }
}

/** The failure that an error of WebGPU's own calls stands for: those of a lost device throw whatever they like. */
function failureBehind(error: unknown, gpu: Gpu): GpuFailure | undefined {
  if (error instanceof GpuFailure) return error;
  if (error instanceof TroodonError) return undefined;
  if (gpu.isLost) return new GpuFailure("lost", messageOf(error), { cause: error });
  const isOfDevice = error instanceof DOMException && error.name !== "AbortError";
  return isOfDevice ? failureOf(error) : undefined;
}

/** The engine's error for a failure of the device. */
export function explained(
  thrown: unknown,
  { plan, gpu }: { readonly plan: Plan; readonly gpu: Gpu },
): unknown {
  const error = failureBehind(thrown, gpu);
  if (!error) return thrown;
  const { adapter } = gpu.capabilities;
  const file = weightsOf(plan)[0]?.tensor?.source.name;
  const { name } = plan.graph;
  const details = { file, place: name === file ? undefined : name, cause: error };
  if (error.kind === "memory") {
    const weights = [...distinctWeights(plan).values()]
      .filter((value) => isMatrix(value) || value.shape.length > 3)
      .reduce((sum, value) => sum + gpuMatrixBytes(value), 0);
    const states = plan.graph.states.reduce((sum, state) => sum + sizeOf(state, {}).bytes, 0);
    return new ResourceError(
      `needs ${mebibytes(weights)} for weights, ${
        mebibytes(plan.arenaBytes)
      } for activations and ` +
        `${mebibytes(states)} for each session, and ` +
        `${adapter} has no memory for it: ${error.message}`,
      {
        ...details,
        remedy: "Take a smaller model, lower contextLength or batch, or use device wasm",
      },
    );
  }
  return new DeviceError(`${adapter}: ${error.message}`, {
    ...details,
    ...error.kind === "lost" && { remedy: "Load the model again" },
  });
}

/** All results. Where one fails, the others have ended before that is told: what they make is freed with the rest. */
export async function together<T extends readonly unknown[]>(
  all: readonly [...{ [K in keyof T]: T[K] | Promise<T[K]> }],
): Promise<T> {
  try {
    return await Promise.all(all) as unknown as T;
  } catch (error) {
    await Promise.allSettled(all);
    throw error;
  }
}
