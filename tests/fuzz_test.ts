// A thousand seeded inputs for every fuzz target; long runs are `deno task fuzz TARGET --count N`.

import { assertEquals } from "@std/assert";
import { mutate } from "../tools/fuzz/mutate.ts";
import { type FuzzReply, runInputs } from "../tools/fuzz/worker.ts";
import { targets } from "../tools/fuzz/targets.ts";

Deno.test("mutate() depends on seed and index only", () => {
  const seeds = [new TextEncoder().encode("good input"), new Uint8Array(64)];
  assertEquals(mutate(seeds, ["word"], 7, 3), mutate(seeds, ["word"], 7, 3));
  const distinct = new Set(
    Array.from({ length: 100 }, (_, i) => mutate(seeds, ["word"], 7, i).toHex()),
  );
  assertEquals(distinct.size > 80, true);
});

for (const target of Object.keys(targets)) {
  Deno.test(`1000 mutated inputs do no harm to ${target}`, async () => {
    const replies: FuzzReply[] = [];
    const progress = new Int32Array(new SharedArrayBuffer(8));
    const order = { target, seed: 1, from: 0, to: 1000, memory: 512e6, progress };
    await runInputs(order, (reply) => replies.push(reply));
    assertEquals(replies, [{ kind: "done" }]);
  });
}
