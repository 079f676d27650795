// What of a plan's weights comes and goes on the GPU: matrices of one kind and one number format, which lie alike.

import type { Plan } from "../../plan/plan.ts";
import type { Backend } from "../backend.ts";
import { distinctWeights, isMatrix } from "../plan_weights.ts";
import {
  planStream,
  streamedBytes,
  type StreamOptions,
  type StreamPlan,
} from "../streaming/slots.ts";
import { gpuMatrixBytes } from "./weights.ts";

/** Plans it. */
export function planGpuStream(plan: Plan, wish: true | Partial<StreamOptions>): StreamPlan {
  const { depth = 2, ...options } = typeof wish === "object" ? wish : {};
  return planStream(plan, {
    ...{ ...options, depth, bytesOf: gpuMatrixBytes },
    loadsAside: ({ shape }) => shape.length === 2,
    formOf: ({ tensor }) => tensor!.format,
  });
}

/** The bytes of a plan's matrices where that is done. */
export function gpuStreamBytes(
  plan: Plan,
  wish: true | Partial<StreamOptions>,
): ReturnType<NonNullable<Backend["streams"]>> {
  const stream = planGpuStream(plan, wish);
  const moving = new Set(stream.kinds.flatMap(({ weights }) => weights));
  const still = [...distinctWeights(plan).values()]
    .filter((value) => isMatrix(value) && !moving.has(value))
    .reduce((sum, value) => sum + gpuMatrixBytes(value), 0);
  return { weights: still + stream.slotBytes, streamed: streamedBytes(plan, stream) };
}
