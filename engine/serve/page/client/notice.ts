// The line above the box for what is asked: what happened, and what can be done about it.

import { find, html } from "./dom.ts";

const STAYS_MS = 10_000;

/** What can be done about a notice. */
export interface NoticeAction {
  readonly label: string;
  readonly run: () => void;
}

/** How a notice is shown. */
export interface NoticeOptions {
  readonly action?: NoticeAction;
  /** Whether it stays until another one comes. */
  readonly stays?: boolean;
}

/** The line. */
export class Notice {
  readonly #element = find("#notice");
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Shows a text in place of the one before. */
  show(text: string, { action, stays = false }: NoticeOptions = {}): void {
    this.clear();
    this.#element.append(text);
    if (!stays) this.#timer = setTimeout(() => this.clear(), STAYS_MS);
    if (action === undefined) return;
    const click = () => {
      this.clear();
      action.run();
    };
    this.#element.append(
      " ",
      html("button", { type: "button", class: "link", click }, action.label),
    );
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#element.replaceChildren();
  }
}
