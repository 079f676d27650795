import { assertEquals, assertNotEquals } from "@std/assert";
import type { AnswerJob } from "../engine.ts";
import { prefixHashes } from "./prefix_hashes.ts";

const hashesOf = (input: AnswerJob["input"], part: Partial<AnswerJob> = {}) =>
  prefixHashes({ model: "m", input, options: {}, ...part });
const text = Array.from({ length: 2_000 }, (_, i) => `${i} `).join("");

Deno.test("what begins alike has the hashes of its beginning, and none behind it", () => {
  const whole = hashesOf({ prompt: text });
  assertEquals(whole.length, Math.floor(text.length / 256));
  const other = hashesOf({ prompt: `${text.slice(0, 600)}!${text.slice(600)}` });
  assertEquals(other.slice(0, 2), whole.slice(0, 2));
  assertEquals(other.filter((hash) => whole.includes(hash)).length, 2);
  assertEquals(new Set([...whole, ...other]).size, 2 * whole.length - 2);
  assertEquals(hashesOf({ prompt: "short" }), []);
});

Deno.test("a conversation that goes on keeps its hashes", () => {
  const messages = [{ role: "system", content: text.slice(0, 900) }, {
    role: "user",
    content: "Hi",
  }];
  const before = hashesOf({ messages });
  const after = hashesOf({
    messages: [...messages, { role: "assistant", content: text.slice(900, 1500) }],
  });
  assertEquals(before.length, 3);
  assertEquals(after.slice(0, 3), before);
});

Deno.test("other models, tools and kinds of prompts are other beginnings", () => {
  const prompt = text.slice(0, 256);
  const one = hashesOf({ prompt });
  const tools = [{ type: "function", function: { name: "f" } }] as const;
  assertNotEquals(hashesOf({ prompt }, { model: "n" }), one);
  assertNotEquals(hashesOf({ prompt }, { options: { tools } }), one);
  assertEquals(hashesOf({ prefix: prompt, suffix: "x" }), one);
  assertEquals(hashesOf({ prompt: Array.from({ length: 300 }, (_, i) => i) }).length, 4);
  // However long it is, a front remembers so much of it.
  assertEquals(hashesOf({ prompt: "x".repeat(1_000_000) }).length, 128);
});
