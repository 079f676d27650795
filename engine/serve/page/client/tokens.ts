// An answer as its tokens: how probable each was is its colour, and, with a pointer on it or the focus, a list of what
// might have stood there. One stop of the Tab key; arrow keys go from token to token.

import type { AnswerToken, Choice } from "./conversation.ts";
import { html } from "./dom.ts";

const percent = new Intl.NumberFormat("en", { style: "percent", maximumSignificantDigits: 3 });

/** A token as it is read in a list: spaces and line ends can be seen. */
function visible(text: string): string {
  return text.replace(/\n/g, "↵").replace(/\t/g, "⇥").replace(
    /^ +| +$/g,
    (spaces) => "␣".repeat(spaces.length),
  ) || "(nothing)";
}

/** Bounds between the classes of probability, from 0 (sure) on. */
const BOUNDS = [0.9, 0.6, 0.3, 0.1];

function row({ text, probability }: Choice, isTaken: boolean): Node {
  const bar = html("span", { class: "bar" });
  bar.style.inlineSize = `${Math.max(1, probability * 100)}%`;
  return html(
    "li",
    { class: isTaken && "taken" },
    html("code", {}, visible(text)),
    html("span", { class: "track", "aria-hidden": "true" }, bar),
    html("span", { class: "number" }, percent.format(probability)),
  );
}

/** The list for a token: those that might have stood there, and the token itself where it is none of them. */
function choices(token: AnswerToken): HTMLElement {
  const isListed = token.others.some(({ text }) => text === token.text);
  const all = isListed ? token.others : [...token.others, token];
  return html("ol", {}, ...all.map((choice) => row(choice, choice.text === token.text)));
}

/** Puts the tooltip below its token, or above where there is more room, and within the window. */
function place(tooltip: HTMLElement, target: Element): void {
  // A token that begins with line ends is seen on its last line.
  const { left, bottom, top } = [...target.getClientRects()].at(-1)!;
  const { width, height } = tooltip.getBoundingClientRect();
  const y = bottom + height + 12 < innerHeight ? bottom + 4 : Math.max(4, top - height - 4);
  tooltip.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
  tooltip.style.top = `${y}px`;
}

/** The tooltip of an answer. It stays while the pointer is on it; Escape takes it away. */
class Tooltip {
  readonly element: HTMLElement;
  #target: Element | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(id: string) {
    // In the top layer nothing cuts it off.
    this.element = html("div", {
      ...{ id, class: "tooltip", role: "tooltip", popover: "manual" },
      pointerenter: () => clearTimeout(this.#timer),
      pointerleave: () => this.leave(),
    });
  }

  show(target: Element, token: AnswerToken): void {
    clearTimeout(this.#timer);
    if (target === this.#target) return;
    this.hide();
    this.#target = target;
    target.setAttribute("aria-describedby", this.element.id);
    this.element.replaceChildren(choices(token));
    this.element.showPopover();
    place(this.element, target);
  }

  leave(): void {
    this.#timer = setTimeout(() => this.hide(), 150);
  }

  hide(): void {
    clearTimeout(this.#timer);
    this.#target?.removeAttribute("aria-describedby");
    this.#target = undefined;
    this.element.hidePopover();
  }
}

function tokenElement(token: AnswerToken): HTMLElement {
  const level = BOUNDS.findIndex((bound) => token.probability >= bound);
  return html("span", {
    class: `token p${level < 0 ? BOUNDS.length : level}`,
    role: "option",
    "aria-selected": "false",
    "aria-label": `${visible(token.text)}, ${percent.format(token.probability)}`,
    tabindex: -1,
  }, token.text);
}

const MOVES: Readonly<Record<string, (at: number, count: number) => number>> = {
  ArrowRight: (at) => at + 1,
  ArrowLeft: (at) => at - 1,
  Home: () => 0,
  End: (_, count) => count - 1,
};

/** Shows the tokens of an answer, of a message of this name. */
export function tokenView(tokens: readonly AnswerToken[], id: string): HTMLElement {
  const tooltip = new Tooltip(`choices-${id}`);
  const elements = tokens.map(tokenElement);
  const indexOf = ({ target }: Event) => elements.indexOf(target as HTMLElement);
  const show = (event: Event) => {
    const index = indexOf(event);
    if (index >= 0) tooltip.show(elements[index]!, tokens[index]!);
  };
  if (elements[0]) elements[0].tabIndex = 0;
  const list = html(
    "div",
    {
      class: "tokens",
      role: "listbox",
      "aria-label": "Tokens of the answer and their probabilities",
      "aria-orientation": "horizontal",
      dir: "auto",
      pointerover: show,
      pointerleave: () => tooltip.leave(),
      focusin: (event: FocusEvent) => {
        for (const element of elements) element.tabIndex = -1;
        (event.target as HTMLElement).tabIndex = 0;
        show(event);
      },
      focusout: () => tooltip.hide(),
      keydown: (event: KeyboardEvent) => {
        if (event.key === "Escape") {
          tooltip.hide();
          return event.stopPropagation();
        }
        const next = MOVES[event.key]?.(indexOf(event), elements.length);
        if (next === undefined) return;
        event.preventDefault();
        elements[next]?.focus();
      },
    },
    ...elements,
  );
  const help =
    "The less probable a token was, the redder it is. Point at one, or go there with the arrow keys.";
  return html("div", {}, html("p", { class: "help" }, help), list, tooltip.element);
}
