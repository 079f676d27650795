// Saves a conversation's computed state to a file, and goes on with it in another process without computing it
// again: run it twice.
//
//   deno run --allow-read --allow-env --allow-write=FILE examples/saved_session.ts FILE [MODEL]

import { chat, type ChatMessage, load } from "../mod.ts";

const [path = "session.bin", name = "smollm2-135m"] = Deno.args;
using model = await load(name);
using session = model.createSession();
const messages: ChatMessage[] = [
  { role: "system", content: "You are a guide to a museum of dinosaurs. ".repeat(10) },
  { role: "user", content: "Which one was the fastest?" },
];

const saved = await Deno.readFile(path).catch(() => undefined);
if (saved) {
  await session.load(saved);
  console.log(`${session.length} tokens read from ${path}`);
}
const { text, stats } = await chat(session, messages, { maxTokens: 40 }).result;
console.log(text);
console.log(`${stats.prefillTokens} tokens computed before the first word`);
if (!saved) {
  const bytes = await session.save();
  await Deno.writeFile(path, bytes);
  console.log(`${session.length} tokens saved, ${bytes.length} bytes; run it again`);
}
