// Loads a model, fills some of its context and prints what it planned and what the process has taken at
// most. Tests run it as a process of its own, since the peak belongs to a process.
//
//   deno run … tests/support/peak_memory.ts MODEL

import { generate, load } from "../../mod.ts";
import { peakResidentBytes } from "../../engine/cli/machine.ts";

using model = await load(Deno.args[0] ?? "", { device: "wasm", contextLength: 2048 });
const prompt = Array.from({ length: 600 }, (_, i) => 100 + i);
await generate(model, prompt, { maxTokens: 16, ignoreEos: true }).result;
console.log(JSON.stringify({ peak: peakResidentBytes(), memory: model.memory }));
