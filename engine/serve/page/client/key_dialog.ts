// The dialog for the API key: asked for when the server wants one. It lives in the tab, or in the browser if the user
// says so.

import { find } from "./dom.ts";
import { readValue, writeValue } from "./store.ts";

/** The key that was kept, or none. */
export function keptKey(): string {
  return sessionKey() ?? readValue("key", "");
}

function sessionKey(): string | undefined {
  try {
    return sessionStorage.getItem("troodon.key") ?? undefined;
  } catch {
    return undefined;
  }
}

/** The dialog. */
export class KeyDialog {
  readonly #dialog = find<HTMLDialogElement>("#key-dialog");
  readonly #box = find<HTMLInputElement>("#key");
  readonly #keep = find<HTMLInputElement>("#keep-key");

  /** `use` gets the key that was given. */
  constructor(use: (key: string) => void) {
    this.#keep.checked = readValue("key", "") !== "";
    find("#key-cancel").addEventListener("click", () => this.#dialog.close());
    find("#show-key").addEventListener("click", () => this.ask());
    find("#key-form").addEventListener("submit", () => {
      const key = this.#box.value.trim();
      writeValue("key", this.#keep.checked && key !== "" ? key : undefined);
      try {
        sessionStorage.setItem("troodon.key", key);
      } catch {
        // It lives as long as the page.
      }
      use(key);
    });
  }

  /** Asks for it, and says why. */
  ask(reason = "This server answers those who have a key."): void {
    find("#key-reason").textContent = reason;
    this.#box.value = keptKey();
    if (!this.#dialog.open) this.#dialog.showModal();
    this.#box.select();
  }
}
