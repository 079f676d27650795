// What a chat template can do, found by asking it: templates say nowhere whether they show tools, or whether
// the arguments of an earlier call have to be an object or a text. Whatever they do with a small conversation
// of made-up words tells.

import type { ChatMessage, ChatTemplate, ChatTemplateInput } from "../chat_template.ts";

const KEY = "probe_key";
const VALUE = "probe_value";
const TEXT = "probe_text";

/** How a template wants the arguments of earlier calls. */
export type ArgumentsForm = "object" | "text";

/**
 * Whether tools leave a trace in the prompt.
 *
 * @throws {FormatError} If the template refuses the messages.
 */
export function showsTools(template: ChatTemplate, input: ChatTemplateInput): boolean {
  const { tools: _, ...without } = { ...input, now: new Date(0) };
  return template.render({ ...input, now: new Date(0) }) !== template.render(without);
}

/** How earlier calls have to be given. Objects, as Python's templates have them, where both will do. */
export function argumentsForm(template: ChatTemplate): ArgumentsForm {
  const object = written(template, { [KEY]: VALUE });
  // A dictionary that was printed as Python prints it is no JSON.
  if (object?.includes(VALUE) && !object.includes(`'${KEY}'`)) return "object";
  return written(template, JSON.stringify({ [KEY]: VALUE }))?.includes(VALUE) ? "text" : "object";
}

/** Whether a template refuses several calls in one message, as that of Llama 3.1 does. */
export function takesOneCall(template: ChatTemplate, form: ArgumentsForm): boolean {
  const args = form === "text" ? "{}" : {};
  return written(template, args, 2) === undefined && written(template, args) !== undefined;
}

/** Whether a template reads contents that are lists of parts only. */
export function wantsParts(template: ChatTemplate): boolean {
  const shows = (content: NonNullable<ChatMessage["content"]>) =>
    attempt(template, { messages: [{ role: "user", content }] })?.includes(TEXT) ?? false;
  return !shows(TEXT) && shows([{ type: "text", text: TEXT }]);
}

/** Whether a template writes a mark where a part of a message is a picture. */
export function showsPictures(template: ChatTemplate, mark: string): boolean {
  const content = [{ type: "image" }, { type: "text", text: TEXT }];
  const prompt = attempt(template, { messages: [{ role: "user", content }] });
  return prompt?.includes(TEXT) === true && prompt.split(mark).length === 2;
}

function written(template: ChatTemplate, args: unknown, count = 1): string | undefined {
  const calls = Array.from({ length: count }, (_, index) => ({
    id: `call0000${index}`,
    type: "function",
    function: { name: "probe", arguments: args },
  }));
  const description = { name: "probe", description: "", parameters: { type: "object" } };
  return attempt(template, {
    messages: [
      { role: "user", content: "a" },
      { role: "assistant", content: "", tool_calls: calls },
      ...calls.map(({ id }) => ({ role: "tool", name: "probe", tool_call_id: id, content: "b" })),
    ],
    tools: [{ type: "function", function: description }],
  });
}

function attempt(template: ChatTemplate, input: ChatTemplateInput): string | undefined {
  try {
    return template.render({ ...input, addGenerationPrompt: true });
  } catch {
    return undefined;
  }
}
