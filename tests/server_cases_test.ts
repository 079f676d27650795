// Requests of public bug reports about servers, each with the answer that it must get, against a tiny model that really
// answers. The stored copy lies in tests/fixtures/public.

import { assert, assertEquals } from "@std/assert";
import { createApp } from "../engine/serve/http/app.ts";
import {
  checkServerCase,
  knowsServerCase,
  type ServerCase,
} from "../tools/fixtures/public_server.ts";
import { fixturePath } from "./support/fixtures.ts";
import { servedModels } from "./support/served_models.ts";

Deno.test("every request of the reports gets the answer that it must get", async (t) => {
  const { cases } = JSON.parse(
    Deno.readTextFileSync(fixturePath("public/pc-srv-01/expected.json")),
  );
  assertEquals(cases.length, 29);
  await using engine = servedModels();
  const { fetch } = await createApp({ engine, cors: ["*"] });
  for (const one of cases as readonly ServerCase[]) {
    assert(knowsServerCase(one), one.name);
    await t.step(one.name, () => checkServerCase(one, fetch));
  }
});
