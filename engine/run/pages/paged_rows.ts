// The rows of all slots in pools of pages: those of tokens, which texts share, and those of sources, which they do not.

import { ResourceError } from "../../errors.ts";
import { maximumOf } from "../../plan/sizes.ts";
import type { PreparedPlan } from "../backend.ts";
import type { Step } from "../step.ts";
import type { CacheRows } from "./cache_rows.ts";
import { mostPages, PAGE_ROWS, type PageGroup, pageGroups } from "./groups.ts";
import { KeptTexts } from "./kept_texts.ts";
import { PagePool } from "./page_pool.ts";
import { type GroupPages, SlotPages } from "./slot_pages.ts";

/** What an executable does with them besides. */
export interface PagedRows extends CacheRows {
  /** Makes the rows of a step writable. @throws {ResourceError} If the pool is full. */
  cover(step: Step): void;
  /**
   * Makes the rows of steps that may follow writable (Step.feedback), so that a device may compute them before they are
   * asked for.
   *
   * @returns How many may, with what room there is; a step is covered before.
   */
  coverAhead(step: Step): number;
  /** What `cover` throws. */
  full(): ResourceError;
  /** Gives all pages of a slot back. */
  close(slot: number): void;
}

/** How many there are. */
export interface PagedSizes {
  readonly slots: number;
  /** By group. */
  readonly pages: readonly number[];
  /** Of a group, whether its rows are those of sources. */
  readonly isSource: (group: PageGroup) => boolean;
}

/** More rows of a slot are not kept ready for steps ahead: devices go on by fewer than so many. */
const AHEAD_ROWS = PAGE_ROWS / 2;

/** Keeps the tables of a device's pages. */
export function createPagedRows(
  { plan, pages: memories }: Pick<PreparedPlan, "plan"> & Required<Pick<PreparedPlan, "pages">>,
  { slots, pages, isSource }: PagedSizes,
): PagedRows {
  const groups = pageGroups(plan.graph).map((group, i): GroupPages => ({
    ...{ group, pool: new PagePool(pages[i]!), memory: memories[i]! },
  }));
  const ofTokens = groups.filter(({ group }) => !isSource(group));
  const keptOf = (own: readonly GroupPages[]) =>
    new KeptTexts(own.map(({ pool }) => pool), own.map(({ group }) => group.window));
  const kept = keptOf(ofTokens);
  const stepRows = Math.max(
    ...[1, ...Object.values(plan.limits)],
    ...groups.map(({ group: { positions } }) =>
      positions ? maximumOf(positions.shape[0]!, plan.limits) : 0
    ),
  );
  const tokens = new SlotPages(ofTokens, { kept, slots, stepRows });
  const ofSources = groups.filter(({ group }) => isSource(group));
  const sources = new SlotPages(ofSources, { kept: keptOf(ofSources), slots, stepRows });
  // A pool of windows has room for what slots see, however many tokens they have.
  const least = (pagesOf: (g: number) => number) =>
    Math.min(...ofTokens.map(({ group }, g) => {
      const pages = pagesOf(g), slots = Math.floor(pages / mostPages(group, plan.limits));
      return Math.max(pages * PAGE_ROWS, group.window ? slots * group.capacity : 0);
    }));
  const poolTokens = least((g) => ofTokens[g]!.pool.count);

  function full(): ResourceError {
    return new ResourceError(
      `the caches of all sessions are full: they hold ${poolTokens} tokens`,
      { remedy: "Dispose a session, or load the model with more `cacheTokens`" },
    );
  }

  return {
    poolTokens,
    sharesTexts: true,
    get freeTokens() {
      return least((g) => ofTokens[g]!.pool.free + kept.spare(g));
    },
    reserve(slot, length) {
      if (length <= tokens.capacity) return tokens.reserve(slot, length);
      throw new RangeError(
        `Cannot reserve ${length} rows of slot ${slot}: it holds ${tokens.capacity}`,
      );
    },
    truncate: (slot, length) => tokens.truncate(slot, length),
    fork: (from, to) => tokens.fork(from, to),
    adopt: (slot, text) => tokens.adopt(slot, kept.find(text.tokens, text.key)),
    note: (slot, text) => tokens.note(slot, text),
    forgetTexts: () => kept.clear(),
    cover({ count, slots: rowSlots, positions, isSource }) {
      const space = isSource ? sources : tokens;
      for (let row = 0, end = 0; row < count; row = end) {
        const slot = rowSlots[row]!, from = positions[row]!;
        do end++; while (
          end < count && rowSlots[end] === slot && positions[end] === from + end - row
        );
        const to = from + end - row;
        // What is outside of a slot, the device names.
        if (!(slot >= 0 && slot < slots && from >= 0 && to <= space.capacity)) continue;
        // A source takes the place of the one before it.
        if (isSource && from === 0) sources.truncate(slot, 0);
        if (!space.use(slot, { from, to })) throw full();
      }
    },
    coverAhead({ count, slots: rowSlots, positions, feedback }) {
      const steps = Math.min(feedback, AHEAD_ROWS, stepRows);
      for (let row = 0; row < count && steps > 0; row++) {
        const end = Math.min(tokens.capacity, positions[row]! + 1 + steps);
        if (!tokens.reserve(rowSlots[row]!, end)) return 0;
      }
      return steps;
    },
    restore: (slot, length) =>
      tokens.restore(slot, length) && (ofSources.length === 0 || sources.restore(slot, length)),
    full,
    close(slot) {
      tokens.truncate(slot, 0);
      sources.truncate(slot, 0);
    },
  };
}
