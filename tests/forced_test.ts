// Answers that were begun elsewhere and go on: with the same seed and the tokens given so far they are the answers
// that nobody interrupted.

import { assertEquals, assertNotEquals, assertThrows } from "@std/assert";
import { chat } from "../engine/decode/chat.ts";
import { generate } from "../engine/decode/generate.ts";
import type { GenerateOptions } from "../engine/decode/generate_options.ts";
import { loadTiny } from "./support/models.ts";

const schema = { type: "object", properties: { a: { type: "array", items: { type: "integer" } } } };

const WAYS: Readonly<Record<string, GenerateOptions>> = {
  "a greedy": {},
  "a drawn": { temperature: 1.2, seed: 3 },
  "a top-k": { temperature: 1, topK: 8, seed: 4 },
  "a mirostat": { strategy: { name: "mirostat_v2", tau: 4, eta: 0.3 }, temperature: 1, seed: 5 },
  "a penalised": { temperature: 1, repeatPenalty: 1.3, frequencyPenalty: 0.4, seed: 6 },
  "a constrained": { schema, temperature: 1.5, seed: 7 },
  "a looked-up": { draft: "lookup", temperature: 0.3, seed: 8 },
};

for (const [name, options] of Object.entries(WAYS)) {
  Deno.test(`${name} answer goes on from any of its tokens`, async () => {
    using model = await loadTiny({ precision: "exact", sessions: 2 });
    const all = { ...options, maxTokens: 24, ignoreEos: name !== "a constrained" };
    const whole = await generate(model, "Once upon", all).result;
    for (const at of [1, 2, 9, whole.ids.length - 1, whole.ids.length]) {
      const forced = whole.ids.slice(0, at);
      const again = await generate(model, "Once upon", { ...all, forced }).result;
      assertEquals([again.ids, again.text, again.finishReason], [
        whole.ids,
        whole.text,
        whole.finishReason,
      ], `from token ${at}`);
    }
  });
}

Deno.test("forced tokens are taken where the sampler would take others", async () => {
  using model = await loadTiny({ chatTemplate: "{{ messages[0].content }}" });
  const { ids } = await generate(model, "Once", { maxTokens: 4 }).result;
  const forced = ids.slice(0, 2).map((id) => (id + 1) % model.tokenizer.vocabSize);
  assertNotEquals(forced, ids.slice(0, 2));
  const other = await generate(model, "Once", { maxTokens: 4, forced }).result;
  assertEquals(other.ids.slice(0, 2), forced);
  const said = await chat(model, [{ role: "user", content: "Once" }], { maxTokens: 4, forced })
    .result;
  assertEquals(said.ids.slice(0, 2), forced);
});

Deno.test("what is forced are tokens, and nobody else proposes some by chance", async () => {
  using model = await loadTiny();
  using draft = await loadTiny();
  const { vocabSize } = model.tokenizer;
  for (const forced of [[vocabSize], [-1], [0.5], "ab" as unknown as number[]]) {
    assertThrows(() => generate(model, "Once", { forced }), RangeError, "Cannot use forced");
  }
  assertThrows(
    () => generate(model, "Once", { forced: [1], draft }),
    RangeError,
    "Cannot use forced with a model as draft",
  );
});
