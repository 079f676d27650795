// Cuts a plan that is too large for one WASM memory, whose addresses have 32 bits, into parts for a memory
// each. Every machine has all threads: those of the others sleep meanwhile.
//
// Why not one memory of 64-bit addresses: in Deno 2.9.6 a loop of vector loads out of the cache ran up to a fifth
// slower on one, every kernel would be there twice, AssemblyScript reaches it by an
// undocumented way only, and what is gained is a copy of a row between memories, microseconds a token.

import { mebibytes, ResourceError } from "../../errors.ts";
import { type Plan, rootOf } from "../../plan/plan.ts";
import { roundedWeights } from "../../plan/rounded_weights.ts";
import { stateBytes, type StateSizes } from "../pages/groups.ts";
import { type Holdings, partitionByBytes } from "../parts/by_bytes.ts";
import { cutPlan, type PlannedPart } from "../parts/cut.ts";
import { partSizes } from "../parts/part_states.ts";
import { weightKey, weightsOf } from "../plan_weights.ts";
import {
  estimate,
  reserveOf,
  scratchBytes,
  totalOf,
  type WasmEstimate,
  weightBytes,
} from "./estimate.ts";

/**
 * The plan, if one memory holds it, or its parts in order of execution, each with the number of its memory.
 *
 * @param memoryBytes Most bytes of a memory.
 * @throws {ResourceError} If a part that cannot be cut is larger than a memory; the message has the numbers.
 */
export function memoryParts(
  plan: Plan,
  { sizes, memoryBytes, threads }: {
    readonly sizes: StateSizes;
    readonly memoryBytes: number;
    /** Default: as many as a machine has. */
    readonly threads: number | undefined;
  },
): readonly PlannedPart<number>[] {
  const whole = [{ place: 0, plan }];
  const spare = reserveOf(memoryBytes) + scratchBytes(plan, threads);
  const room = memoryBytes - spare;
  if (totalOf(estimate(plan, sizes)) <= room) return whole;
  const partition = partitionByBytes(plan, {
    room: room - plan.arenaBytes,
    holdings: holdingsOf(plan, sizes),
  });
  const places = [...new Set(partition.values())];
  const parts = places.length === 1 ? whole : cutPlan(plan, { places, partition });
  for (const part of parts) {
    const uses = estimate(
      part.plan,
      partSizes(plan.graph, { part: part.plan.graph, sizes }),
    );
    if (totalOf(uses) > room) throw tooLarge(part.plan, { uses, memoryBytes, spare });
  }
  return parts;
}

/** Weights and states that a node uses. */
function holdingsOf(plan: Plan, sizes: StateSizes): Holdings {
  const rounded = roundedWeights(plan.graph.nodes), states = stateBytes(plan.graph, sizes);
  return ({ inputs }) =>
    inputs.flatMap((value): (readonly [string, number])[] => {
      const root = value && rootOf(plan, value);
      if (root?.role === "state") return [[`state ${root.id}`, states.get(root.id)!]];
      if (root?.role !== "weight") return [];
      const isRounded = rounded.has(root.id);
      return [[weightKey(root, isRounded), weightBytes(root, isRounded)]];
    });
}

function tooLarge(
  plan: Plan,
  { uses, memoryBytes, spare }: {
    readonly uses: WasmEstimate;
    readonly memoryBytes: number;
    readonly spare: number;
  },
): ResourceError {
  const { weights, states, activations } = uses;
  return new ResourceError(
    `a part of it that cannot be cut needs ${mebibytes(totalOf(uses) + spare)} of ` +
      `WASM memory (weights ${mebibytes(weights)}, activations ${mebibytes(activations)}, ` +
      `keys and values ${mebibytes(states)}), and a memory has ` +
      mebibytes(memoryBytes),
    {
      file: weightsOf(plan)[0]?.tensor?.source.name,
      place: plan.graph.nodes[0]!.name,
      remedy: "Take a smaller model, or lower contextLength, cacheTokens or batch",
    },
  );
}
