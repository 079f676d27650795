import { assert, assertEquals, assertThrows } from "@std/assert";
import { TOY_LIMITS, toyDecoder } from "../../../tests/support/toy_decoder.ts";
import { ResourceError } from "../../errors.ts";
import { createCaseRandom } from "../../ops/case_random.ts";
import { plan } from "../../plan/planner.ts";
import type { PageMemory } from "../backend.ts";
import { addRows, clearStep, createStep } from "../step.ts";
import { NO_PAGE, PAGE_ROWS, pageGroups } from "./groups.ts";
import { KeptTexts } from "./kept_texts.ts";
import { PagePool } from "./page_pool.ts";
import { createPagedRows } from "./paged_rows.ts";

const CAPACITY = 600;

/** Pages whose rows are the token that was written there, behind the tokens before it. */
function fakePages(
  { pages, slots, windows = [] }: {
    readonly pages: readonly number[];
    readonly slots: number;
    readonly windows?: readonly number[];
  },
) {
  const made = plan(toyDecoder("f16", "F32", { capacity: CAPACITY, windows }), {
    limits: TOY_LIMITS,
  });
  const groups = pageGroups(made.graph);
  const memories = groups.map(({ pagesPerSlot }, g) => {
    const cells = Array.from({ length: pages[g]! }, () => new Array<string>(PAGE_ROWS).fill(""));
    const table = new Int32Array(slots * pagesPerSlot).fill(NO_PAGE);
    let copied = 0;
    return {
      cells,
      table,
      get copied() {
        return copied;
      },
      map: ({ slot, index }, page) => void (table[slot * pagesPerSlot + index] = page),
      copy({ page, rows }, to) {
        assert(page !== to && rows > 0 && rows <= PAGE_ROWS);
        cells[page]!.slice(0, rows).forEach((row, i) => cells[to]![i] = row);
        copied += rows;
      },
    } satisfies PageMemory & Record<string, unknown>;
  });
  const rows = createPagedRows({ plan: made, pages: memories }, {
    ...{ slots, pages },
    isSource: () => false,
  });
  const step = createStep(CAPACITY);

  function cell(g: number, slot: number, position: number) {
    const { cells, table } = memories[g]!;
    const page = table[slot * groups[g]!.pagesPerSlot + Math.floor(position / PAGE_ROWS)]!;
    return { page, row: position % PAGE_ROWS, cells: cells[page] };
  }

  return {
    rows,
    memories,
    /** Computes tokens[from..] of a slot, as a step does; a row sees the ones before it. */
    compute(slot: number, tokens: readonly number[], from: number) {
      clearStep(step);
      addRows(step, { tokens, from, position: from, slot });
      rows.cover(step);
      for (let position = from; position < tokens.length; position++) {
        for (const g of groups.keys()) {
          const { cells, row } = cell(g, slot, position);
          cells![row] = tokens.slice(0, position + 1).join(" ");
        }
      }
    },
    /** Every row that one at the end sees is that of the tokens. */
    check(slot: number, tokens: readonly number[]) {
      for (const [g, { window }] of groups.entries()) {
        const first = window ? Math.max(0, tokens.length - window + 1) : 0;
        for (let position = first; position < tokens.length; position++) {
          const { cells, row } = cell(g, slot, position);
          assertEquals(cells?.[row], tokens.slice(0, position + 1).join(" "));
        }
      }
    },
    /** Pages that tables hold. */
    held: (g: number) => new Set(memories[g]!.table.filter((page) => page !== NO_PAGE)).size,
  };
}

function text(length: number, from = 0): number[] {
  return Array.from({ length }, (_, i) => from + i);
}

Deno.test("a text that begins like an earlier one takes its pages, and copies the rows of one in part", () => {
  const { rows, compute, check, memories, held } = fakePages({ pages: [30], slots: 3 });
  const prompt = text(200);
  compute(0, prompt, 0);
  rows.note(0, { tokens: prompt, key: "" });
  const other = [...prompt.slice(0, 150), ...text(30, 1000)];
  assertEquals(rows.adopt(1, { tokens: other, key: "" }), 150);
  assertEquals([held(0), memories[0]!.copied], [5, 22]);
  compute(1, other, 150);
  check(1, other);
  check(0, prompt);
  assertEquals(rows.adopt(2, { tokens: other, key: "other adapters" }), 0);
});

