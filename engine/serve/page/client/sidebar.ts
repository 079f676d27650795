// The list of conversations: open, rename, export, delete with a way back.

import type { Chat } from "./chat.ts";
import type { Conversation } from "./conversation.ts";
import { download, find, html, iconButton } from "./dom.ts";
import type { Notice } from "./notice.ts";
import type { ConversationTitle, Store } from "./store.ts";

/** The list. */
export class Sidebar {
  readonly #list = find("#conversation-list");
  readonly #none = find("#no-conversations");
  readonly #chat: Chat;
  readonly #store: Store;
  readonly #notice: Notice;
  readonly #opened: () => void;

  constructor(
    { chat, store, notice, opened }: {
      readonly chat: Chat;
      readonly store: Store;
      readonly notice: Notice;
      /** A conversation was chosen. */
      readonly opened: () => void;
    },
  ) {
    this.#chat = chat;
    this.#store = store;
    this.#notice = notice;
    this.#opened = opened;
  }

  /** Shows the conversations that there are. */
  async update(): Promise<void> {
    const titles = await this.#store.titles();
    const { problem } = this.#store;
    this.#none.hidden = titles.length > 0 && problem === undefined;
    if (problem !== undefined) this.#none.textContent = problem;
    this.#list.replaceChildren(...titles.map((title) => this.#row(title)));
  }

  /** Marks the conversation that is open. */
  mark(): void {
    for (const row of this.#list.querySelectorAll<HTMLElement>("li")) {
      const isOpen = row.dataset.id === this.#chat.conversation.id;
      row.querySelector(".open")?.setAttribute("aria-current", String(isOpen));
    }
  }

  #row({ id, title }: ConversationTitle): HTMLElement {
    const isOpen = id === this.#chat.conversation.id;
    const open = async () => {
      await this.#chat.open(id);
      this.#opened();
    };
    const row: HTMLElement = html(
      "li",
      { "data-id": id },
      html("button", {
        ...{ type: "button", class: "open", "aria-current": String(isOpen), title, dir: "auto" },
        click: open,
      }, title),
      html(
        "span",
        { class: "tools" },
        iconButton("edit", `Rename “${title}”`, { click: () => this.#rename(row, { id, title }) }),
        iconButton("export", `Export “${title}”`, { click: () => this.#export(id) }),
        iconButton("remove", `Delete “${title}”`, { click: () => this.#remove(id) }),
      ),
    );
    return row;
  }

  #rename(row: HTMLElement, { id, title }: Pick<ConversationTitle, "id" | "title">): void {
    const box = html("input", {
      "aria-label": "Title",
      class: "rename",
      dir: "auto",
      value: title,
    });
    const end = async (isKept: boolean) => {
      box.removeEventListener("blur", keep);
      const text = box.value.trim();
      if (isKept && text !== "" && text !== title) await this.#chat.rename(id, text);
      else await this.update();
      this.#list.querySelector<HTMLElement>(`[data-id="${id}"] .open`)?.focus();
    };
    const keep = () => void end(true);
    box.addEventListener("blur", keep);
    box.addEventListener("keydown", (event) => {
      if (event.isComposing || (event.key !== "Enter" && event.key !== "Escape")) return;
      event.preventDefault();
      event.stopPropagation();
      void end(event.key === "Enter");
    });
    row.replaceChildren(box);
    box.focus();
    box.select();
  }

  async #export(id: string): Promise<void> {
    const found = await this.#chat.get(id);
    if (found) download(fileName(found), `${JSON.stringify(found, undefined, 2)}\n`);
  }

  async #remove(id: string): Promise<void> {
    const found = await this.#chat.remove(id);
    if (found === undefined) return;
    const action = { label: "Undo", run: () => void this.#chat.restore(found) };
    this.#notice.show(`Deleted “${found.title}”.`, { action });
    find("#new-chat").focus();
  }
}

/** A title as the name of a file. */
function fileName({ title }: Conversation): string {
  const name = title.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "");
  return `${name.slice(0, 50) || "conversation"}.json`;
}
