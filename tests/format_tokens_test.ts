// Models in formats of their own generate the same tokens on WASM as on the reference.

import { assert, assertEquals, assertRejects } from "@std/assert";
import { load } from "../engine/models/load.ts";
import type { LoadOptions } from "../engine/decode/model.ts";
import { generate } from "../mod.ts";
import { withQuantized } from "./support/quantized_llama.ts";

const FORMATS = ["e0m4", "int4", "lf8", "q3h", "q8_b32t2", "i8pc", "iq4_nl", "q3_k", "mxfp4"];

async function tokens(path: string, options: LoadOptions): Promise<readonly number[]> {
  using model = await load(path, options);
  return (await generate(model, "aba", { maxTokens: 6, ignoreEos: true }).result).ids;
}

Deno.test("a model in any format generates the reference's tokens on WASM in exact precision", async () => {
  for (const format of FORMATS) {
    await withQuantized(format, async (path) => {
      const expected = await tokens(path, { device: "reference", precision: "exact" });
      for (const threads of [1, 2]) {
        const options = { device: "wasm", precision: "exact", threads } as const;
        assertEquals(await tokens(path, options), expected, format);
      }
    });
  }
});

Deno.test("a model in LF8 generates the reference's tokens in strict precision", async () => {
  await withQuantized("lf8", async (path) => {
    const expected = await tokens(path, { device: "reference", precision: "strict" });
    assertEquals(await tokens(path, { device: "wasm", precision: "strict", threads: 2 }), expected);
    using model = await load(path, { device: "wasm", precision: "strict" });
    assertEquals(model.info.precision, "strict");
    assertEquals(model.info.kvFormat, "F32");
  });
});

Deno.test("strict precision is refused where nothing is in LF8", async () => {
  await withQuantized("q4_0", async (path) => {
    const error = await assertRejects(
      () => load(path, { device: "wasm", precision: "strict" }),
      RangeError,
    );
    assert(error.message.includes("no matrix in LF8"), error.message);
  });
});
