// A conversation is a tree: who edits a question or asks for another answer begins a branch, and no text is lost. What
// is on the screen is the way from the root to the head.

import type { Settings } from "./settings.ts";

/** A token and how probable the model found it, from 0 to 1. */
export interface Choice {
  readonly text: string;
  readonly probability: number;
}

/** A token of an answer with those that might have stood there, most probable first. */
export interface AnswerToken extends Choice {
  readonly others: readonly Choice[];
}

/** How an answer went. */
export interface AnswerFigures {
  readonly tokens: number;
  /** Tokens a second after the first one; undefined where there are too few to tell. */
  readonly perSecond?: number;
  /** Milliseconds to the first piece of text. */
  readonly firstMs?: number;
  /** Milliseconds of thinking. */
  readonly thinkingMs?: number;
  /** Tokens of prompt and answer together. */
  readonly context?: number;
  /** With it and the same settings the answer can be had again. */
  readonly seed?: number;
}

/** What went wrong with an answer, for people. */
export interface Problem {
  readonly message: string;
  /** The field of the request that is wrong. */
  readonly param?: string;
}

/** A question or an answer; answers grow while they come. */
export interface Message {
  readonly id: string;
  readonly parent: string | undefined;
  readonly role: "user" | "assistant";
  text: string;
  /** A picture that a question shows, as a data: address. */
  readonly picture?: string | undefined;
  thinking?: string;
  /** Who answered. */
  readonly model?: string;
  /** Whether a schema binds it, so that it is JSON. */
  readonly isJson?: boolean;
  tokens?: AnswerToken[];
  figures?: AnswerFigures;
  problem?: Problem;
  /** Why it ended, in the API's words, or that the user stopped it. */
  finish?: string;
}

/** All that is known of a conversation. */
export interface Conversation {
  readonly id: string;
  title: string;
  /** Milliseconds since 1970. */
  readonly created: number;
  updated: number;
  settings: Settings;
  readonly messages: Message[];
  /** The last message on the screen. */
  head: string | undefined;
}

/** A name that no other thing has; `crypto.randomUUID` is for secure origins only. */
function newId(): string {
  return Array.from(crypto.getRandomValues(new Uint32Array(3)), (n) => n.toString(36)).join("");
}

/** A conversation without messages. */
export function newConversation(settings: Settings): Conversation {
  const now = Date.now();
  const plain = { title: "", created: now, updated: now, messages: [], head: undefined };
  return { id: newId(), settings, ...plain };
}

/** Adds a message behind `parent` and makes it the head. */
export function addMessage(
  conversation: Conversation,
  message: Omit<Message, "id">,
): Message {
  const added = { ...message, id: newId() };
  conversation.messages.push(added);
  conversation.head = added.id;
  conversation.updated = Date.now();
  return added;
}

/** The messages from the root to one, by default to the head. */
export function pathTo(
  { messages, head }: Conversation,
  id: string | undefined = head,
): readonly Message[] {
  const byId = new Map(messages.map((message) => [message.id, message]));
  const path: Message[] = [];
  for (let at = id && byId.get(id); at; at = at.parent && byId.get(at.parent)) path.push(at);
  return path.reverse();
}

/** The messages that stand at the same place, oldest first, the message itself among them. */
export function versions({ messages }: Conversation, { parent }: Message): readonly Message[] {
  return messages.filter((message) => message.parent === parent);
}

/** Shows another version of a message, and behind it what came last. */
export function showVersion(conversation: Conversation, version: Message): void {
  let last = version;
  for (;;) {
    const next = conversation.messages.findLast(({ parent }) => parent === last.id);
    if (next === undefined) break;
    last = next;
  }
  conversation.head = last.id;
}

const TITLE_LENGTH = 60;

/** A title from the first lines of a question. */
export function titleOf(text: string): string {
  const line = text.trim().replace(/\s+/g, " ");
  if (line.length <= TITLE_LENGTH) return line;
  return `${line.slice(0, TITLE_LENGTH).replace(/\s\S*$/, "")}…`;
}
