// The /commands of `troodon chat`, as a table. A command changes the conversation or says something; it
// never computes.

import type { ChatMessage } from "../../text/chat_template.ts";
import { nearest } from "../../nearest.ts";
import { readText, writeText } from "../machine.ts";

/** A conversation under way. */
export interface Conversation {
  system: string | undefined;
  messages: ChatMessage[];
  /** What to say about the last answer's speed. */
  stats: string;
  done: boolean;
  /** How many of its messages the last prompt had no room for. */
  dropped: number;
}

/** A /command: returns what to say. */
export interface ChatCommand {
  readonly argument?: string;
  readonly summary: string;
  run(conversation: Conversation, argument: string): string | Promise<string>;
}

/** Commands by name. */
const chatCommands: Readonly<Record<string, ChatCommand>> = {
  help: { summary: "show this list", run: () => helpText() },
  reset: {
    summary: "forget the conversation, keep the instruction",
    run: (conversation) => {
      conversation.messages = [];
      return "Forgotten.";
    },
  },
  system: {
    argument: "TEXT",
    summary: "set the instruction and start anew; without TEXT show it",
    run: (conversation, text) => {
      if (text === "") return conversation.system ?? "The model's own instruction.";
      conversation.system = text;
      conversation.messages = [];
      return "Instruction set, conversation begun anew.";
    },
  },
  save: {
    argument: "FILE",
    summary: "write the conversation as JSON",
    run: async ({ system, messages }, path) => {
      if (path === "") return "Say where to: /save FILE";
      await writeText(path, JSON.stringify({ system, messages }, undefined, 2) + "\n");
      return `${messages.length} messages written to ${path}.`;
    },
  },
  load: {
    argument: "FILE",
    summary: "go on with a saved conversation",
    run: async (conversation, path) => {
      if (path === "") return "Say where from: /load FILE";
      const { system, messages } = parseConversation(path, await readText(path));
      conversation.system = system;
      conversation.messages = messages;
      return `${messages.length} messages read.`;
    },
  },
  stats: { summary: "speed and memory of the last answer", run: ({ stats }) => stats },
  exit: {
    summary: "leave (also Ctrl-D)",
    run: (conversation) => {
      conversation.done = true;
      return "";
    },
  },
};

function helpText(): string {
  const rows = Object.entries(chatCommands).map(([name, { argument = "", summary }]) =>
    `  ${`/${name} ${argument}`.padEnd(15)}${summary}`
  );
  return [
    ...rows,
    '  A line ending in \\ goes on with the next; a text between """ may have many lines.',
    "  Ctrl-C stops an answer; at the prompt, pressed twice, it leaves.",
  ].join("\n");
}

function isMessage(value: unknown): value is ChatMessage {
  const { role, content } = (value ?? {}) as Partial<Record<string, unknown>>;
  return typeof role === "string" && typeof content === "string";
}

/**
 * Reads what /save wrote.
 *
 * @throws {TypeError} If it is something else.
 */
function parseConversation(
  path: string,
  text: string,
): { readonly system: string | undefined; readonly messages: ChatMessage[] } {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new TypeError(`${path} is no JSON: give a file that /save wrote`);
  }
  const { system, messages } = (value ?? {}) as { system?: unknown; messages?: unknown };
  const sound = Array.isArray(messages) && messages.every(isMessage) &&
    (system === undefined || typeof system === "string");
  if (!sound) throw new TypeError(`${path} is no conversation: give a file that /save wrote`);
  return { system: system as string | undefined, messages };
}

/** Runs a line that starts with a slash and returns what to say. */
export async function runChatCommand(conversation: Conversation, line: string): Promise<string> {
  const [, name = "", argument = ""] = /^\/(\S*)\s*([\s\S]*)$/.exec(line)!;
  if (!Object.hasOwn(chatCommands, name)) {
    const near = nearest(name, Object.keys(chatCommands));
    return `No command /${name}. ${near ? `Did you mean /${near}?` : "See /help"}`;
  }
  return await chatCommands[name]!.run(conversation, argument.trim());
}
