// Loads a model, fills some of its context and prints what it planned and what the process has taken at
// most. Tests run it as a process of its own, since the peak belongs to a process.
//
//   deno run … tests/support/peak_memory.ts MODEL [OPTIONS]

import { generate, load } from "../../mod.ts";
import { peakResidentBytes } from "../../engine/cli/machine.ts";

const options = Deno.args[1] ? JSON.parse(Deno.args[1]) : { contextLength: 2048 };
using model = await load(Deno.args[0] ?? "", { device: "wasm", ...options });
const length = Math.min(600, model.info.contextLength / 2);
const prompt = Array.from({ length }, (_, i) => 100 + i);
await generate(model, prompt, { maxTokens: 16, ignoreEos: true }).result;
console.log(JSON.stringify({ peak: peakResidentBytes(), memory: model.memory }));
