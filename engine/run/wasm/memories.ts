// Cuts a plan that is too large for one WASM memory, whose addresses have 32 bits, into parts for a memory
// each. Nodes stay in order; a memory takes as many as it holds, and the cut is made where little crosses: in a
// decoder between two layers, where one row of numbers a token does. Weights, caches and activations lie with
// the nodes that use them; a weight that two parts read (an embedding that is also the head) is in both.
//
// Why not one memory of 64-bit addresses: in Deno 2.9.6 a loop of vector loads out of the cache ran up to a fifth
// slower on one, every kernel would be there twice, AssemblyScript reaches it by an
// undocumented way only, and what is gained is a copy of a row between memories, microseconds a token.

import { ResourceError } from "../../errors.ts";
import type { Node, Value } from "../../graph/graph.ts";
import { weightsOf } from "../host_weights.ts";
import { cut, planPart } from "../part_graphs.ts";
import { type Plan, rootOf } from "../../plan/plan.ts";
import { roundedWeights } from "../../plan/rounded_weights.ts";
import { sizeOf } from "../../plan/sizes.ts";
import { estimate, reserveOf, type WasmEstimate, weightBytes, weightKey } from "./estimate.ts";

/** A memory is filled to this part at least before it is cut where little crosses. */
const FULL_ENOUGH = 0.6;

/**
 * The plan, if one memory holds it, or its parts in order of execution.
 *
 * @param memoryBytes Most bytes of a memory.
 * @throws {ResourceError} If a part that cannot be cut is larger than a memory; the message has the numbers.
 */
export function memoryParts(plan: Plan, slots: number, memoryBytes: number): readonly Plan[] {
  const room = memoryBytes - reserveOf(memoryBytes);
  if (totalOf(estimate(plan, slots)) <= room) return [plan];
  const cuts = cutPlaces(plan, slots, room - plan.arenaBytes);
  const runs = cuts.map((from, i) => plan.graph.nodes.slice(from, cuts[i + 1]));
  const parts = runs.length === 1
    ? [plan]
    : cut(plan.graph, runs).map((graph) => planPart(graph, plan));
  for (const part of parts) {
    const uses = estimate(part, slots);
    if (totalOf(uses) > room) throw tooLarge(part, uses, slots, memoryBytes);
  }
  return parts;
}

function totalOf({ weights, states, activations }: WasmEstimate): number {
  return weights + states + activations;
}

/** Indices of the nodes that begin a part, the first included. */
function cutPlaces(plan: Plan, slots: number, room: number): number[] {
  const { nodes } = plan.graph;
  const bytesOf = nodeBytes(plan, slots);
  const crossing = crossingBytes(plan);
  const cuts = [0];
  const seen = new Set<string>();
  let used = 0;
  // Bytes of the part up to each node since the last cut.
  let filled: number[] = [];
  for (let i = 0; i < nodes.length; i++) {
    const own = bytesOf(nodes[i]!, seen);
    const start = cuts.at(-1)!;
    const place = used + own > room ? bestCut(crossing, { start, end: i, filled }) : undefined;
    if (place === undefined) {
      used += own;
      filled.push(used);
      continue;
    }
    cuts.push(place);
    // What stood behind the cut belongs to the next part.
    seen.clear();
    used = 0;
    filled = [];
    i = place - 1;
  }
  return cuts;
}

/** Where least crosses, the latest of equal places; undefined if nothing may be cut there. */
function bestCut(
  crossing: readonly number[],
  { start, end, filled }: { start: number; end: number; filled: readonly number[] },
): number | undefined {
  const enough = FULL_ENOUGH * (filled.at(-1) ?? 0);
  const find = (least: number): number | undefined => {
    let best: number | undefined;
    for (let at = start + 1; at <= end; at++) {
      if (crossing[at]! === Infinity || filled[at - 1 - start]! < least) continue;
      if (best === undefined || crossing[at]! <= crossing[best]!) best = at;
    }
    return best;
  };
  return find(enough) ?? find(0);
}

/** Bytes of weights and states that a node adds to a part that has `seen` some. */
function nodeBytes(plan: Plan, slots: number): (node: Node, seen: Set<string>) => number {
  const rounded = roundedWeights(plan.graph.nodes);
  return ({ inputs }, seen) => {
    let bytes = 0;
    for (const value of inputs) {
      const root = value && rootOf(plan, value);
      if (root?.role !== "weight" && root?.role !== "state") continue;
      const isRounded = rounded.has(root.id);
      const key = root.role === "state" ? `state ${root.id}` : weightKey(root, isRounded);
      if (seen.has(key)) continue;
      seen.add(key);
      bytes += root.role === "state"
        ? slots * sizeOf(root, {}).bytes
        : weightBytes(root, isRounded);
    }
    return bytes;
  };
}

/** By index of a node, bytes that cross if a part begins with it; Infinity where no part may begin. */
function crossingBytes(plan: Plan): number[] {
  const { nodes, outputs } = plan.graph;
  const made = new Map<number, number>();
  const last = new Map<Value, number>();
  // A state is of one part, and rows of q8 have no form outside of a memory.
  const together: (readonly [from: number, to: number])[] = [];
  const firstUse = new Map<number, number>();
  const lastUse = new Map<number, number>();
  nodes.forEach(({ inputs, outputs: results }, i) => {
    for (const value of inputs) {
      if (value && made.has(value.id)) last.set(value, i);
    }
    for (const value of [...inputs, ...results]) {
      const root = value && rootOf(plan, value);
      if (root?.role !== "state") continue;
      if (!firstUse.has(root.id)) firstUse.set(root.id, i);
      lastUse.set(root.id, i);
    }
    for (const { id } of results) made.set(id, i);
  });
  for (const [id, from] of firstUse) together.push([from, lastUse.get(id)!]);
  const crossing = new Array<number>(nodes.length).fill(0);
  for (const [value, to] of last) {
    if (rootOf(plan, value).role === "state" || outputs.includes(value)) continue;
    if (value.dtype === "q8") together.push([made.get(value.id)!, to]);
    else {
      const { bytes } = sizeOf(value, plan.limits);
      for (let at = made.get(value.id)! + 1; at <= to; at++) crossing[at]! += bytes;
    }
  }
  for (const [from, to] of together) crossing.fill(Infinity, from + 1, to + 1);
  return crossing;
}

function tooLarge(
  plan: Plan,
  uses: WasmEstimate,
  slots: number,
  memoryBytes: number,
): ResourceError {
  const { weights, states, activations } = uses;
  return new ResourceError(
    `a part of it that cannot be cut needs ${
      mebibytes(totalOf(uses) + reserveOf(memoryBytes))
    } of ` +
      `WASM memory (weights ${mebibytes(weights)}, activations ${
        mebibytes(activations)
      }, ${slots} ` +
      `${slots === 1 ? "session" : "sessions"} ${mebibytes(states)}), and a memory has ` +
      mebibytes(memoryBytes),
    {
      file: weightsOf(plan)[0]?.tensor?.source.name,
      place: plan.graph.nodes[0]!.name,
      remedy: "Take a smaller model, or lower contextLength, sessions or batch",
    },
  );
}

function mebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(0)} MiB`;
}
