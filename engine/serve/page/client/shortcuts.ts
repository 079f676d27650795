// Keys for the whole page, as one table, which the list that Ctrl+/ opens is made of. All have a modifier, so that they
// take no letter from those who type or command by voice (WCAG 2.1.4).

import { find, html } from "./dom.ts";

/** A key and what it does. */
export interface Shortcut {
  /** As `KeyboardEvent.key` has it, in lower case; undefined for what is only listed. */
  readonly key?: string;
  /** Modifiers that it takes; Ctrl is also ⌘. */
  readonly ctrl?: boolean;
  readonly shift?: boolean;
  /** For the list. */
  readonly keys: readonly string[];
  readonly what: string;
  /** Does it; false leaves the key to the browser. */
  readonly run?: () => boolean | void;
}

/** Binds the keys and fills the list. */
export function bindShortcuts(shortcuts: readonly Shortcut[]): void {
  find("#shortcut-list").append(...shortcuts.map(({ keys, what }) =>
    html(
      "div",
      {},
      html("dt", {}, ...keys.flatMap((key, i) => [i ? " " : "", html("kbd", {}, key)])),
      html("dd", {}, what),
    )
  ));
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || event.altKey) return;
    const { ctrlKey, metaKey, shiftKey } = event;
    const found = shortcuts.find(({ key, ctrl = false, shift = false }) =>
      key === event.key.toLowerCase() && ctrl === (ctrlKey || metaKey) && shift === shiftKey
    );
    if (found?.run === undefined || found.run() === false) return;
    event.preventDefault();
  });
}
