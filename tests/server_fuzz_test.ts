// Requests drawn from the fields of the API, against a tiny model that really answers, and mutated ones against a script.

import { assert } from "@std/assert";
import fc from "fast-check";
import { createApp } from "../engine/serve/http/app.ts";
import { mutate } from "../tools/fuzz/mutate.ts";
import { targets } from "../tools/fuzz/targets.ts";
import { checkRequest, requests } from "./support/fuzz_requests.ts";
import { servedModels } from "./support/served_models.ts";

Deno.test("no request that the fields can say is a fault of the server, and the next is answered", async () => {
  await using engine = servedModels();
  const { fetch } = await createApp({ engine });
  const statuses: number[] = [];
  const holds = fc.asyncProperty(requests, async (request) => {
    statuses.push(await checkRequest(fetch, request));
  });
  await fc.assert(holds, { seed: 7, numRuns: 200 });
  // They must reach the engine, and be refused, too.
  const count = (status: number) => statuses.filter((one) => one === status).length;
  assert(count(200) > 30 && count(400) > 30, `${count(200)} answered, ${count(400)} refused`);
});

Deno.test("no mutated text is a fault of the server, and the next request is answered", async () => {
  const { seeds, words, run } = targets.requests!;
  const good = seeds();
  for (const seed of good) await run(seed);
  for (let index = 0; index < 1000; index++) {
    const bytes = mutate(good, words, 7, index);
    try {
      await run(bytes);
    } catch (cause) {
      throw new Error(`input ${index}: ${new TextDecoder().decode(bytes)}`, { cause });
    }
  }
});
