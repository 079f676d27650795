import { assertEquals, assertThrows } from "@std/assert";
import { fixturePath } from "../../tests/support/fixtures.ts";
import { placementCases } from "../../tools/fixtures/decoding_placement.ts";
import { layerRanges, parseGroups } from "./grammar.ts";

for (const { name, run } of placementCases(fixturePath("decoding"))) {
  Deno.test(`${name} shares layers and heads as Inferflow's table 4 does`, () => run!());
}

Deno.test("groups may say how many layers they have, and the others share the rest", () => {
  assertEquals(layerRanges(parseGroups("wasm=3; gpu0;gpu1"), 10), [[0, 3], [3, 7], [7, 10]]);
  assertThrows(
    () => layerRanges(parseGroups("0=4;1=4"), 10),
    RangeError,
    "it has 10 layers, and the placement gives out 8",
  );
  assertThrows(() => layerRanges(parseGroups("0;1;2"), 2), RangeError, "on 3 groups");
});

Deno.test("what is no placement is refused by what is wrong with it", () => {
  for (
    const [text, why] of [
      ["0&1;2", "groups must have as many devices each, and they have 2 and 1"],
      ["0;0", "device 0 stands there twice"],
      ["", "is no group of devices"],
      ["0;;1", "is no group of devices"],
      ["0&", "is no group of devices"],
      ["0=x", "is no group of devices"],
    ] as const
  ) assertThrows(() => parseGroups(text), RangeError, why);
});
