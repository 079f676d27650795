// Ids of an answer that Dawn computes, and whether its results are read without turns of the event loop, for a process whose
// environment names its driver. Few rows a step, and no checks of
// kernels: SwiftShader takes ten seconds to compile a tile of products.

import { generate, load } from "../../mod.ts";
import { openDawn } from "../../engine/run/dawn.ts";
import { openGpu } from "../../gpu/gpu.ts";
import { createReadback } from "../../gpu/readback.ts";

const [path, prompt, maxTokens] = Deno.args as [string, string, string];
const provider = await openDawn("dawn");
const gpu = await openGpu({ provider });
const { isImmediate } = await createReadback(gpu, 4);
gpu.dispose();
using model = await load(path, {
  ...{ device: "gpu", gpu: provider, selfTest: false, contextLength: 16, batch: 4 },
});
const { ids } = await generate(model, prompt, {
  maxTokens: Number(maxTokens),
  temperature: 0,
}).result;
console.log(JSON.stringify({ ids, isImmediate }));
