import { assertEquals, assertThrows } from "@std/assert";
import { TOY_LIMITS, toyDecoder } from "../../../tests/support/toy_decoder.ts";
import { plan } from "../../plan/planner.ts";
import { pageGroups, pagesFor } from "./groups.ts";

const LAYERS = ["layers.0.keys", "layers.0.values", "layers.1.keys", "layers.1.values"];

function groupsOf(windows: readonly number[], capacity = 500) {
  return pageGroups(toyDecoder("f16", "F32", { capacity, windows }))
    .map(({ states, window, pagesPerSlot }) => [
      states.map(({ name }) => name),
      window,
      pagesPerSlot,
    ]);
}

Deno.test("states are a group if rows go to the same places of them and are seen equally long", () => {
  assertEquals(groupsOf([]), [[LAYERS, 0, 8]]);
  assertEquals(groupsOf([100, 0]), [[LAYERS.slice(2), 0, 8], [LAYERS.slice(0, 2), 100, 8]]);
  assertEquals(groupsOf([100, 100]), [[LAYERS, 100, 8]]);
  // Who sees as many rows as there are, sees all.
  assertEquals(groupsOf([100, 0], 100), [[LAYERS, 0, 2]]);
});

Deno.test("a pool has pages for its tokens, and of a window no more than slots can see at once", () => {
  const made = plan(toyDecoder("f16", "F32", { capacity: 4096, windows: [100, 0] }), {
    limits: TOY_LIMITS,
  });
  assertEquals(pagesFor(made, { slots: 1, tokens: 4096 }), [
    64,
    2 * (Math.ceil((100 + 64 + 8) / 64) + 1),
  ]);
  assertEquals(pagesFor(made, { slots: 100, tokens: 1000 }), [16, 16]);
  assertThrows(
    () => pagesFor(made, { slots: 1, tokens: 63 }),
    RangeError,
    "cacheTokens 63: a page has 64",
  );
});
