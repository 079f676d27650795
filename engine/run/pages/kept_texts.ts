// The pages of earlier texts, as a tree: a node is PAGE_ROWS tokens behind those of its parent (or fewer, at the end of a
// text), and the pages of all groups with their rows. It holds its pages, so that they outlive the session that computed them, and gives them up when room is
// wanted, those of the text that was not used for the longest time first.

import { NO_PAGE, PAGE_ROWS } from "./groups.ts";
import type { PagePool } from "./page_pool.ts";

/** Tokens of a page, and where their rows are. Plain lists: decoding makes no array buffers. */
export interface KeptPage {
  readonly tokens: readonly number[];
  /** By group; a group with a sliding window may have given up its own. */
  readonly pages: number[];
}

interface Node extends KeptPage {
  readonly parent: Node | undefined;
  readonly siblings: Node[];
  readonly children: Node[];
  readonly depth: number;
  /** When it was last used. */
  used: number;
}

/** How far a text is known. */
export interface KnownText {
  /** Pages that agree, from the first on. */
  readonly whole: readonly KeptPage[];
  /** A page behind them of which the first `rows` tokens agree. */
  readonly part: (KeptPage & { readonly rows: number }) | undefined;
}

/** What is kept of earlier texts. */
export class KeptTexts {
  readonly #pools: readonly PagePool[];
  readonly #windows: readonly number[];
  readonly #roots = new Map<string, Node[]>();
  #clock = 0;

  /** @param windows By group; 0: its rows are seen as long as there are others behind them. */
  constructor(pools: readonly PagePool[], windows: readonly number[]) {
    this.#pools = pools;
    this.#windows = windows;
  }

  /** Finds the longest beginning of a text. */
  find(tokens: ArrayLike<number>, key: string): KnownText {
    const whole: Node[] = [], time = ++this.#clock;
    let nodes = this.#roots.get(key) ?? [];
    for (let from = 0;; from += PAGE_ROWS) {
      let best: Node | undefined, rows = 0;
      for (const node of nodes) {
        const agreed = agreeing(node.tokens, { tokens, from });
        if (agreed > rows) [best, rows] = [node, agreed];
      }
      if (best) best.used = time;
      if (!best || rows < PAGE_ROWS) return { whole, part: best && { ...best, rows } };
      whole.push(best);
      nodes = best.children;
    }
  }

  /**
   * Keeps the pages that a text fills, `isWhole` also the one behind them; `pageOf` gives those that are not kept yet,
   * NO_PAGE where there is none.
   */
  keep(
    tokens: ArrayLike<number>,
    { key, isWhole, pageOf }: {
      readonly key: string;
      readonly isWhole: boolean;
      readonly pageOf: (group: number, index: number) => number;
    },
  ): void {
    const time = ++this.#clock;
    let parent: Node | undefined;
    let siblings = this.#roots.get(key) ?? [];
    this.#roots.set(key, siblings);
    const end = isWhole ? tokens.length : tokens.length - tokens.length % PAGE_ROWS;
    for (let index = 0; index * PAGE_ROWS < end; index++) {
      const from = index * PAGE_ROWS, rows = Math.min(PAGE_ROWS, end - from);
      let node: Node | undefined = siblings.find((node) =>
        agreeing(node.tokens, { tokens, from }) >= rows
      );
      if (!node) {
        // Without the rows that all see, those of a window are of no use.
        if (this.#windows.some((window, group) => !window && pageOf(group, index) === NO_PAGE)) {
          return;
        }
        node = {
          tokens: listOf(tokens, from, rows),
          pages: this.#pools.map(() => NO_PAGE),
          ...{ parent, siblings, children: [], depth: index, used: time },
        };
        siblings.push(node);
      }
      node.used = time;
      for (const [group, pool] of this.#pools.entries()) {
        if (node.pages[group] !== NO_PAGE || rows < node.tokens.length) continue;
        const page = pageOf(group, index);
        if (page !== NO_PAGE) node.pages[group] = pool.hold(page);
      }
      parent = node;
      siblings = node.children;
    }
  }

  /** Pages of a group that would be free if nothing were kept. */
  spare(group: number): number {
    let count = 0;
    for (const node of this.#nodes()) if (this.#isSpare(node, group)) count++;
    return count;
  }

  /**
   * Gives up pages of a group that nobody else holds, as many as `count` of one text; with one that all see goes what stands
   * behind it.
   *
   * @returns False if there is none.
   */
  giveUp(group: number, count = 1): boolean {
    let oldest: Node | undefined;
    // Of one text, the last page is missed least; of a window, the first.
    const order = this.#windows[group] ? 1 : -1;
    for (const node of this.#nodes()) {
      if (!this.#isSpare(node, group)) continue;
      const isOlder = !oldest || node.used < oldest.used ||
        node.used === oldest.used && order * (node.depth - oldest.depth) < 0;
      if (isOlder) oldest = node;
    }
    for (let next = oldest; next && count > 0; count--) {
      this.#give(next, group);
      const { parent, used }: Node = next;
      // What was used with it is as old, and its last page comes next.
      const isNext = order < 0 && parent?.used === used && this.#isSpare(parent, group);
      next = isNext ? parent : undefined;
    }
    return oldest !== undefined;
  }

  /** Gives up a page, whoever else holds it; one that is not kept is left alone. */
  forget(group: number, page: number): void {
    for (const node of this.#nodes()) {
      if (node.pages[group] === page) return this.#give(node, group);
    }
  }

  /** Gives up everything. */
  clear(): void {
    for (const nodes of this.#roots.values()) for (const node of [...nodes]) this.#drop(node);
  }

  #give(node: Node, group: number): void {
    if (!this.#windows[group]) return this.#drop(node);
    this.#release(node, group);
    this.#prune(node);
  }

  #isSpare({ pages }: Node, group: number): boolean {
    return pages[group] !== NO_PAGE && this.#pools[group]!.holders(pages[group]!) === 1;
  }

  *#nodes(): Generator<Node> {
    const waiting = [...this.#roots.values()];
    for (let nodes = waiting.pop(); nodes; nodes = waiting.pop()) {
      for (const node of nodes) {
        yield node;
        waiting.push(node.children);
      }
    }
  }

  #release({ pages }: Node, group: number): void {
    if (pages[group] === NO_PAGE) return;
    this.#pools[group]!.release(pages[group]!);
    pages[group] = NO_PAGE;
  }

  /** Forgets nodes without a page at the end of a text. */
  #prune(last: Node): void {
    for (let node: Node | undefined = last; node; node = node.parent) {
      if (node.children.length > 0 || node.pages.some((page) => page !== NO_PAGE)) return;
      node.siblings.splice(node.siblings.indexOf(node), 1);
    }
  }

  #drop(node: Node): void {
    node.siblings.splice(node.siblings.indexOf(node), 1);
    const waiting = [node];
    for (let next = waiting.pop(); next; next = waiting.pop()) {
      for (const group of this.#pools.keys()) this.#release(next, group);
      waiting.push(...next.children);
    }
  }
}

/** How many of a page's tokens are those of a text from a position on. */
function agreeing(
  page: readonly number[],
  { tokens, from }: { readonly tokens: ArrayLike<number>; readonly from: number },
): number {
  let count = 0;
  while (count < page.length && page[count] === tokens[from + count]) count++;
  return count;
}

function listOf(tokens: ArrayLike<number>, from: number, rows: number): number[] {
  const list: number[] = [];
  for (let i = from; i < from + rows; i++) list.push(tokens[i]!);
  return list;
}
