import { assertEquals } from "@std/assert";
import fc from "fast-check";
import { createSuffixAutomaton } from "./suffix_automaton.ts";

/** The longest end of a text that stands in a list, and the place behind its first occurrence, by trying all. */
function byTrying(list: readonly number[], text: readonly number[]): [number, number] {
  for (let length = Math.min(list.length, text.length); length > 0; length--) {
    const end = text.slice(-length);
    for (let at = 0; at + length <= list.length; at++) {
      if (end.every((token, i) => token === list[at + i])) return [length, at + length];
    }
  }
  return [0, 0];
}

Deno.test("a follower knows the longest end of its text that stands in the list, after every token", () => {
  const tokens = fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 40 });
  fc.assert(fc.property(tokens, tokens, (list, text) => {
    const automaton = createSuffixAutomaton(list.length);
    for (const token of list) automaton.append(token);
    const follower = automaton.follow();
    for (const [i, token] of text.entries()) {
      follower.push(token);
      const [matched, place] = byTrying(list, text.slice(0, i + 1));
      assertEquals([follower.matched, matched > 0 ? follower.place : 0], [matched, place]);
    }
  }));
});
