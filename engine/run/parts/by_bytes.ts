// A partition over memories of one size: nodes stay in order, a memory takes as many as it holds, and the cut is made
// where little crosses: in a decoder between two layers, where one row of numbers a token does. Weights and states lie
// with the nodes that use them; a weight that two parts read (an embedding that is also the head) is in both.

import type { Node, Value } from "../../graph/graph.ts";
import { type Plan, rootOf } from "../../plan/plan.ts";
import { sizeOf } from "../../plan/sizes.ts";
import type { Partition } from "./cut.ts";
import { isQ8 } from "../../ops/q8_rows.ts";

/** A memory is filled to this part at least before it is cut where little crosses. */
const FULL_ENOUGH = 0.6;

/** What a node keeps in memory: each thing's key, equal where nodes share it, and its bytes. */
export type Holdings = (node: Node) => readonly (readonly [key: string, bytes: number])[];

/**
 * Places nodes in memories 0, 1, … with `room` bytes each; what cannot be cut is together, however large.
 */
export function partitionByBytes(
  plan: Plan,
  { room, holdings }: { readonly room: number; readonly holdings: Holdings },
): Partition<number> {
  const { nodes } = plan.graph;
  const crossing = crossingBytes(plan);
  const cuts = [0];
  const seen = new Set<string>();
  let used = 0;
  // Bytes of the part up to each node since the last cut.
  let filled: number[] = [];
  for (let i = 0; i < nodes.length; i++) {
    let own = 0;
    for (const [key, bytes] of holdings(nodes[i]!)) {
      if (!seen.has(key)) own += bytes;
      seen.add(key);
    }
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
  return new Map(nodes.map((node, i) => [node, cuts.findLastIndex((from) => from <= i)]));
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
    if (isQ8(value.dtype)) together.push([made.get(value.id)!, to]);
    else {
      const { bytes } = sizeOf(value, plan.limits);
      for (let at = made.get(value.id)! + 1; at <= to; at++) crossing[at]! += bytes;
    }
  }
  for (const [from, to] of together) crossing.fill(Infinity, from + 1, to + 1);
  return crossing;
}