Deno.test("who is rewound within a page that is kept and takes it back holds it once", () => {
  const { rows, compute, check, memories } = fakePages({ pages: [3], slots: 1 });
  const tokens = text(128);
  compute(0, tokens, 0);
  rows.note(0, { tokens, key: "" });
  assertEquals(rows.truncate(0, 30), 30);
  assertEquals(rows.adopt(0, { tokens, key: "" }), 128);
  check(0, tokens);
  rows.close(0);
  assertEquals([rows.freeTokens, memories[0]!.copied], [3 * PAGE_ROWS, 0]);
});

Deno.test("pages outlive the slot that filled them, until room is wanted: the oldest text goes first", () => {
  const { rows, compute, check } = fakePages({ pages: [7], slots: 2 });
  for (const start of [0, 1000, 2000]) {
    const tokens = text(128, start);
    compute(0, tokens, 0);
    rows.note(0, { tokens, key: "" });
    rows.close(0);
  }
  assertEquals(rows.freeTokens, 7 * PAGE_ROWS);
  assertEquals(rows.adopt(0, { tokens: text(128), key: "" }), 128);
  check(0, text(128));
  const fresh = text(150, 5000);
  compute(1, fresh, 0);
  check(0, text(128));
  rows.close(1);
  assertEquals(rows.adopt(1, { tokens: text(128, 2000), key: "" }), 128);
  rows.close(1);
  assertEquals(rows.adopt(1, { tokens: text(128, 1000), key: "" }), 0);
});

Deno.test("a shared page is copied by who writes it, and the last holder writes it where it is", () => {
  const { rows, compute, check, memories } = fakePages({ pages: [10], slots: 2 });
  const tokens = text(100);
  compute(0, tokens, 0);
  rows.fork({ slot: 0, length: 100 }, 1);
  const left = [...tokens, 7], right = [...tokens, 8];
  compute(0, left, 100);
  assertEquals(memories[0]!.copied, 36);
  compute(1, right, 100);
  assertEquals(memories[0]!.copied, 36);
  check(0, left);
  check(1, right);
  assertThrows(() => rows.fork({ slot: 0, length: 200 }, 1), RangeError, "does not have them");
});

Deno.test("rewinding gives pages back, and reserving says whether there is room", () => {
  const { rows, compute, check } = fakePages({ pages: [4], slots: 2 });
  compute(0, text(200), 0);
  assertEquals(rows.freeTokens, 0);
  assert(rows.reserve(0, 256));
  assert(!rows.reserve(1, 1));
  assertThrows(() => compute(1, [1], 0), ResourceError, "they hold 256 tokens");
  assertEquals(rows.truncate(0, 64), 64);
  assertEquals(rows.freeTokens, 3 * PAGE_ROWS);
  assert(rows.reserve(1, 192));
  check(0, text(64));
  assertThrows(() => rows.reserve(1, CAPACITY + 1), RangeError, "it holds 600");
});

Deno.test("what is kept of a slot's own text is given up where there is no room for a copy", () => {
  const { rows, compute, check, memories } = fakePages({ pages: [2], slots: 1 });
  const tokens = text(128);
  compute(0, tokens, 0);
  rows.note(0, { tokens, key: "" });
  rows.truncate(0, 30);
  const other = [...tokens.slice(0, 30), ...text(98, 1000)];
  compute(0, other, 30);
  check(0, other);
  assertEquals([memories[0]!.copied, rows.freeTokens], [0, 0]);
});

Deno.test("a sliding window keeps what a row may still see, and a few rows for a rewind", () => {
  const { rows, compute, check, held } = fakePages({
    pages: [20, 20],
    slots: 2,
    windows: [100, 0],
  });
  const tokens = text(500);
  for (let from = 0; from < 500; from += 8) compute(0, tokens.slice(0, from + 8), from);
  check(0, tokens);
  assertEquals([held(0), held(1)], [8, 4]);
  assertEquals(rows.truncate(0, 490), 490);
  check(0, tokens.slice(0, 490));
  rows.note(0, { tokens: tokens.slice(0, 490), key: "" });
  // The rows that one at 200 sees are gone; those at the end of the text are not.
  assertEquals(rows.adopt(1, { tokens: tokens.slice(0, 200), key: "" }), 0);
  assertEquals(rows.adopt(1, { tokens: tokens.slice(0, 448), key: "" }), 448);
  check(1, tokens.slice(0, 448));
  assertEquals(rows.truncate(0, 200), 0);
  assertEquals(held(1), 3);
});

