import { assertEquals } from "@std/assert";
import { inGroups, LONG, longFirst, report, slowest, sources } from "./test.ts";

const TEST = { file: "a_test.ts", name: "adds", seconds: 1 };

Deno.test("a run fails when a test fails or a process says so, not when one breaks off after all of its tests", () => {
  const passed = { ...TEST, outcome: "passed" } as const;
  const failed = { ...TEST, outcome: "failed" } as const;
  const skipped = { ...TEST, outcome: "skipped" } as const;
  const cases = [
    { exit: 0, outcomes: [passed], strict: false, code: 0 },
    { exit: 1, outcomes: [failed, passed], strict: false, code: 1 },
    { exit: 1, outcomes: [passed], strict: false, code: 1 }, // a leak, or a file that does not load
    { exit: 134, outcomes: [passed], strict: true, code: 0 },
    { exit: 134, outcomes: [failed], strict: false, code: 1 },
    { exit: 137, outcomes: [passed], strict: false, code: 1 }, // killed
    { exit: 134, outcomes: [], strict: false, code: 1 }, // nothing was reported: it broke off in between
    { exit: 0, outcomes: [passed, skipped], strict: false, code: 0 },
    { exit: 0, outcomes: [passed, skipped], strict: true, code: 1 },
  ];
  for (const { exit, outcomes, strict, code } of cases) {
    assertEquals(report([{ exit, outcomes }], strict).exit, code, `${exit} ${strict}`);
  }
  const { lines } = report([{ exit: 1, outcomes: [failed, passed] }, {
    exit: 134,
    outcomes: [passed, skipped],
  }], false);
  assertEquals(lines, [
    "failed: a_test.ts: adds",
    "skipped: a_test.ts: adds",
    "note: a process of tests broke off with 134 when all of its tests were done",
    "2 passed, 1 failed, 1 skipped",
  ]);
});

Deno.test("long files are there, and begin before all others", () => {
  const paths = sources();
  assertEquals(LONG.filter((path) => !paths.includes(path)), []);
  const given = ["tests/api_test.ts", LONG[2]!, "tests/words_test.ts", LONG[0]!];
  assertEquals(longFirst(given), [LONG[0], LONG[2], "tests/api_test.ts", "tests/words_test.ts"]);
});

Deno.test("the tests that took longest are listed, longest first", () => {
  const outcomes = [1, 12.34, 5].map((seconds) =>
    ({ ...TEST, seconds, outcome: "passed" }) as const
  );
  assertEquals(slowest([{ exit: 0, outcomes }], 2), [
    "12.3 s: a_test.ts: adds",
    "5.0 s: a_test.ts: adds",
  ]);
});

Deno.test("short files are loaded by dozens, or fewer where jobs would be idle, and long ones alone", () => {
  const short = Array.from({ length: 100 }, (_, i) => `tests/${i}_test.ts`);
  const sizes = (files: readonly string[], jobs: number) =>
    inGroups(files, jobs).map(({ length }) => length);
  assertEquals(inGroups([LONG[1]!, ...short.slice(0, 2)], 1), [[LONG[1]], [short[0]], [short[1]]]);
  assertEquals(sizes([LONG[0]!, ...short], 2), [1, ...Array(8).fill(12), 4]);
  assertEquals(sizes(short, 8), Array(25).fill(4));
  assertEquals(inGroups(short, 3).flat(), short);
  assertEquals(inGroups([], 4), []);
});
