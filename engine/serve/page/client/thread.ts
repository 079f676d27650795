// The messages of a conversation on the screen, which follows an answer as long as nobody has scrolled away from it.

import { type Conversation, type Message, pathTo, versions } from "./conversation.ts";
import { find, html } from "./dom.ts";
import { type MessageActions, MessageView } from "./message_view.ts";

const SUGGESTIONS = [
  ["Explain a thing", "Explain how a hash map works, with a small example in Python."],
  ["Write a text", "Write a short, friendly email that moves a meeting to Thursday."],
  ["Compare", "Compare SQLite and PostgreSQL in a table: use, size, concurrency."],
  ["Plan", "Plan a weekend in a city that I have never been to, hour by hour."],
] as const;

/** So many pixels above its end the thread still counts as being there. */
const NEAR_END = 60;

/** What the thread asks of the page. */
export interface ThreadActions extends MessageActions {
  /** Sends a suggestion. */
  send(text: string): void;
  /** The running answer is shown as it stands. */
  shown(message: Message): void;
}

/** The thread. */
export class Thread {
  readonly #element = find("#thread");
  readonly #list = find("#messages");
  readonly #empty = find("#empty");
  readonly #toEnd = find<HTMLButtonElement>("#to-end");
  readonly #actions: ThreadActions;
  #views = new Map<string, MessageView>();
  #running: Message | undefined;
  #follows = true;
  #top = 0;
  #isAwaited = false;

  constructor(actions: ThreadActions) {
    this.#actions = actions;
    this.#element.addEventListener("scroll", () => this.#look(), { passive: true });
    const sizes = new ResizeObserver(() => this.#follows ? this.#follow() : this.#look());
    sizes.observe(this.#element);
    sizes.observe(this.#list);
    this.#toEnd.addEventListener("click", () => this.#follow());
    find("#suggestions").append(...SUGGESTIONS.map(([title, text]) =>
      html(
        "button",
        { type: "button", click: () => actions.send(text) },
        html("strong", {}, title),
        html("span", {}, text),
      )
    ));
  }

  /** Shows a conversation; `running` is the answer that is being written. */
  show(conversation: Conversation, running: Message | undefined): void {
    const path = pathTo(conversation);
    const before = this.#running;
    const restoreFocus = this.#focusKeeper();
    const isNew = !path.some(({ id }) => this.#views.has(id));
    const views = path.map((message) =>
      this.#views.get(message.id) ?? new MessageView(message, this.#actions)
    );
    for (const view of views) {
      const all = versions(conversation, view.message);
      view.update({
        version: all.indexOf(view.message),
        versions: all.length,
        isRunning: view.message === running,
        isBusy: running !== undefined,
      });
    }
    this.#views = new Map(views.map((view) => [view.message.id, view]));
    this.#running = running;
    this.#empty.hidden = path.length > 0;
    this.#list.replaceChildren(...views.map(({ element }) => element));
    restoreFocus();
    if (isNew || (running !== undefined && running !== before)) this.#follow();
  }

  /** Shows what the running answer has become, with the next frame. */
  grow(): void {
    if (this.#isAwaited) return;
    this.#isAwaited = true;
    // No frames come while the page is not seen.
    const next = document.hidden ? setTimeout : requestAnimationFrame;
    next(() => {
      const start = performance.now();
      const message = this.#running;
      if (message) {
        this.#views.get(message.id)?.grow(true);
        this.#actions.shown(message);
      }
      // What takes long is shown less often, so that the page always answers its user.
      setTimeout(() => this.#isAwaited = false, 3 * (performance.now() - start));
    });
  }

  /** Gives what puts the focus back on the button that had it, or on that of the version which took its place. */
  #focusKeeper(): () => void {
    const focused = document.activeElement;
    const place = [...this.#list.children].findIndex((child) => child.contains(focused));
    const label = focused?.getAttribute("aria-label");
    if (place < 0 || !label) return () => {};
    return () => {
      const buttons = [...this.#list.children[place]?.querySelectorAll("button") ?? []];
      const found = buttons.find((button) => button.ariaLabel === label);
      // The last version has no later one, but its neighbour an earlier one.
      (found?.disabled ? found.parentElement!.querySelector<HTMLElement>("button:enabled") : found)
        ?.focus();
    };
  }

  /** Opens the last question for editing; false where there is none. */
  editLast(): boolean {
    const last = [...this.#views.values()].findLast(({ message }) => message.role === "user");
    if (this.#running) return false;
    last?.edit();
    return last !== undefined;
  }

  /** Who scrolls up leaves the end; an end that moves away by itself is followed. */
  #look(): void {
    const { scrollTop, scrollHeight, clientHeight } = this.#element;
    const isNear = scrollHeight - clientHeight - scrollTop < NEAR_END;
    if (isNear || scrollTop < this.#top) this.#follows = isNear;
    this.#top = scrollTop;
    this.#toEnd.hidden = this.#follows;
  }

  #follow(): void {
    this.#element.scrollTop = this.#empty.hidden ? this.#element.scrollHeight : 0;
    this.#top = this.#element.scrollTop;
    this.#follows = true;
    this.#toEnd.hidden = true;
  }
}
