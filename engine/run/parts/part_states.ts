// Slots and states of a plan in parts: those of the parts, in the order of the whole graph, so that a saved session does not
// depend on how its model was cut. A part may have a share of each row of a state: heads that its device computes.

import { joinBytes } from "../../byte_source.ts";
import type { Graph, Value } from "../../graph/graph.ts";
import type { Plan } from "../../plan/plan.ts";
import type { PageMemory, PreparedPlan } from "../backend.ts";
import { pageGroups, type StateSizes } from "../pages/groups.ts";
import { rowBytes, splitBytes } from "../states.ts";

/** Which share of each row of a whole state a part's state is. */
export interface StateShare {
  /** Name of the whole state. */
  readonly name: string;
  readonly index: number;
  readonly of: number;
}

/** By name of a part's state; absent: it is the state of that name. */
export type StateShares = ReadonlyMap<string, StateShare>;

/** A part with its graph as it was cut, before it was made ready in a form of its own. */
export interface StatePart {
  readonly prepared: PreparedPlan;
  readonly graph: Graph;
}

/** By group of a part's states, which group of the whole it belongs to. */
function groupsOf(whole: Graph, part: Graph, shares: StateShares): number[] {
  const groups = pageGroups(whole);
  return pageGroups(part).map(({ states: [{ name }] }) => {
    const own = shares.get(name)?.name ?? name;
    return groups.findIndex(({ states }) => states.some((state) => state.name === own));
  });
}

/** Sizes for a part. */
export function partSizes(
  whole: Graph,
  { part, sizes: { slots, pages }, shares = new Map() }: {
    readonly part: Graph;
    readonly sizes: StateSizes;
    readonly shares?: StateShares;
  },
): StateSizes {
  return pages
    ? { slots, pages: groupsOf(whole, part, shares).map((group) => pages[group]!) }
    : { slots };
}

/** The states of the parts as those of the whole. */
export function statesOfParts(
  { graph }: Plan,
  { parts, shares }: { readonly parts: readonly StatePart[]; readonly shares: StateShares },
): Pick<PreparedPlan, "pages" | "openSlot" | "closeSlot" | "readState" | "writeState"> {
  const pages = pageGroups(graph).map((_, group): PageMemory => {
    const own = parts.flatMap(({ prepared, graph: part }) =>
      groupsOf(graph, part, shares).flatMap((at, i) =>
        at === group ? prepared.pages?.[i] ?? [] : []
      )
    );
    return {
      map: (at, page) => own.forEach((memory) => memory.map(at, page)),
      copy: (from, to) => own.forEach((memory) => memory.copy(from, to)),
    };
  });
  const keeping = parts.filter(({ graph: { states } }) => states.length > 0);
  const arePaged = keeping.every(({ prepared }) => prepared.pages);
  const shareOf = ({ name }: Value) => shares.get(name) ?? { name, index: 0, of: 1 };
  return {
    ...arePaged && { pages },
    openSlot() {
      // All have the same slots open, so all give the same.
      return parts.map(({ prepared }) => prepared.openSlot())[0]!;
    },
    closeSlot(slot) {
      for (const { prepared } of parts) prepared.closeSlot(slot);
    },
    async readState(slot, count) {
      const pieces = new Map<string, Uint8Array[]>();
      for (const { prepared, graph: { states } } of keeping) {
        const own = splitBytes(await prepared.readState(slot, count), rowBytes(states, count));
        states.forEach((state, i) => {
          const { name, index } = shareOf(state);
          const known = pieces.get(name) ?? [];
          known[index] = own[i]!;
          pieces.set(name, known);
        });
      }
      return joinBytes(graph.states.map(({ name }) => joinRows(pieces.get(name)!, count)));
    },
    async writeState(slot, count, bytes) {
      const own = splitBytes(bytes, rowBytes(graph.states, count));
      const whole = new Map(graph.states.map(({ name }, i) => [name, own[i]!]));
      for (const { prepared, graph: { states } } of keeping) {
        const pieces = states.map((state) => {
          const { name, index, of } = shareOf(state);
          return cutRows(whole.get(name)!, count, { index, of });
        });
        await prepared.writeState(slot, count, joinBytes(pieces));
      }
    },
  };
}

/** Rows of which each piece has a part, in the order of the pieces. */
function joinRows(pieces: readonly Uint8Array[], count: number): Uint8Array {
  const [first] = pieces as [Uint8Array];
  if (pieces.length === 1 || count === 0) return first;
  const length = first.length / count, row = length * pieces.length;
  const joined = new Uint8Array(row * count);
  pieces.forEach((piece, i) => {
    for (let at = 0; at < count; at++) {
      joined.set(piece.subarray(at * length, (at + 1) * length), at * row + i * length);
    }
  });
  return joined;
}

function cutRows(
  bytes: Uint8Array,
  count: number,
  { index, of }: { readonly index: number; readonly of: number },
): Uint8Array {
  if (of === 1 || count === 0) return bytes;
  const row = bytes.length / count, length = row / of;
  const piece = new Uint8Array(length * count);
  for (let at = 0; at < count; at++) {
    const from = at * row + index * length;
    piece.set(bytes.subarray(from, from + length), at * length);
  }
  return piece;
}