Deno.test("texts lie in pages that follow each other, also those that grow side by side", () => {
  const { compute, memories } = fakePages({ pages: [64], slots: 4 });
  const [{ table }] = memories as [typeof memories[0]];
  const entries = table.length / 4;
  for (let length = 50; length <= 500; length += 50) {
    for (let slot = 0; slot < 4; slot++) compute(slot, text(length, slot * 1000), length - 50);
  }
  for (let slot = 0; slot < 4; slot++) {
    const pages = [...table.subarray(slot * entries, slot * entries + 8)];
    assertEquals(pages, pages.map((_, i) => pages[0]! + i));
  }
});

Deno.test("random openings, appends, forks, rewinds, adoptions and closings are those of plain lists", () => {
  for (const [seed, windows] of [[1, []], [2, [70, 0]], [3, [70, 70]]] as const) {
    const slots = 6, pages = windows.length === 2 && windows[1] === 0 ? [24, 30] : [24];
    const { rows, compute, check, memories } = fakePages({ pages, slots, windows });
    const random = createCaseRandom(seed);
    const draw = (count: number) => random.integer(0, count - 1);
    const lists: number[][] = Array.from({ length: slots }, () => []);
    // Texts of few kinds, so that many begin alike.
    const tokenOf = (kind: number, position: number) =>
      position < 90 ? position : position * 10 + kind;
    for (let turn = 0; turn < 300; turn++) {
      const slot = draw(slots), list = lists[slot]!, action = draw(6);
      if (action <= 1) {
        const kind = draw(3), more = 1 + draw(60);
        const next = [...list];
        while (next.length < Math.min(CAPACITY, list.length + more)) {
          next.push(tokenOf(kind, next.length));
        }
        const adopted = rows.adopt(slot, { tokens: next.slice(0, -1), key: "" });
        list.push(...next.slice(list.length, adopted));
        check(slot, list);
        if (next.length > list.length && rows.reserve(slot, next.length)) {
          compute(slot, next, list.length);
          lists[slot] = next;
          rows.note(slot, { tokens: next, key: "" });
        }
      } else if (action === 2) {
        const to = draw(slots);
        if (to !== slot && list.length > 0) {
          rows.fork({ slot, length: list.length }, to);
          lists[to] = [...list];
        }
      } else if (action === 3 && list.length > 0) {
        const length = Math.max(0, list.length - 1 - draw(80));
        lists[slot] = list.slice(0, rows.truncate(slot, length));
      } else if (action === 4) {
        rows.close(slot);
        lists[slot] = [];
      }
      lists.forEach((list, slot) => check(slot, list));
    }
    // Nobody holds anything: every page is free, or is kept.
    lists.forEach((_, slot) => rows.close(slot));
    assertEquals(rows.freeTokens, rows.poolTokens);
    memories.forEach(({ table }) => assert(table.every((page) => page === NO_PAGE)));
  }
});

Deno.test("pages are given up in one order, one by one or several at once", () => {
  const remaining = (wanted: number, most: number) => {
    const pool = new PagePool(12), kept = new KeptTexts([pool], [0]);
    const pages = Array.from({ length: pool.count }, () => pool.take(NO_PAGE));
    // The third goes on where the first began.
    const texts = [1, 2, 1].map((first, i) =>
      Int32Array.from({ length: 4 * PAGE_ROWS }, (_, at) => at < PAGE_ROWS ? first : i)
    );
    for (const [i, text] of texts.entries()) {
      kept.keep(text, { key: "", isWhole: true, pageOf: (_, index) => pages[4 * i + index]! });
    }
    for (const page of pages) pool.release(page); // slots let go of them
    while (pool.free < wanted) kept.giveUp(0, Math.min(most, wanted - pool.free));
    return [pool.free, ...texts.map((text) => kept.find(text, "").whole.length)];
  };
  assertEquals(remaining(6, 12), [6, 1, 2, 4]);
  for (let wanted = 2; wanted <= 12; wanted++) {
    assertEquals(remaining(wanted, 12), remaining(wanted, 1));
  }
});
