// Encoding and decoding of a page of text, by vocabulary. Needs the models in the cache.

import { findBenchModel } from "./support/models.ts";
import { modelTokenizer } from "../tools/fixtures/model_tokenizer.ts";

for (const name of ["smollm2-135m", "gemma3-270m", "minilm"]) {
  const tokenizer = await modelTokenizer(name);
  if (!tokenizer) {
    console.warn(`skipped: tokenizer ${name}: troodon pull ${name} fetches it`);
    continue;
  }
  const { ids } = await findBenchModel(name);
  const text = tokenizer.decode(ids, { skipSpecial: true });
  Deno.bench({
    name: `encode ${text.length} characters, ${name}`,
    group: "encode",
    baseline: name === "smollm2-135m",
    fn: () => {
      tokenizer.encode(text);
    },
  });
  Deno.bench({
    name: `decode ${ids.length} ids, ${name}`,
    group: "decode",
    baseline: name === "smollm2-135m",
    fn: () => {
      tokenizer.decode(ids);
    },
  });
}
