// Light, dark, or as the system has it: the colours are CSS's `light-dark()`, so one attribute decides.

import { find, icon } from "./dom.ts";
import { readValue, writeValue } from "./store.ts";

const THEMES = ["system", "light", "dark"] as const;
type Theme = typeof THEMES[number];

/** Makes the switch work, and takes what was chosen before. */
export function bindTheme(): void {
  const button = find("#theme");
  const show = (theme: Theme) => {
    document.documentElement.dataset.theme = theme;
    button.replaceChildren(icon(theme));
    const label = `Theme: ${theme}`;
    button.setAttribute("aria-label", label);
    button.title = label;
  };
  const isTheme = (value: unknown): value is Theme => THEMES.includes(value as Theme);
  const kept: unknown = readValue("theme", "system");
  show(isTheme(kept) ? kept : "system");
  button.addEventListener("click", () => {
    const at = THEMES.indexOf(document.documentElement.dataset.theme as Theme);
    const next = THEMES[(at + 1) % THEMES.length]!;
    show(next);
    writeValue("theme", next);
  });
}
