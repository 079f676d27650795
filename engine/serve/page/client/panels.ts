// The two panels beside the conversation. Where the window is wide they stand beside it; where it is narrow they lie
// over it, and then the rest of the page takes no focus until they are closed.

import { find } from "./dom.ts";
import { readValue, writeValue } from "./store.ts";

/** Wide enough for the list of conversations, and for all three; as in windows.css. */
const WIDE = { conversations: "(min-width: 760px)", settings: "(min-width: 1080px)" } as const;

type Name = keyof typeof WIDE;

/** A panel that can be opened and closed. */
export class Panel {
  readonly #name: Name;
  readonly #element: HTMLElement;
  readonly #button: HTMLElement;
  readonly #wide: MediaQueryList;

  /** What was chosen before goes before `isOpen`. */
  constructor(name: Name, isOpen: boolean) {
    this.#name = name;
    this.#element = find(`#${name}`);
    this.#button = find(`#toggle-${name}`);
    this.#wide = matchMedia(WIDE[name]);
    const standBeside = () => this.#set(this.#wide.matches && readValue(`${name}-open`, isOpen));
    standBeside();
    this.#wide.addEventListener("change", standBeside);
    this.#button.addEventListener("click", () => this.toggle());
    find(`#close-${name}`).addEventListener("click", () => this.close());
    find("#scrim").addEventListener("click", () => this.closeOver());
  }

  get isOpen(): boolean {
    return !this.#element.hidden;
  }

  toggle(): void {
    if (this.isOpen) this.close();
    else this.open();
  }

  open(): void {
    this.#set(true);
    this.#keep(true);
    this.#element.querySelector<HTMLElement>("button, textarea, input")?.focus();
  }

  close(): void {
    this.#set(false);
    this.#keep(false);
    this.#button.focus();
  }

  /** Closes it where it lies over the conversation; false where it does not. */
  closeOver(): boolean {
    if (this.#wide.matches || !this.isOpen) return false;
    this.close();
    return true;
  }

  #keep(isOpen: boolean): void {
    if (this.#wide.matches) writeValue(`${this.#name}-open`, isOpen);
  }

  #set(isOpen: boolean): void {
    this.#element.hidden = !isOpen;
    this.#button.setAttribute("aria-expanded", String(isOpen));
    document.body.classList.toggle(`with-${this.#name}`, isOpen);
    const isOver = isOpen && !this.#wide.matches;
    this.#element.classList.toggle("over", isOver);
    for (const other of document.querySelectorAll<HTMLElement>("main, nav, aside")) {
      other.inert = isOver && other !== this.#element;
    }
    find("#scrim").hidden = !isOver;
  }
}
