// Asks a model that sees about a picture, and then something more: the picture is looked at once.
//
//   deno run --allow-read --allow-env examples/picture_chat.ts MODEL PICTURE
//
// MODEL is a folder such as SmolVLM-256M-Instruct's, PICTURE a PNG, JPEG or WebP file.

import { chat, type ChatMessage, load } from "../mod.ts";

const [name, picture] = Deno.args;
if (name === undefined || picture === undefined) throw new TypeError("Name a model and a picture");

using model = await load(name);
using session = model.createSession();
const messages: ChatMessage[] = [];

async function ask(content: NonNullable<ChatMessage["content"]>): Promise<void> {
  messages.push({ role: "user", content });
  const { text, stats } = await chat(session, messages, { maxTokens: 64 }).result;
  messages.push({ role: "assistant", content: text });
  console.log(text, `(${stats.prefillTokens} of ${stats.promptTokens} tokens computed)`);
}

await ask([{ type: "image", image: picture }, { type: "text", text: "What is this?" }]);
await ask([{ type: "text", text: "Which colours does it have?" }]);
