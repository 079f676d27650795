// The box for what is asked, and its button, which sends, and stops while an answer is written.

import { find } from "./dom.ts";

/** What the composer asks of the page. */
export interface ComposerActions {
  /** Sends; false where that cannot be now, and the text stays. */
  send(text: string): boolean;
  stop(): void;
  /** Edits the last question; false where there is none. */
  editLast(): boolean;
}

/** The composer. */
export class Composer {
  readonly #box = find<HTMLTextAreaElement>("#prompt");
  readonly #send = find<HTMLButtonElement>("#send");
  readonly #stop = find<HTMLButtonElement>("#stop");
  readonly #actions: ComposerActions;

  constructor(actions: ComposerActions) {
    this.#actions = actions;
    find("#composer").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.#stop.addEventListener("click", () => {
      actions.stop();
      this.focus();
    });
    this.#box.addEventListener("input", () => this.#look());
    this.#box.addEventListener("keydown", (event) => {
      // Enter that ends a word of an input method is not ours.
      if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "Enter" && !event.shiftKey) {
        event.preventDefault();
        this.#submit();
      } else if (event.key === "ArrowUp" && this.#box.value === "" && actions.editLast()) {
        event.preventDefault();
      }
    });
    this.#look();
  }

  /** Focuses the box; not where that brings up a keyboard which covers the answer. */
  focus(): void {
    const isTouched = matchMedia("(pointer: coarse)").matches;
    (isTouched ? find("#thread") : this.#box).focus();
  }

  /** Shows which button there is. */
  update(isRunning: boolean): void {
    // Focus that lies on a button which goes away would be lost.
    const hadFocus = document.activeElement === this.#stop || document.activeElement === this.#send;
    this.#send.hidden = isRunning;
    this.#stop.hidden = !isRunning;
    if (hadFocus) this.focus();
  }

  #submit(): void {
    const text = this.#box.value;
    if (text.trim() === "" || !this.#actions.send(text)) return;
    this.#box.value = "";
    this.#look();
  }

  #look(): void {
    this.#send.disabled = this.#box.value.trim() === "";
  }
}
