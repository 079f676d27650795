// The head of the conversation: which model answers, how fast it was, what it takes.

import type { Api, ApiError, ModelEntry } from "./api.ts";
import type { Chat } from "./chat.ts";
import { type Message, pathTo } from "./conversation.ts";
import { find, html } from "./dom.ts";
import { speed } from "./message_view.ts";
import type { Notice } from "./notice.ts";

/** A number of bytes for people. */
function megabytes(bytes: number): string {
  return bytes < 1e9 ? `${Math.round(bytes / 1e6)} MB` : `${(bytes / 1e9).toFixed(1)} GB`;
}

/** What the choice of models needs. */
export interface ModelChoiceOptions {
  readonly api: Api;
  readonly chat: Chat;
  readonly notice: Notice;
  /** Told whether the model takes pictures. */
  readonly sees: (sees: boolean) => void;
  /** The user has chosen. */
  readonly chosen: (model: string) => void;
  /** The server wants a key. */
  readonly keyWanted: (message: string) => void;
}

/** The models that the server has, and the one of the conversation. */
export class ModelChoice {
  readonly #list = find<HTMLSelectElement>("#model");
  readonly #options: ModelChoiceOptions;
  #models: readonly ModelEntry[] = [];

  constructor(options: ModelChoiceOptions) {
    this.#options = options;
    this.#list.addEventListener("change", () => {
      options.chosen(this.#list.value);
      this.showFigures();
    });
  }

  /** Asks which models there are, and says why if that cannot be told. */
  async find(): Promise<void> {
    const { notice, keyWanted } = this.#options;
    try {
      await this.refresh();
    } catch (error) {
      const { status, message } = error as ApiError;
      if (status === 401) keyWanted(message);
      const action = { label: "Try again", run: () => void this.find() };
      return notice.show(message, { action, stays: true });
    }
    notice.clear();
    this.#list.replaceChildren(...this.#models.map(({ id }) => html("option", {}, id)));
    this.#list.disabled = this.#models.length === 0;
    if (this.#list.disabled) notice.show("This server has no model that answers.", { stays: true });
    this.show();
  }

  /** Learns what the models take by now. */
  async refresh(): Promise<void> {
    this.#models = await this.#options.api.models();
    this.showFigures();
  }

  /** Shows the model of the conversation, and makes it the first one where its own is gone. */
  show(): void {
    const { chat } = this.#options;
    const { settings } = chat.conversation;
    const [first] = this.#models;
    if (first === undefined) return;
    const isThere = this.#models.some(({ id }) => id === settings.model);
    if (!isThere) chat.set({ ...settings, model: first.id });
    this.#list.value = chat.conversation.settings.model!;
    this.showFigures();
  }

  /** Shows how an answer goes, by default the last one. */
  showFigures(message?: Message): void {
    const { chat, sees } = this.#options;
    const last = message ?? pathTo(chat.conversation).at(-1);
    const { perSecond, context = 0 } = last?.figures ?? {};
    const model = this.#models.find(({ id }) => id === this.#list.value);
    sees(model?.sees === true);
    const filled = Math.round(context / (model?.contextLength ?? Infinity) * 100);
    const isWaiting = last !== undefined && last === chat.running && last.text === "";
    const parts = [
      isWaiting && model?.isLoaded === false && "loading the model…",
      perSecond && speed(perSecond),
      model?.memory && megabytes(model.memory),
      filled >= 1 && `${filled} % of context`,
    ];
    const shown = parts.filter((part) => typeof part === "string");
    find("#figures").replaceChildren(...shown.map((part) => html("span", {}, part)));
  }
}
