// A model in this process behind the AI SDK: what is written for other providers runs here, without a server.
//
//   deno run --allow-read --allow-env --allow-sys=hostname examples/ai_sdk.ts [MODEL]

import { streamText } from "npm:ai@7.0.173";
import { createTroodon } from "../engine/serve/ai/mod.ts"; // outside of this repository: "jsr:@troodon/troodon/ai"

await using troodon = createTroodon();
const { textStream } = streamText({
  model: troodon(Deno.args[0] ?? "smollm2-135m"),
  prompt: "Name three rivers of Europe.",
  maxOutputTokens: 40,
});
for await (const text of textStream) await Deno.stdout.write(new TextEncoder().encode(text));
console.log();
