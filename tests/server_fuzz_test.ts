// Requests drawn from the fields of the API, against a tiny model that really answers. Mutated texts are a target of
// `deno task fuzz`, which tests/fuzz_test.ts runs.

import { assert } from "@std/assert";
import fc from "fast-check";
import { createApp } from "../engine/serve/http/app.ts";
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
  await fc.assert(holds, { seed: 7, numRuns: 120 });
  // They must reach the engine, and be refused, too.
  const count = (status: number) => statuses.filter((one) => one === status).length;
  assert(count(200) > 30 && count(400) > 20, `${count(200)} answered, ${count(400)} refused`);
});

Deno.test("the requests that deno task fuzz mutates are good ones", async () => {
  const { seeds, run } = targets.requests!;
  for (const seed of seeds()) await run(seed);
});
