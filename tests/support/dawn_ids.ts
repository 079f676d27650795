// Ids of an answer that Dawn computes, for a process whose environment names its driver. Few rows a step, and no checks of
// kernels: SwiftShader takes ten seconds to compile a tile of products.

import { generate, load } from "../../mod.ts";
import { openDawn } from "../../engine/run/dawn.ts";

const [path, prompt, maxTokens] = Deno.args as [string, string, string];
using model = await load(path, {
  ...{ device: "gpu", gpu: await openDawn("dawn"), selfTest: false, contextLength: 16, batch: 4 },
});
const { ids } = await generate(model, prompt, {
  maxTokens: Number(maxTokens),
  temperature: 0,
}).result;
console.log(JSON.stringify(ids));
