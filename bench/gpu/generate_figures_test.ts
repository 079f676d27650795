import { assertEquals } from "@std/assert";
import { promptMaker } from "./generate_figures.ts";

Deno.test("no prompt of a bench begins as another, a shorter one or the text does", () => {
  const ids = [7, 1, 2, 3, 4], promptOf = promptMaker(ids, 9);
  const prompts = [2, 2, 5, 5, 3].map(promptOf);
  assertEquals(prompts.map(({ length }) => length), [2, 2, 5, 5, 3]);
  assertEquals(new Set([ids, ...prompts].map(([first]) => first)).size, 6);
  assertEquals(prompts.map((prompt) => prompt.slice(1)), [[1], [1], [1, 2, 3, 4], [1, 2, 3, 4], [
    1,
    2,
  ]]);
});
