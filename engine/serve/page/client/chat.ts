// The conversation that is open, and the answers under way: an answer goes on while another conversation is looked at.

import type { Api, ApiError } from "./api.ts";
import {
  addMessage,
  type Conversation,
  type Message,
  newConversation,
  showVersion,
  titleOf,
  versions,
} from "./conversation.ts";
import { readAnswer } from "./read_answer.ts";
import { requestBody } from "./request.ts";
import type { Settings } from "./settings.ts";
import type { Store } from "./store.ts";

/** Who shows what happens. */
export interface ChatView {
  /** Another conversation, or another way through it. */
  changed(): void;
  /** An answer begins, in the open conversation. */
  began(): void;
  /** An answer has grown, in the open conversation. */
  grew(message: Message): void;
  /** An answer has ended. */
  ended(message: Message, conversation: Conversation): void;
  /** Whether the settings are such that an answer can be asked for; shows what is wrong. */
  mayAsk(): boolean;
  /** Conversations came, went or were renamed. */
  titlesChanged(): void;
  /** The server wants a key, or another one. */
  keyWanted(message: string): void;
  /** What could not be done. */
  failed(message: string): void;
}

interface Running {
  readonly conversation: Conversation;
  readonly message: Message;
  readonly abort: AbortController;
}

/** An answer under way is kept as often: the page may be closed at any time. */
const KEEP_MS = 2000;

/** Settings are kept when nothing was typed for so long. */
const SETTLED_MS = 500;

/** The state of the page. */
export class Chat {
  readonly #api: Api;
  readonly #store: Store;
  readonly #view: ChatView;
  /** Answers under way, by conversation. */
  readonly #running = new Map<string, Running>();
  #conversation: Conversation;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    { api, store, view, settings }: {
      readonly api: Api;
      readonly store: Store;
      readonly view: ChatView;
      readonly settings: Settings;
    },
  ) {
    this.#api = api;
    this.#store = store;
    this.#view = view;
    this.#conversation = newConversation(settings);
  }

  /** The conversation that is open. */
  get conversation(): Conversation {
    return this.#conversation;
  }

  /** The answer that is being written in it. */
  get running(): Message | undefined {
    return this.#running.get(this.#conversation.id)?.message;
  }

  /** Begins a conversation with the settings of the open one; what binds answers is left behind. */
  begin(): void {
    const { schema: _, ...settings } = this.#conversation.settings;
    this.#conversation = newConversation(settings);
    this.#view.changed();
  }

  /** Opens a conversation; false where it is not there. */
  async open(id: string): Promise<boolean> {
    const found = this.#running.get(id)?.conversation ?? await this.#store.get(id);
    if (found === undefined) return false;
    this.#conversation = found;
    this.#view.changed();
    return true;
  }

  /** Sets what the next answer is asked with. */
  set(settings: Settings): void {
    this.#conversation.settings = settings;
    clearTimeout(this.#timer);
    const conversation = this.#conversation;
    if (conversation.messages.length === 0) return;
    this.#timer = setTimeout(() => void this.#save(conversation), SETTLED_MS);
  }

  /** Asks; false where that cannot be now. */
  send(text: string, picture?: string): boolean {
    return this.#ask(this.#conversation.head, { text, picture });
  }

  /** Asks something else in place of a question. */
  edit({ parent, picture }: Message, text: string): void {
    this.#ask(parent, { text, picture });
  }

  #ask(parent: string | undefined, asked: Pick<Message, "text" | "picture">): boolean {
    const conversation = this.#conversation;
    if (this.running || !this.#view.mayAsk()) return false;
    if (conversation.title === "") conversation.title = titleOf(asked.text);
    void this.#answer(conversation, addMessage(conversation, { parent, role: "user", ...asked }));
    return true;
  }

  /** Asks for another answer in place of this one. */
  regenerate({ parent }: Message): void {
    const question = this.#conversation.messages.find(({ id }) => id === parent);
    if (!question || this.running || !this.#view.mayAsk()) return;
    void this.#answer(this.#conversation, question);
  }

  /** Shows another version of a message. */
  turn(message: Message, by: number): void {
    const all = versions(this.#conversation, message);
    const version = all[all.indexOf(message) + by];
    if (version === undefined) return;
    showVersion(this.#conversation, version);
    void this.#save(this.#conversation);
    this.#view.changed();
  }

  /** Stops the answer of the open conversation; false where there is none. */
  stop(): boolean {
    const running = this.#running.get(this.#conversation.id);
    running?.abort.abort();
    return running !== undefined;
  }

  /** Gives a conversation another title. */
  async rename(id: string, title: string): Promise<void> {
    const found = await this.get(id);
    if (found === undefined) return;
    found.title = title;
    await this.#save(found);
    this.#view.titlesChanged();
  }

  /** A conversation, wherever it is. */
  async get(id: string): Promise<Conversation | undefined> {
    if (id === this.#conversation.id) return this.#conversation;
    return this.#running.get(id)?.conversation ?? await this.#store.get(id);
  }

  /** Deletes a conversation and stops its answer; gives it, so that it can be restored. */
  async remove(id: string): Promise<Conversation | undefined> {
    const found = await this.get(id);
    this.#running.get(id)?.abort.abort();
    this.#running.delete(id);
    await this.#store.remove(id);
    this.#view.titlesChanged();
    if (id === this.#conversation.id) this.begin();
    return found;
  }

  /** Puts back what was deleted. */
  async restore(conversation: Conversation): Promise<void> {
    await this.#save(conversation);
    await this.open(conversation.id);
    this.#view.titlesChanged();
  }

  /** Keeps what has come of the answers under way. */
  async keep(): Promise<void> {
    for (const { conversation } of this.#running.values()) await this.#save(conversation);
  }

  async #save(conversation: Conversation): Promise<void> {
    try {
      await this.#store.put(conversation);
    } catch (error) {
      this.#view.failed(`The browser cannot keep this conversation: ${(error as Error).message}`);
    }
  }

  async #answer(conversation: Conversation, question: Message): Promise<void> {
    const { id, settings: { model } } = conversation;
    const body = requestBody(conversation, question);
    const message = addMessage(conversation, {
      ...{ parent: question.id, role: "assistant", text: "" },
      ...model && { model },
      ...body.response_format !== undefined && { isJson: true },
    });
    const abort = new AbortController();
    this.#running.set(id, { conversation, message, abort });
    const isOpen = () => this.#conversation === conversation;
    this.#view.changed();
    this.#view.began();
    await this.#save(conversation);
    this.#view.titlesChanged();
    try {
      let next = 0;
      const grew = () => {
        if (isOpen()) this.#view.grew(message);
        if (Date.now() < next || message.text === "") return;
        next = Date.now() + KEEP_MS;
        void this.#save(conversation);
      };
      await readAnswer(this.#api.answer(body, abort.signal), message, { grew });
    } catch (error) {
      if (abort.signal.aborted) message.finish = "stopped";
      else this.#fail(message, error);
    }
    // Whoever deleted the conversation meanwhile does not want it back.
    if (!this.#running.delete(id)) return;
    await this.#save(conversation);
    if (isOpen()) this.#view.changed();
    this.#view.ended(message, conversation);
  }

  #fail(message: Message, error: unknown): void {
    const { message: text, status, param } = error as ApiError;
    message.problem = { message: text, ...param !== undefined && { param } };
    if (status === 401) this.#view.keyWanted(text);
  }
}
