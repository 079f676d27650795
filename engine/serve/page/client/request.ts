// The request for an answer. What is not set is not sent, so that the server's own defaults hold.

import { type Conversation, type Message, pathTo } from "./conversation.ts";

/** So many tokens stand beside each in the answer. The API has at most 20. */
const ALTERNATIVES = 5;

/**
 * The messages of a way. Answers that failed before their first word are none, and questions that follow each other for
 * that reason are one: many templates want roles in turns.
 */
function spoken(path: readonly Message[]): { role: string; content: string | Part[] }[] {
  const messages: { role: string; text: string; pictures: string[] }[] = [];
  for (const { role, text, picture } of path) {
    const before = messages.at(-1), pictures = picture === undefined ? [] : [picture];
    if (role === "assistant" && text === "") continue;
    if (before?.role === role) {
      before.text += `\n\n${text}`;
      before.pictures.push(...pictures);
    } else messages.push({ role, text, pictures });
  }
  return messages.map(({ role, text, pictures }) => ({
    role,
    content: pictures.length === 0 ? text : [...pictures.map(pictureOf), { type: "text", text }],
  }));
}

type Part = Readonly<Record<string, unknown>>;

function pictureOf(url: string): Part {
  return { type: "image_url", image_url: { url } };
}

/** The body of the request for an answer to the way that ends with `last`. */
export function requestBody(
  conversation: Conversation,
  last: Message,
): Record<string, unknown> {
  const { model, system = "", schema = "", stop = "", probabilities = true, thinking, numbers } =
    conversation.settings;
  const messages = spoken(pathTo(conversation, last.id));
  if (system.trim() !== "") messages.unshift({ role: "system", content: system });
  const stops = stop.split("\n").filter((line) => line !== "");
  return {
    model,
    messages,
    stream: true,
    stream_options: { include_usage: true },
    ...numbers,
    ...stops.length > 0 && { stop: stops },
    ...thinking !== undefined && { thinking },
    ...probabilities && { logprobs: true, top_logprobs: ALTERNATIVES },
    ...schema.trim() !== "" && {
      response_format: {
        type: "json_schema",
        json_schema: { name: "answer", schema: JSON.parse(schema), strict: true },
      },
    },
  };
}
