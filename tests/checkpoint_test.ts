// One model in the containers of other programs: a PyTorch checkpoint of mixed types and strides, and
// llama2.c's int8 file. Both must answer as outside implementations do.

import { assert, assertEquals } from "@std/assert";
import { load } from "../mod.ts";
import { fixturePath, readFixture } from "./support/fixtures.ts";

interface Case {
  readonly input_ids: readonly number[];
  readonly last_logits?: readonly number[];
  readonly last_logits_first64?: readonly number[];
  readonly greedy_ids: readonly number[];
}

const containers: Readonly<Record<string, { files: string[]; cases: Case[] }>> = JSON.parse(
  readFixture("models/llama_formats/containers.json"),
);

for (const [name, { files, cases }] of Object.entries(containers)) {
  Deno.test(`${name} gives the stored logits and greedy tokens`, async () => {
    using model = await load(fixturePath(`models/llama_formats/${files[0]}`), {
      device: "reference",
      precision: "exact",
      kvFormat: "F32",
    });
    for (const { input_ids, last_logits, last_logits_first64, greedy_ids } of cases) {
      using session = model.createSession();
      await session.sync(input_ids);
      for (const [i, wanted] of (last_logits ?? last_logits_first64)!.entries()) {
        assert(Math.abs(session.logits()[i]! - wanted) < 1e-4, `logit ${i}`);
      }
      for (const wanted of greedy_ids) {
        const logits = session.logits();
        const best = logits.indexOf(Math.max(...logits));
        assertEquals(best, wanted);
        await session.eval([best]);
      }
    }
  });
}
