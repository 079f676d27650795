import { assertEquals } from "@std/assert";
import { occurrences } from "./fault.ts";
import { faults } from "./faults.ts";

Deno.test("the text of every deliberate fault stands once in its file", () => {
  const stale = faults.filter((fault) => occurrences(fault) !== 1);
  assertEquals(stale.map(({ file, what }) => `${file}: ${what}`), []);
});
