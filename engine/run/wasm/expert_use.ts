// Products of nodes with experts that come and go. A node's kernel sees a cache as its stack of matrices, and instead of
// the numbers of experts those of their places, so no kernel knows of it. When a step's choice is known, what is
// missing is loaded, for the node and for those behind it that follow the same choice; rows that choose more experts than
// there are places take several passes, in each of which the items of the others are nobody's.

import type { Machine } from "../../../wasm/machine.ts";
import { compile, type DimEnv, product } from "../../graph/dim/mod.ts";
import type { HostData, Node } from "../../graph/graph.ts";
import { type Plan, rootOf } from "../../plan/plan.ts";
import { maximumOf } from "../../plan/sizes.ts";
import type { ExpertKind } from "../streaming/slots.ts";
import { ExpertCache } from "./expert_cache.ts";

/** A node that chooses from a cache. */
export interface ExpertUse {
  /** Where its kernel finds places instead of experts, and biases by place. */
  readonly chosen: number;
  readonly bias: number;
  /** Runs its program once for each pass. */
  run(
    bindings: DimEnv,
    data: { readonly chosen: HostData; readonly bias: HostData | undefined },
    execute: () => void,
  ): void;
}

/** Caches, and the nodes that choose from them. */
export interface ExpertUses {
  readonly caches: readonly ExpertCache[];
  of(node: Node): ExpertUse | undefined;
}

/** No place. */
const NOWHERE = 0xffffffff;

interface Member {
  readonly node: Node;
  readonly cache: ExpertCache;
  /** Of its stack in the cache. */
  readonly stack: number;
  /** Nodes that follow the same choice, in order, itself included. */
  readonly group: Member[];
  /** By expert; known when it has run once. */
  biases: Float32Array | undefined;
  /** Whether another has asked for its experts in this step. */
  isRequested: boolean;
}

/** Reserves caches for a plan. */
export function createExpertUses(
  machine: Machine,
  { plan, kinds }: { readonly plan: Plan; readonly kinds: readonly ExpertKind[] },
): ExpertUses {
  const nodes = plan.steps.map(({ node }) => node).filter(({ op }) => op === "expert_matmul");
  const stackOf = ({ stacks }: ExpertKind, { inputs }: Node) =>
    stacks.findIndex(({ id }) => id === inputs[1]!.id);
  const caches = kinds.map((kind) =>
    new ExpertCache(machine, {
      kind,
      hasBias: nodes.some((node) => stackOf(kind, node) >= 0 && node.inputs[3]),
    })
  );
  const members = new Map<Node, Member>();
  const groups = new Map<number, Member[]>();
  for (const node of nodes) {
    const cache = caches.find(({ kind }) => stackOf(kind, node) >= 0);
    if (!cache) continue;
    const choice = rootOf(plan, node.inputs[2]!).id, group = groups.get(choice) ?? [];
    groups.set(choice, group);
    const stack = stackOf(cache.kind, node);
    const member: Member = { node, cache, stack, group, biases: undefined, isRequested: false };
    members.set(node, member);
    group.push(member);
  }
  return {
    caches,
    of(node) {
      const member = members.get(node);
      return member && useOf(machine, { plan, member, caches });
    },
  };
}

function useOf(
  machine: Machine,
  { plan, member, caches }: {
    readonly plan: Plan;
    readonly member: Member;
    readonly caches: readonly ExpertCache[];
  },
): ExpertUse {
  const { node, cache, stack, group } = member, size = product(node.inputs[2]!.shape);
  const most = maximumOf(size, plan.limits), count = compile(size);
  const address = machine.allocate(4 * most), translated = machine.u32(address, most);
  const places = new Uint32Array(node.inputs[1]!.shape[0] as number);
  const distinct: number[] = [], { slots } = cache.kind;

  /** The experts that are chosen, each once. */
  function look(chosen: HostData, items: number): void {
    distinct.length = 0;
    places.fill(NOWHERE);
    for (let i = 0; i < items; i++) {
      const expert = chosen[i] as number;
      if (places[expert] !== NOWHERE) continue;
      places[expert] = 0;
      distinct.push(expert);
    }
  }

  return {
    ...{ chosen: address, bias: cache.bias },
    run(bindings, { chosen, bias }, execute) {
      member.biases = bias as Float32Array | undefined;
      const items = count(bindings);
      look(chosen, items);
      // What a step that failed has asked for may be gone.
      if (member === group[0]) { for (const one of group) one.isRequested = false; }
      if (!member.isRequested) requestAll(member, { wanted: distinct, caches });
      for (let from = 0; from === 0 || from < distinct.length; from += slots) {
        const own = distinct.length > slots ? distinct.slice(from, from + slots) : distinct;
        if (!member.isRequested) cache.request(stack, own, member.biases);
        places.fill(NOWHERE);
        for (const expert of own) places[expert] = cache.placeOf(stack, expert);
        for (let i = 0; i < items; i++) translated[i] = places[chosen[i] as number]!;
        execute();
      }
      member.isRequested = false;
    },
  };
}

/** Asks for the experts of all nodes behind that follow a choice, where all find room at once. */
function requestAll(
  first: Member,
  { wanted, caches }: {
    readonly wanted: readonly number[];
    readonly caches: readonly ExpertCache[];
  },
): void {
  const behind = first.group.slice(first.group.indexOf(first));
  const fits = caches.every((cache) =>
    behind.filter((member) => member.cache === cache).length * wanted.length <= cache.kind.slots
  );
  if (!fits || behind.some(({ node, biases }) => node.inputs[3] && !biases)) return;
  for (const member of behind) {
    member.cache.request(member.stack, wanted, member.biases);
    member.isRequested = true;
  }
}
