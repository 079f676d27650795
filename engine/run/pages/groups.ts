// How states lie in pages. States that get rows at the same positions of the same slots, and of which rows are seen equally
// long, are a group: one table says for all of them in which pages the rows of a slot lie, and one pool has their pages. A
// page has PAGE_ROWS rows of each state of its group; what a row is, and where its bytes are, is the device's business.

import type { DimEnv } from "../../graph/dim/mod.ts";
import type { Graph, Node, Value } from "../../graph/graph.ts";
import { attentionInputs } from "../../ops/attention_inputs.ts";
import { maximumOf, sizeOf } from "../../plan/sizes.ts";
import type { Plan } from "../../plan/plan.ts";

/**
 * Rows of a page. Kernels take positions in blocks of 32 that begin at multiples of it, and runs of two blocks: what
 * they work on at once lies in one page. Smaller pages would share a little more of a text, and make tables longer.
 */
export const PAGE_ROWS = 64;

/** Entry of a table where there is no page. */
export const NO_PAGE = -1;

/** States with one table. */
export interface PageGroup {
  readonly states: readonly Value[];
  /** Rows that a slot holds at most. */
  readonly capacity: number;
  /** Pages for them: the entries of a slot in the table. */
  readonly pagesPerSlot: number;
  /** So many rows, its own included, a row sees; 0: all up to its own. */
  readonly window: number;
  /** Positions that its rows are given; undefined if there are no rows. */
  readonly positions: Value | undefined;
}

/** How many slots and pages there are. */
export interface StateSizes {
  readonly slots: number;
  /** By group, pages in its pool; absent: every slot has pages for all its rows. */
  readonly pages?: readonly number[] | undefined;
}

/** The groups of a graph's states; the first one sees all rows, if any group does. */
export function pageGroups({ states, nodes }: Pick<Graph, "states" | "nodes">): PageGroup[] {
  const found = new Map<string, PageGroup & { readonly states: Value[] }>();
  const facts = factsOf(states, nodes);
  for (const state of states) {
    const { positions, slots, windows } = facts.get(state.id)!;
    const capacity = state.shape[0] as number;
    const widest = windows.size === 0 || windows.has(0) ? 0 : Math.max(...windows);
    const window = widest < capacity ? widest : 0;
    const key = [positions?.id, slots?.id, capacity, window].join(" ");
    const pagesPerSlot = Math.ceil(capacity / PAGE_ROWS);
    const group = found.get(key) ??
      { states: [], capacity, pagesPerSlot, window, positions };
    found.set(key, group);
    group.states.push(state);
  }
  return [...found.values()].sort((a, b) => Number(a.window > 0) - Number(b.window > 0));
}

interface StateFacts {
  positions?: Value | undefined;
  slots?: Value | undefined;
  /** Of all that read it. */
  readonly windows: Set<number>;
}

function factsOf(states: readonly Value[], nodes: readonly Node[]): Map<number, StateFacts> {
  const facts = new Map(states.map(({ id }): [number, StateFacts] => [id, { windows: new Set() }]));
  for (const { op, inputs, outputs, attributes } of nodes) {
    if (op === "kv_append") {
      const [cache, , positions, slots] = inputs;
      const own = facts.get(cache!.id)!;
      Object.assign(own, { positions, slots });
      facts.set(outputs[0]!.id, own);
    } else if (op === "attention") {
      const { k, v, positions, slots, ends } = attentionInputs(inputs);
      for (const value of [k, v]) {
        const own = value && facts.get(value.id);
        if (!own) continue;
        own.windows.add(ends ? 0 : attributes.window as number);
        // It may store the rows itself.
        own.positions ??= positions;
        own.slots ??= slots;
      }
    }
  }
  return facts;
}

/** Pages in the pool of each group. */
export function poolPages(groups: readonly PageGroup[], { slots, pages }: StateSizes): number[] {
  return groups.map(({ pagesPerSlot }, i) => pages?.[i] ?? slots * pagesPerSlot);
}

/** Bytes of a page's rows of a state. */
export function pageBytes(state: Value): number {
  const capacity = state.shape[0] as number;
  return capacity === 0 ? 0 : sizeOf(state, {}).bytes / capacity * PAGE_ROWS;
}

/** Bytes of all pages, by the id of a state. */
export function stateBytes(graph: Graph, sizes: StateSizes): Map<number, number> {
  const groups = pageGroups(graph), pages = poolPages(groups, sizes);
  return new Map(
    groups.flatMap(({ states }, i) =>
      states.map((state) => [state.id, pages[i]! * pageBytes(state)] as const)
    ),
  );
}

/** Rows behind a sliding window that a slot keeps, so that it can be rewound by a few: a draft that was refused. */
export const REWIND_ROWS = PAGE_ROWS;

/**
 * Pages for a number of tokens of all slots together, by default as many as they hold at their longest; by group. Of a group with a window no slot has more than its rows
 * of one step see; one slot's more, for what is kept of earlier texts. Sources that are longer than texts are there
 * whole for every slot.
 *
 * @throws {RangeError} If they do not fill a page.
 */
export function pagesFor(
  { graph, limits }: Plan,
  { slots, tokens }: { readonly slots: number; readonly tokens?: number | undefined },
): number[] {
  if (tokens !== undefined && !(tokens >= PAGE_ROWS)) {
    throw new RangeError(`Cannot use cacheTokens ${tokens}: a page has ${PAGE_ROWS}`);
  }
  const groups = pageGroups(graph);
  const least = Math.min(...groups.map(({ capacity }) => capacity));
  return groups.map((group) => {
    const all = tokens === undefined || group.capacity > least
      ? slots * group.pagesPerSlot
      : Math.ceil(tokens / PAGE_ROWS);
    return Math.min(all, group.window ? (slots + 1) * mostPages(group, limits) : Infinity);
  });
}

/** Pages that a slot has at most: of a window, those that the rows of a step see. */
export function mostPages(
  { window, positions, pagesPerSlot }: PageGroup,
  limits: DimEnv,
): number {
  if (!window || !positions) return pagesPerSlot;
  const seen = window + REWIND_ROWS + maximumOf(positions.shape[0]!, limits);
  return Math.min(pagesPerSlot, Math.ceil(seen / PAGE_ROWS) + 1);
}
