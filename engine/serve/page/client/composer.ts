// The box for what is asked, and its button, which sends, and stops while an answer is written.

import { find, html } from "./dom.ts";

/** As many bytes of a picture: a request has room for 16 MiB, and four characters carry three bytes. */
const MOST_BYTES = 10 << 20;

/** What the composer asks of the page. */
export interface ComposerActions {
  /** Sends; false where that cannot be now, and the text stays. */
  send(text: string, picture: string | undefined): boolean;
  /** Says what could not be done. */
  failed(message: string): void;
  stop(): void;
  /** Edits the last question; false where there is none. */
  editLast(): boolean;
}

/** The composer. */
export class Composer {
  readonly #box = find<HTMLTextAreaElement>("#prompt");
  readonly #send = find<HTMLButtonElement>("#send");
  readonly #stop = find<HTMLButtonElement>("#stop");
  readonly #file = find<HTMLInputElement>("#picture");
  readonly #actions: ComposerActions;
  #picture: string | undefined;

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
    find("#attach").addEventListener("click", () => this.#file.click());
    this.#file.addEventListener("change", () => void this.#read());
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

  /** Shows or hides what attaches a picture. */
  takePictures(takes: boolean): void {
    find("#attach").hidden = !takes;
    if (!takes) this.#show(undefined);
  }

  async #read(): Promise<void> {
    const [file] = this.#file.files ?? [];
    this.#file.value = "";
    if (file === undefined) return;
    if (file.size > MOST_BYTES) return this.#actions.failed("A picture has at most 10 MB.");
    const reader = new FileReader();
    reader.readAsDataURL(file);
    await new Promise((resolve) => reader.onloadend = resolve);
    if (reader.error) return this.#actions.failed(`The picture cannot be read: ${reader.error}`);
    this.#show(reader.result as string);
    this.focus();
  }

  #show(picture: string | undefined): void {
    if (picture === this.#picture) return;
    this.#picture = picture;
    const drop = {
      type: "button",
      title: "Remove the picture",
      "aria-label": "Remove the picture",
    };
    find("#attached").replaceChildren(
      ...picture === undefined ? [] : [html(
        "button",
        { ...drop, click: () => (this.#show(undefined), this.focus()) },
        html("img", { src: picture, alt: "Your picture" }),
      )],
    );
  }

  #submit(): void {
    const text = this.#box.value;
    if (text.trim() === "" || !this.#actions.send(text, this.#picture)) return;
    this.#box.value = "";
    this.#show(undefined);
    this.#look();
  }

  #look(): void {
    this.#send.disabled = this.#box.value.trim() === "";
  }
}
