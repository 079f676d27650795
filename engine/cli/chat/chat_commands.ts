// The /commands of `troodon chat`, as a table. A command changes the conversation, says something, or asks for a turn
// or another model; it never computes.

import type { ChatMessage } from "../../text/chat_template.ts";
import { nearest } from "../../nearest.ts";
import { checkImages } from "../flags.ts";
import { readText, writeText } from "../machine.ts";

/** A conversation under way. */
export interface Conversation {
  system: string | undefined;
  messages: ChatMessage[];
  /** Pictures that go with the next turn. */
  images: string[];
  /** What to say about the last answer's speed. */
  stats: string;
  done: boolean;
  /** Flags of sampling and limits as they are now, by name: what /set shows and changes. */
  readonly settings: Settings;
  /** How many of its messages the last prompt had no room for. */
  dropped: number;
}

/** Flags that may be changed while talking. */
export interface Settings {
  /** Those that are set. */
  list(): readonly (readonly [name: string, value: string])[];
  /** @throws {Error} In the words of the command line, if there is no such flag, or its value is wrong. */
  set(name: string, value: string): void;
}

/** What a /command wants: something said, the last turn once more, or another model. */
export type Outcome = string | { readonly ask: string } | { readonly model: string };

/** A /command: returns what to say or do. */
export interface ChatCommand {
  readonly argument?: string;
  readonly summary: string;
  run(conversation: Conversation, argument: string): Outcome | Promise<Outcome>;
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
  retry: {
    summary: "answer the last turn once more",
    run: (conversation) => {
      const at = conversation.messages.findLastIndex(({ role }) => role === "user");
      if (at < 0) return "Nothing was said yet.";
      const { content } = conversation.messages[at]!;
      conversation.messages = conversation.messages.slice(0, at);
      if (!Array.isArray(content)) return { ask: content as string };
      conversation.images = content.flatMap(({ image }) =>
        typeof image === "string" ? [image] : []
      );
      return { ask: content.map(({ text = "" }) => text).join("") };
    },
  },
  image: {
    argument: "FILE",
    summary: "show a picture with the next turn, to models that see",
    run: (conversation, file) => {
      if (file === "") return "Say which: /image FILE";
      checkImages([file], "/image");
      conversation.images.push(file);
      return `${file} goes with the next turn.`;
    },
  },
  set: {
    argument: "NAME VALUE",
    summary: "change a setting, such as temperature 0.7; without, show those that are set",
    run: ({ settings }, text) => {
      const [, name = "", value = ""] = /^(?:--)?(\S*)\s*([\s\S]*)$/.exec(text)!;
      if (name !== "") settings.set(name, value);
      const rows = settings.list().map(([flag, set]) => `  ${flag} ${set}`);
      return rows.length > 0 ? rows.join("\n") : "All as the model's files say.";
    },
  },
  model: {
    argument: "NAME",
    summary: "go on with another model",
    run: (_, name) => name === "" ? "Say which: /model NAME" : { model: name },
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
    `  ${`/${name} ${argument}`.padEnd(18)}${summary}`
  );
  return [
    ...rows,
    '  A line ending in \\ goes on with the next; a text between """ may have many lines.',
    "  Ctrl-C stops an answer; at the prompt, pressed twice, it leaves.",
  ].join("\n");
}

function isMessage(value: unknown): value is ChatMessage {
  const { role, content } = (value ?? {}) as Partial<Record<string, unknown>>;
  return typeof role === "string" && (typeof content === "string" || Array.isArray(content));
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

/** What other programs call a command. */
const ALIASES: Readonly<Record<string, string>> = {
  quit: "exit",
  bye: "exit",
  q: "exit",
  "?": "help",
};

/** Runs a line that starts with a slash and returns what to say or do. */
export async function runChatCommand(conversation: Conversation, line: string): Promise<Outcome> {
  const [, given = "", argument = ""] = /^\/(\S*)\s*([\s\S]*)$/.exec(line)!;
  const name = Object.hasOwn(ALIASES, given) ? ALIASES[given]! : given;
  if (!Object.hasOwn(chatCommands, name)) {
    const near = nearest(name, Object.keys(chatCommands));
    return `No command /${name}. ${near ? `Did you mean /${near}?` : "See /help"}`;
  }
  return await chatCommands[name]!.run(conversation, argument.trim());
}
