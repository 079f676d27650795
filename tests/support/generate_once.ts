// Generates a few tokens and prints them. Tests run it as a process of its own, with exactly the
// permissions that they are about.
//
//   deno run … tests/support/generate_once.ts MODEL [OPTIONS of load() as JSON]

import { generate, load } from "../../mod.ts";

const [model = "", options = "{}"] = Deno.args;
using loaded = await load(model, JSON.parse(options));
const { ids } = await generate(loaded, "a", { maxTokens: 4, ignoreEos: true }).result;
console.log(JSON.stringify({ device: loaded.device, ids }));
