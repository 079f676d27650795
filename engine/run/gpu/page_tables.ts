// The tables of pages as kernels see them: behind every input that says slots, in the same binding, there are those of all
// groups. Those inputs are the last of all, so that a step sends the tables only when one of them has changed.

import type { PageTable } from "../../../gpu/kernels/cache_pages.ts";
import type { Graph, Node, Value } from "../../graph/graph.ts";
import { attentionInputs } from "../../ops/attention_inputs.ts";
import { PAGE_ROWS, pageGroups, type StateSizes } from "../pages/groups.ts";
import { type Plan, rootOf } from "../../plan/plan.ts";

/** Where the tables are. */
export interface TableLayout {
  /** Ids of the inputs that say slots. */
  readonly inputs: ReadonlySet<number>;
  /** Entries of all tables, and where that of each group begins. */
  readonly entries: number;
  readonly starts: readonly number[];
  /** The table of the caches that a node reads or writes, behind the slots of so many rows; undefined for others. */
  tableOf(node: Node, rowsOf: (slots: Value) => number): PageTable | undefined;
}

/** Lays tables out for states of such sizes. */
export function layOutTables(plan: Plan, { slots }: Pick<StateSizes, "slots">): TableLayout {
  const groups = pageGroups(plan.graph);
  const starts: number[] = [];
  let entries = 0;
  for (const { pagesPerSlot } of groups) {
    starts.push(entries);
    entries += slots * pagesPerSlot;
  }
  const groupOf = new Map(
    groups.flatMap(({ states }, i) => states.map(({ id }) => [id, i] as const)),
  );
  return {
    inputs: slotInputs(plan),
    ...{ entries, starts },
    tableOf(node, rowsOf) {
      const use = cacheUse(node);
      if (!use) return undefined;
      const group = groupOf.get(rootOf(plan, use.state).id)!;
      return {
        first: rowsOf(use.slots) + starts[group]!,
        ...{ perSlot: groups[group]!.pagesPerSlot, rows: PAGE_ROWS },
      };
    },
  };
}

/** A cache that a node reads or writes, all of which have one table, and the slots by which it does. */
function cacheUse(
  { op, inputs }: Node,
): { readonly state: Value; readonly slots: Value } | undefined {
  if (op === "kv_append") return { state: inputs[0]!, slots: inputs[3]! };
  if (op !== "attention") return undefined;
  const { k, slots } = attentionInputs(inputs);
  return k && slots && { state: k, slots };
}

function slotInputs(plan: Plan): Set<number> {
  const { nodes }: Graph = plan.graph;
  return new Set(nodes.flatMap((node) => {
    const use = cacheUse(node);
    return use ? [rootOf(plan, use.slots).id] : [];
  }));
}
