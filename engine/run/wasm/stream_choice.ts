// Whether the weights of a plan are streamed: because that is asked for, or because memory is limited, or not free, and
// they do not fit. Everything is known from sizes, before a byte is read.

import { ADDRESS_SPACE } from "../../../wasm/allocator.ts";
import { ResourceError } from "../../errors.ts";
import type { Plan } from "../../plan/plan.ts";
import { roundedWeights } from "../../plan/rounded_weights.ts";
import type { StateSizes } from "../pages/groups.ts";
import { weightsOf } from "../plan_weights.ts";
import { planStream, type StreamOptions, type StreamPlan } from "../streaming/slots.ts";
import {
  estimate,
  reserveOf,
  scratchBytes,
  totalOf,
  type WasmEstimate,
  weightBytes,
} from "./estimate.ts";
import { loadsAside } from "./weight_stream.ts";

/** What is asked for. */
export interface StreamWish {
  /** True or options: stream; false: never. Default: where `maxHostBytes` or `freeBytes` leave no other way. */
  readonly stream?: boolean | Partial<StreamOptions> | undefined;
  /** Most bytes that a model may take. */
  readonly maxHostBytes?: number | undefined;
  /** Bytes of memory that are free; what fits in no way is refused elsewhere. */
  readonly freeBytes?: number | undefined;
  /** Most bytes of one memory. */
  readonly memoryBytes?: number | undefined;
  /** Default: as many as a machine has. */
  readonly threads?: number | undefined;
}

/** A choice to stream. */
export interface StreamChoice {
  readonly options: StreamOptions;
  readonly plan: StreamPlan;
  /** Bytes in memory. */
  readonly uses: WasmEstimate;
}

/**
 * How a plan is streamed; undefined if it is held whole.
 *
 * @throws {ResourceError} If it does not fit even so; the message says what would.
 */
export function chooseStream(
  plan: Plan,
  sizes: StateSizes,
  { stream, maxHostBytes, freeBytes = Infinity, memoryBytes = ADDRESS_SPACE, threads }: StreamWish,
): StreamChoice | undefined {
  const whole = estimate(plan, sizes);
  const reserve = reserveOf(memoryBytes) + scratchBytes(plan, threads);
  const isTooLarge = maxHostBytes !== undefined && totalOf(whole) + reserve > maxHostBytes;
  const isCrowded = maxHostBytes === undefined && stream === undefined &&
    totalOf(whole) > freeBytes;
  if (!stream && !isTooLarge && !isCrowded) return undefined;
  if (stream === false) throw tooLarge(plan, { uses: whole, reserve, maxHostBytes });
  const wish = typeof stream === "object" ? stream : {};
  const most = maxHostBytes ?? (isCrowded ? freeBytes : undefined);
  const room = Math.min(most ?? memoryBytes, memoryBytes) - reserve - whole.states -
    whole.activations;
  const depths = wish.depth === undefined ? [2, 1] as const : [wish.depth];
  let choice: StreamChoice | undefined;
  for (const depth of depths) {
    const options = { ...wish, depth };
    choice = choiceOf(plan, {
      options,
      whole,
      room: most === undefined ? undefined : room,
    });
    if (choice && choice.uses.weights <= room) return choice;
  }
  if (isCrowded || !choice && !isTooLarge) return undefined;
  throw tooLarge(plan, {
    uses: choice?.uses ?? whole,
    reserve,
    maxHostBytes: Math.min(maxHostBytes ?? memoryBytes, memoryBytes),
  });
}

/** Bytes that are left for weights laid out ahead, beside a plan that is held whole. */
export function roomAhead(
  plan: Plan,
  sizes: StateSizes,
  { maxHostBytes = Infinity, freeBytes = Infinity, memoryBytes = ADDRESS_SPACE, threads }:
    StreamWish,
): number {
  if (maxHostBytes === Infinity && freeBytes === Infinity) return Infinity;
  const own = totalOf(estimate(plan, sizes));
  const reserve = reserveOf(memoryBytes) + scratchBytes(plan, threads);
  return Math.min(maxHostBytes - own - reserve, freeBytes - own);
}

/** The wish to hold as few weights as can be, in a memory of any size. */
export function leastStream({ stream, threads }: StreamWish): StreamWish {
  const { depth = 1, ...wish } = typeof stream === "object" ? stream : {};
  return { stream: { ...wish, depth }, memoryBytes: Infinity, threads };
}

function choiceOf(
  plan: Plan,
  { options, whole, room }: {
    readonly options: StreamOptions;
    readonly whole: WasmEstimate;
    readonly room: number | undefined;
  },
): StreamChoice | undefined {
  const rounded = roundedWeights(plan.graph.nodes);
  const streamed = planStream(plan, {
    ...options,
    room,
    bytesOf: (value) => weightBytes(value, rounded.has(value.id)),
    loadsAside: (value) => loadsAside(value, rounded.has(value.id)),
  });
  if (streamed.kinds.length + streamed.experts.length === 0) return undefined;
  const moving = [
    ...streamed.kinds.flatMap(({ weights }) => weights),
    ...streamed.experts.flatMap(({ stacks }) => stacks),
  ].reduce((sum, value) => sum + weightBytes(value, rounded.has(value.id)), 0);
  const weights = whole.weights - moving + streamed.slotBytes + streamed.cacheBytes;
  return { options, plan: streamed, uses: { ...whole, weights } };
}

function tooLarge(
  plan: Plan,
  { uses, reserve, maxHostBytes = 0 }: {
    readonly uses: WasmEstimate;
    readonly reserve: number;
    readonly maxHostBytes: number | undefined;
  },
): ResourceError {
  const needed = totalOf(uses) + reserve;
  return new ResourceError(
    `needs ${megabytes(needed)} of memory at least (${
      megabytes(reserve)
    } of it beside the plan), ` +
      `and may take ${megabytes(maxHostBytes)}`,
    {
      file: weightsOf(plan)[0]?.tensor?.source.name,
      remedy: `Load with maxHostBytes ${needed}, or a smaller contextLength or cacheTokens`,
    },
  );
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
