// Decoding within a schema beside plain decoding, this engine both times, on the same prompt: greedy, where a mask is
// needed only when the best token is not allowed, and drawn, where each token needs one. Masks are also timed alone,
// along the answer that came out, first with nothing known of the schema and then again, and schemas that people publish
// are compiled.

import { loadTokenizer } from "../../mod.ts";
import { createConstraint } from "../../engine/text/grammar/constraint.ts";
import { compileSchema } from "../../engine/text/grammar/schema/compile.ts";
import type { Reply } from "../support/runner.ts";
import { alternate } from "./alternate.ts";
import type { CaseInput, Contender, Measured } from "./case.ts";
import { realSchemas } from "./real_schemas.ts";

const DRAWN = { topK: 40, seed: 7 } as const;
/** Long enough for every answer of the bench, and of what answers are made of. */
const SCHEMA = {
  type: "array",
  minItems: 500,
  items: {
    type: "object",
    properties: {
      name: { type: "string", minLength: 1, maxLength: 40 },
      age: { type: "integer", minimum: 0, maximum: 120 },
      role: { enum: ["admin", "editor", "reader"] },
      tags: { type: "array", items: { type: "string", pattern: "^[a-z]{2,12}$" }, maxItems: 3 },
      note: { anyOf: [{ type: "null" }, { type: "string", maxLength: 120 }] },
    },
    required: ["name", "age", "role", "tags"],
    additionalProperties: false,
  },
} as const;

const rate = ({ ids = [], ms = NaN }: Reply): number => (ids.length - 1) / ms * 1000;

/** The case. */
export async function* schema(input: CaseInput): AsyncGenerator<Measured> {
  const { model: { ids, path }, options: { rounds, decode: count } } = input;
  const own = input.contenders.find(({ peer }) => !peer)!;
  const bound: Contender = { ...own, name: "within a schema" };
  const plain: Contender = { ...own, name: "plain decoding" };
  const prompt = ids.slice(0, 32);
  const answers = new Map<string, readonly number[]>();
  for (const [name, draw] of [["greedy", {}], ["drawn", DRAWN]] as const) {
    const samples = await alternate([bound, plain], { rounds }, async (runner, contender) => {
      const options = { ...draw, ...contender === bound && { schema: SCHEMA } };
      const reply = await runner.ask({ op: "decode", ids: prompt, count, options });
      if (contender === bound) answers.set(name, reply.ids!);
      return rate(reply);
    });
    yield { name: `schema ${name}`, unit: "tokens/s", samples };
  }
  const tokenizer = await loadTokenizer(path);
  const first: Contender = { ...own, name: "first time" };
  const again: Contender = { ...own, name: "again" };
  const masks = new Map([first, again].map((one) => [one, [] as number[]]));
  for (let round = 0; round < rounds; round++) {
    // Another text of the same schema shares nothing with one compiled before.
    const grammar = compileSchema({ ...SCHEMA, $comment: `round ${round}` });
    for (const times of masks.values()) {
      const constraint = createConstraint(grammar, { tokenizer });
      let ms = 0;
      for (const id of answers.get("drawn")!) {
        const start = performance.now();
        constraint.mask();
        constraint.accept(id);
        ms += performance.now() - start;
      }
      times.push(ms / answers.get("drawn")!.length);
    }
  }
  yield { name: "mask a token", unit: "ms", samples: masks };
  if (!input.options.peer) return; // Then nothing is fetched.
  for (const { name, schema, size } of await realSchemas()) {
    const times: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const start = performance.now();
      compileSchema({ ...schema, $comment: `round ${round}` });
      times.push(performance.now() - start);
    }
    const samples = new Map([[own, times]]);
    yield { name: `compile ${name}, ${Math.round(size / 1000)} kB`, unit: "ms", samples };
  }
}
