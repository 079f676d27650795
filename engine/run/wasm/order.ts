// The order of a program's instructions. The nodes of a wave run side by side; when a node has several
// instructions, its second and later ones wait for the wave's first ones. A node that takes rows of another one
// of its wave becomes a link of that one's chain, if both kernels cut rows alike; else it waits for it.

import type { ProgramInstruction } from "../../../wasm/program.ts";
import type { Node } from "../../graph/graph.ts";
import { rowwiseOf } from "../../plan/chains.ts";
import { type Plan, rootOf } from "../../plan/plan.ts";

/** Instructions of one node. */
export interface Lowered {
  readonly node: Node;
  readonly wave: number;
  readonly instructions: readonly Omit<ProgramInstruction, "barrier">[];
  /** What makes its constants ready, once. */
  readonly once: readonly Omit<ProgramInstruction, "barrier">[];
  /** No kernel runs it. */
  readonly onHost: boolean;
  /** See WasmKernel. */
  readonly inRowChunks: boolean;
}

/** A node, and what runs on its chunks. */
export interface Unit extends Lowered {
  readonly links: Omit<ProgramInstruction, "barrier">[];
}

/** Units that do not wait for each other, phase by phase. */
export function phases(plan: Plan, lowered: readonly Lowered[]): Unit[][] {
  const all: Unit[][] = [];
  let wave = -1, first = 0;
  /** By root of what a unit of this wave makes. */
  const makers = new Map<number, { readonly unit: Unit; readonly phase: number }>();
  for (const one of lowered) {
    if (one.wave !== wave) {
      makers.clear();
      first = all.length;
    }
    wave = one.wave;
    const made = one.node.inputs.flatMap((value) =>
      value ? makers.get(rootOf(plan, value).id) ?? [] : []
    );
    const head = made[0];
    const links = head !== undefined && canLink(one) && canLink(head.unit) &&
      made.every(({ unit }) => unit === head.unit);
    const own = links ? head : {
      unit: { ...one, links: [] },
      phase: Math.max(first - 1, ...made.map(({ phase }) => phase)) + 1,
    };
    if (links) head.unit.links.push(...one.instructions);
    else (all[own.phase] ??= []).push(own.unit);
    for (const value of one.node.outputs) makers.set(rootOf(plan, value).id, own);
  }
  return all;
}

/** The schedule lets only those into a wave together that cut rows alike (chains.ts). */
function canLink({ node, instructions, inRowChunks }: Lowered): boolean {
  return inRowChunks && instructions.length === 1 && rowwiseOf(node) !== undefined;
}

/** All instructions: phases one after another, in a phase first all first instructions, and so on. */
export function inOrder(phases: readonly (readonly Unit[])[]): ProgramInstruction[] {
  const ordered: ProgramInstruction[] = [];
  for (const units of phases) {
    const depth = Math.max(0, ...units.map(({ instructions }) => instructions.length));
    for (let turn = 0; turn < depth; turn++) {
      let barrier = true;
      for (const { instructions, links } of units) {
        for (const instruction of instructions.slice(turn, turn + 1)) {
          ordered.push({ ...instruction, barrier });
          barrier = false;
          for (const link of links) ordered.push({ ...link, barrier, linked: true });
        }
      }
    }
  }
  return ordered;
}
