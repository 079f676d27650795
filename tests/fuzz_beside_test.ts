// A thousand seeded inputs for every comparison with an implementation in Python; long runs are `deno task fuzz TARGET`.

import { assertEquals, assertRejects } from "@std/assert";
import { ResourceError } from "../engine/errors.ts";
import { parseTemplate } from "../engine/text/jinja/parse_template.ts";
import { TemplateFailure } from "../engine/text/jinja/failure.ts";
import { compareTemplate } from "../tools/fuzz/beside/compare_templates.ts";
import { compareIds, openReference } from "../tools/fuzz/beside/compare_tokenizers.ts";
import { endReferences, reference } from "../tools/fuzz/beside/python.ts";
import { besideInput, besideTargets, needsOf } from "../tools/fuzz/beside/targets.ts";
import { type FuzzReply, runInputs } from "../tools/fuzz/worker.ts";
import { testWith } from "./support/skip.ts";
import { byteBpeKeys, toyTokenizer } from "./support/toy_vocabularies.ts";

for (const [target, beside] of Object.entries(besideTargets)) {
  testWith(
    needsOf(beside),
    `1000 made inputs give what the reference gives: ${target}`,
    async () => {
      const replies: FuzzReply[] = [];
      const progress = new Int32Array(new SharedArrayBuffer(8));
      const order = { target, seed: 1, from: 0, to: 1000, memory: 512e6, progress };
      await runInputs(order, (reply) => replies.push(reply));
      assertEquals(replies, [{ kind: "done" }]);
    },
  );
}

Deno.test("made inputs depend on seed and index only, and most templates can be parsed", () => {
  let parsed = 0;
  for (let index = 0; index < 200; index++) {
    const template = besideInput("templates", 3, index);
    assertEquals(template, besideInput("templates", 3, index));
    try {
      parseTemplate(template);
      parsed++;
    } catch (error) {
      if (!(error instanceof TemplateFailure)) throw error;
    }
  }
  assertEquals(parsed > 150, true, `${parsed} of 200`);
});

Deno.test("a missing package is an error that names it, not a pass", async () => {
  await assertRejects(
    () => reference("missing_reference.py", { nothing: "1" }),
    ResourceError,
    "missing_reference.py",
  );
  await endReferences();
});

testWith(needsOf(besideTargets.tokenizers!), "other ids are noticed", async () => {
  const document = {
    version: "1.0",
    added_tokens: [],
    model: { type: "WordLevel", unk_token: "u", vocab: { u: 0, hello: 1 } },
  };
  assertEquals(await openReference("toy", { kind: "tokenizers", document }), undefined);
  await assertRejects(
    () => compareIds(toyTokenizer(byteBpeKeys()), "toy", ["hello"]),
    Error,
    "there",
  );
  await endReferences();
});

testWith(needsOf(besideTargets.templates!), "another text is noticed", async () => {
  // The address of a function is another in every process, and refused here.
  await compareTemplate("{{ range }}");
  await assertRejects(() => compareTemplate("{{ strftime_now('%Y') }}"), Error, "1970");
  await endReferences();
});
