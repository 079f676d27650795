// A conversation that goes on where it stopped: its messages lie in a file.
//
//   deno run --allow-read --allow-write --allow-env examples/chat_history.ts talk.json "My name is Ada."
//   deno run --allow-read --allow-write --allow-env examples/chat_history.ts talk.json "What is my name?"

import { chat, type ChatMessage, load } from "../mod.ts";

const [path = "talk.json", text = "Hello!"] = Deno.args;

async function readMessages(): Promise<ChatMessage[]> {
  try {
    return JSON.parse(await Deno.readTextFile(path));
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) {
      return [{ role: "system", content: "Answer in one sentence." }];
    }
    throw error;
  }
}

const messages = [...await readMessages(), { role: "user", content: text }];
using model = await load("smollm2-135m");
const answer = chat(model, messages, { maxTokens: 60, temperature: 0 });
for await (const { text } of answer) Deno.stdout.writeSync(new TextEncoder().encode(text));
console.log();

const { text: content } = await answer.result;
await Deno.writeTextFile(path, JSON.stringify([...messages, { role: "assistant", content }]));
