// Elements made by calls. Nothing on the page is ever made of markup in a text: what a model writes can become text
// and the elements that markdown.ts names, and no other; the page's policy (Trusted Types) holds the browser to that.

/** Attributes by name; a function is a listener of the event of that name, false and undefined leave one out. */
export type Attributes = Readonly<
  // deno-lint-ignore no-explicit-any
  Record<string, string | number | boolean | undefined | ((event: any) => void)>
>;

/** A child: text, or a node; undefined is none. */
export type Child = Node | string | undefined;

function fill<E extends Element>(
  element: E,
  attributes: Attributes,
  children: readonly Child[],
): E {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== undefined) element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child) => child !== undefined));
  return element;
}

/** An HTML element. */
export function html<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[K] {
  return fill(document.createElement(tag), attributes, children);
}

/** The element that a selector finds; index.html has it. */
export function find<E extends Element = HTMLElement>(selector: string): E {
  return document.querySelector<E>(selector)!;
}

/** Drawings on a field of 24 by 24, as lines. */
const ICONS = {
  add: "M12 5v14M5 12h14",
  bars: "M5 20V10M12 20V4M19 20v-7",
  check: "M5 12.5l4.5 4.5L19 7.5",
  chats: "M4 5h16v14H4zM9.5 5v14",
  close: "M6 6l12 12M18 6L6 18",
  copy: "M9 9h10v11H9zM5 15V4h10",
  dark: "M20 14.5A8.5 8.5 0 1 1 9.5 4a6.8 6.8 0 0 0 10.5 10.5z",
  down: "M12 5v14M6 13l6 6 6-6",
  edit: "M4 20h4L19 9l-4-4L4 16zM13.5 6.5l4 4",
  export: "M12 4v11M7.5 11l4.5 4.5 4.5-4.5M5 20h14",
  key: "M8 11a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM11 12.5L20 4M16.5 7.5l3 3",
  picture: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15 9h.01",
  keys: "M3 7h18v11H3zM7 11h.01M11 11h.01M15 11h.01M18 11h.01M8 14.5h8",
  light:
    "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2.5v2M12 19.5v2M2.5 12h2M19.5 12h2M5.3 5.3l1.4 1.4M17.3 17.3l1.4 1.4" +
    "M5.3 18.7l1.4-1.4M17.3 6.7l1.4-1.4",
  next: "M9.5 6l6 6-6 6",
  previous: "M14.5 6l-6 6 6 6",
  redo: "M19.5 12a7.5 7.5 0 1 1-2.3-5.4M19.5 4v4.5H15",
  remove: "M5 7h14M10 7V4.5h4V7M7 7l1 13h8l1-13M10.5 11v5M13.5 11v5",
  send: "M12 19V5M6 11l6-6 6 6",
  settings: "M4 7h9M19 7h1M4 17h1M11 17h9M16 4.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5z" +
    "M8 14.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5z",
  stop: "M8 8h8v8H8z",
  system: "M4 5h16v11H4zM9 20h6M12 16v4",
} as const;

/** What an icon shows. */
export type IconName = keyof typeof ICONS;

const SVG = "http://www.w3.org/2000/svg";

/** A drawing that says nothing to a screen reader. */
export function icon(name: IconName): SVGElement {
  const path = fill(document.createElementNS(SVG, "path"), { d: ICONS[name] }, []);
  const attributes = { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" };
  return fill(document.createElementNS(SVG, "svg") as SVGElement, attributes, [path]);
}

/** Puts the drawings into the buttons of index.html, which say by name what they want. */
export function drawIcons(): void {
  for (const element of document.querySelectorAll<HTMLElement>("[data-icon]")) {
    element.prepend(icon(element.dataset.icon as IconName));
  }
}

/** A button that is a drawing, with the words for it. */
export function iconButton(
  name: IconName,
  label: string,
  more: Attributes = {},
): HTMLButtonElement {
  return html(
    "button",
    { type: "button", class: "icon-button", "aria-label": label, title: label, ...more },
    icon(name),
  );
}

/** Puts a text on the clipboard, also where the page is not served from a secure origin. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return await navigator.clipboard.writeText(text);
  const focused = document.activeElement as HTMLElement | null;
  const area = html("textarea", { class: "visually-hidden", "aria-hidden": "true" });
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
  focused?.focus();
}

/** A button that copies what a function says, and shows for a moment that it did. */
export function copyButton(label: string, text: () => string): HTMLButtonElement {
  const button: HTMLButtonElement = iconButton("copy", label, {
    click: async () => {
      await copyText(text());
      button.replaceChildren(icon("check"));
      setTimeout(() => button.replaceChildren(icon("copy")), 1500);
    },
  });
  return button;
}

/** Gives the user a file. */
export function download(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: "application/json" }));
  html("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
